//! phasor beside what one would pick otherwise: burn on the same device, candle and PyTorch.
//!
//! Each measurement is a process of its own, so that a program that hangs or fails takes nobody with it.

mod comparison;
mod contestant;
mod peers;
mod task;
mod told;

// How numbers and tables look in `phasor bench`.
#[allow(dead_code)]
#[path = "../../../demo/src/report.rs"]
mod report;

use clap::Parser;
use comparison::{Clock, Comparison, Deviation, compare, deviation};
use contestant::Arena;
use jiff::Timestamp;
use peers::Peer;
use phasor_measure::Device;
use serde::Serialize;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use task::{Operation, Task};

/// Any failure, in words.
pub type Failure = Box<dyn std::error::Error>;

/// Time phasor beside burn (wgpu), candle (CPU) and PyTorch
///
/// The same rotation and the same causal attention, with contextual position encoding (CoPE) and without, on the same inputs.
/// phasor and burn run on the device that `phasor bench` takes (WGPU_ADAPTER_NAME names another), candle on the CPU, PyTorch
/// on its accelerator if it has one and else on the CPU. All run once in each round. Compare the minima: processor time of all
/// threads where the device is the processor, else time by the host's clock. The first result counts from the start of a
/// process, with empty shader and compiler caches.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// What to time and to compare with f64; all without this
    #[arg(value_name = "WHAT")]
    what: Vec<Operation>,

    /// On so many tokens only, of those that all is done on
    #[arg(long, value_name = "N", value_delimiter = ',')]
    tokens: Vec<usize>,

    /// How often each operation is timed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// How long a first result or a run is waited for
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    limit: u64,

    /// A Python with torch (`python3 -m venv DIR`, then `DIR/bin/pip install torch`)
    #[arg(long, value_name = "PATH", default_value = "python3")]
    python: PathBuf,

    /// Write what was measured to this file, with device, driver, date, commit and versions
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Compute a task in this very process
    #[arg(long, hide = true, requires_all = ["task", "adapter"])]
    serve: Option<Peer>,

    /// The task of --serve, as JSON
    #[arg(long, hide = true)]
    task: Option<String>,

    /// The adapter that phasor takes
    #[arg(long, hide = true)]
    adapter: Option<String>,
}

/// All that was measured, as `--json` writes it.
#[derive(Debug, Serialize)]
struct Results {
    version: &'static str,
    /// What was built; `None` outside of a repository.
    commit: Option<String>,
    date: String,
    device: Device,
    versions: BTreeMap<&'static str, String>,
    clock: Clock,
    rounds: u32,
    limit_seconds: u64,
    comparisons: Vec<Comparison>,
    deviations: Vec<Deviation>,
}

impl Arguments {
    fn wants(&self, task: &Task) -> bool {
        let operation = self.what.is_empty() || self.what.contains(&task.operation);
        operation && (self.tokens.is_empty() || self.tokens.contains(&task.tokens))
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match (arguments.serve, &arguments.task, &arguments.adapter) {
        (Some(peer), Some(task), Some(adapter)) => {
            serde_json::from_str(task).map_err(Failure::from).and_then(|task| peers::serve(peer, task, adapter))
        }
        _ => measure(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &Arguments) -> Result<(), Failure> {
    let device = Device::from(&pollster::block_on(phasor::gpu::best_adapter())?.get_info());
    let python = absolute(&arguments.python)?;
    let torch = torch_version(&python);
    let mut versions = BTreeMap::from(["burn", "candle-core"].map(|name| (name, locked_version(name))));
    versions.extend(torch.clone().map(|version| ("torch", version)));
    let arena = Arena {
        adapter: device.name.clone(),
        python: torch.map(|_| python),
        limit: Duration::from_secs(arguments.limit),
    };
    let clock = if device.software { Clock::Processor } else { Clock::Wall };
    let (mut timed, mut checked) = tasks();
    timed.retain(|task| arguments.wants(task));
    checked.retain(|task| arguments.wants(task));
    if timed.is_empty() && checked.is_empty() {
        return Err(
            "nothing is measured at these --tokens: rotation has 1, 512 and 2048, the others 512, 1024 and 2048".into(),
        );
    }
    let (all, begun) = (timed.len() + checked.len(), Cell::new(0));
    let tell = |task| {
        begun.set(begun.get() + 1);
        let step = begun.get();
        move |what: &str| eprintln!("{step}/{all}  {}; {what}", told::title(task))
    };
    let results = Results {
        version: env!("CARGO_PKG_VERSION"),
        commit: commit(),
        date: Timestamp::now().to_string(),
        device,
        versions,
        clock,
        rounds: arguments.rounds,
        limit_seconds: arguments.limit,
        deviations: checked.into_iter().map(|task| deviation(&arena, task, &tell(task))).collect::<Result<_, _>>()?,
        comparisons: timed
            .into_iter()
            .map(|task| compare(&arena, task, arguments.rounds, clock, &tell(task)))
            .collect(),
    };
    print!("{}", told::all(&results));
    if let Some(file) = &arguments.json {
        std::fs::write(file, serde_json::to_string_pretty(&results)? + "\n")?;
    }
    Ok(())
}

/// What is timed, and what is compared with f64: small tensors, so that all are seen to compute the same, and positions to
/// which models go.
fn tasks() -> (Vec<Task>, Vec<Task>) {
    let task = |operation, tokens, start| Task { operation, tokens, start };
    let mut timed: Vec<_> = [1, 512, 2048].map(|tokens| task(Operation::Rotation, tokens, 0)).to_vec();
    for operation in [Operation::Attention, Operation::Cope] {
        timed.extend([512, 1024, 2048].map(|tokens| task(operation, tokens, 0)));
    }
    let mut checked = vec![task(Operation::Rotation, 40, 0)];
    checked.extend([2_000, 65_535, 131_071].map(|start| task(Operation::Rotation, 1, start)));
    checked.extend([Operation::Attention, Operation::Cope].map(|operation| task(operation, 200, 0)));
    (timed, checked)
}

/// The version of a package that this program was built with.
fn locked_version(package: &str) -> String {
    let lock = include_str!("../Cargo.lock");
    let entry = lock.split("[[package]]").find(|entry| entry.contains(&format!("name = \"{package}\"\n")));
    let version = entry.and_then(|entry| entry.split("version = \"").nth(1)?.split('"').next());
    version.unwrap_or("?").to_owned()
}

/// A program's path from anywhere: each process has a folder of its own. A bare name is looked for as shells do.
fn absolute(program: &Path) -> Result<PathBuf, Failure> {
    let is_name = program.components().count() == 1;
    Ok(if is_name { program.to_owned() } else { std::path::absolute(program)? })
}

/// Of this interpreter's torch, or why PyTorch is left out.
fn torch_version(python: &PathBuf) -> Result<String, String> {
    let none = || format!("no torch for {}: see --python", python.display());
    let output = Command::new(python).args(["-c", "import torch; print(torch.__version__)"]).output();
    let output = output.ok().filter(|output| output.status.success()).ok_or_else(none)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// What git says of the sources, with `-dirty` if they were changed since.
fn commit() -> Option<String> {
    let mut git = Command::new("git");
    git.current_dir(env!("CARGO_MANIFEST_DIR"));
    git.args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]);
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
