//! `phasor demo`: real activations on whatever there is.

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Bar;
use crate::{adapter, report};
use clap::Args;
use phasor::{ErrorKind, Gpu};
use phasor_measure::{Activations, Demo as Report, Measurement, Sizes, bench, demo};
use pollster::block_on;
use serde_json::json;

/// Rotate real activations of a small language model and compare them with transformers' values (the default)
///
/// The queries and keys of two layers of SmolLM2-135M on a short paragraph are bundled with the command. They are rotated
/// without a table and from one, and compared with what Hugging Face transformers computed and with float64. Beside
/// that, a rotation is timed against a kernel that only copies.
///
/// Without any adapter the CPU reference does the work, and the report says how to get one.
#[derive(Debug, Args, Default)]
#[command(after_help = "Examples:\n  phasor\n  phasor demo --adapter llvmpipe\n  phasor demo --json")]
pub struct Demo {
    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Compute in float64 on the CPU instead of on a device
    #[arg(long)]
    cpu: bool,
}

static ACTIVATIONS: &[u8] = include_bytes!("../../../tests/data/smollm2.safetensors");

impl Demo {
    pub fn run(&self, wanted: Option<&str>) -> Result<Outcome, Failure> {
        let activations = Activations::parse(ACTIVATIONS)?;
        let gpu = self.device(wanted)?;
        let bar = Bar::new();
        let report = block_on(demo(gpu.as_ref(), &activations, &mut |step| bar.step(step)))?;
        let measured = match &gpu {
            Some(gpu) => {
                let sizes = sizes(gpu);
                Some((sizes, block_on(bench::rotation(gpu, sizes, &mut |step| bar.step(step)))?))
            }
            None => None,
        };
        drop(bar);
        let outcome = if self.json {
            Outcome::json(&json!({
                "version": env!("CARGO_PKG_VERSION"),
                "text": activations.text,
                "demo": report,
                "bandwidth": measured.as_ref().map(|(_, measured)| measured),
            }))?
        } else {
            Outcome::text(self.told(&report, measured.as_ref(), &activations))
        };
        Ok(outcome.well(report.passed))
    }

    /// The device, or none where the CPU reference is wanted or all there is.
    fn device(&self, wanted: Option<&str>) -> Result<Option<Gpu>, Failure> {
        if self.cpu {
            return Ok(None);
        }
        match wanted {
            Some(_) => adapter::open(wanted).map(Some),
            None => match Gpu::request_blocking() {
                Err(error) if error.kind() == ErrorKind::NoAdapter => Ok(None),
                other => Ok(Some(other?)),
            },
        }
    }

    fn told(&self, report: &Report, measured: Option<&(Sizes, Measurement)>, activations: &Activations) -> String {
        let where_from = match &report.device {
            Some(device) if device.software => {
                format!("{} ({}; a software device: the CPU's cores)", device.name, device.backend)
            }
            Some(device) => format!("{} ({}, {})", device.name, device.backend, device.kind),
            None if self.cpu => "the CPU reference, in float64".to_owned(),
            None => "the CPU reference, in float64: no adapter was found".to_owned(),
        };
        let tokens = report.tensors.first().map_or(0, |tensor| tensor.shape[1]);
        let mut text = format!("Rotated on {where_from}\n\n");
        text +=
            &format!("Queries and keys of SmolLM2-135M, {tokens} tokens; the largest differences in each tensor:\n\n");
        let with_table = report.tensors.iter().any(|tensor| tensor.from_f64_with_table.is_some());
        let mut header = vec!["tensor", "shape", "largest value", "transformers", "float64"];
        header.extend(with_table.then_some("float64, table"));
        header.push("");
        let rows = report.tensors.iter().map(|tensor| {
            let mut row = vec![
                tensor.name.clone(),
                format!("{:?}", tensor.shape),
                format!("{:.2}", tensor.largest_value),
                format!("{:.1e}", tensor.from_transformers),
                format!("{:.1e}", tensor.from_f64),
            ];
            row.extend(tensor.from_f64_with_table.map(|error| format!("{error:.1e}")));
            row.push(if tensor.passed { "ok" } else { "OUT OF BOUNDS" }.into());
            row
        });
        text += &report::columns(&header, rows, &[2, 3, 4, 5]);
        if let Some((sizes, measured)) = measured {
            text.push('\n');
            text += &bandwidth(measured, *sizes);
        }
        text += if report.passed {
            "\nAll is well. "
        } else {
            "\nSomething is wrong: `phasor verify` tells which kernel. "
        };
        text += &next(report, activations.rope_theta, self.cpu);
        text
    }
}

/// Small enough for a first look, large enough to be out of the caches of most devices.
fn sizes(gpu: &Gpu) -> Sizes {
    if gpu.is_software() { Sizes { tokens: 512, rounds: 10, ..Sizes::default() } } else { Sizes::default() }
}

fn bandwidth(measured: &Measurement, sizes: Sizes) -> String {
    let Sizes { tokens, heads, kv_heads, head_dim, .. } = sizes;
    let copy = measured.fastest_baseline().map(|copy| ("a copy of the same bytes", copy));
    let named = |name: &str| measured.operations.iter().find(|timing| timing.name == name);
    let rotations = [
        ("rotation without a table", named("rotation, half-split, no table")),
        ("rotation from a table", named("rotation, half-split, table")),
    ];
    let rows = copy.into_iter().chain(rotations.into_iter().filter_map(|(name, timing)| Some((name, timing?))));
    let rows = rows.map(|(name, timing)| {
        vec![
            name.to_owned(),
            report::seconds(timing.time.minimum),
            format!("{:.1} GB/s", timing.gigabytes_per_second),
            format!("{:.2} x the copy's time", timing.over_baseline),
        ]
    });
    format!("{tokens} tokens, {heads} + {kv_heads} heads of {head_dim} channels:\n\n")
        + &report::columns(&[], rows, &[1, 2])
}

/// Commands that make sense now.
fn next(report: &Report, rope_theta: f64, by_choice: bool) -> String {
    let mut rows = match &report.device {
        None if !by_choice => vec![
            (
                "apt-get install mesa-vulkan-drivers".to_owned(),
                "a software device, on Debian and Ubuntu; or your GPU's driver",
            ),
            ("phasor info".to_owned(), "what is found then"),
        ],
        _ => vec![
            ("phasor verify".to_owned(), "every kernel variant on this device against float64"),
            ("phasor bench".to_owned(), "its speed in full"),
        ],
    };
    let tables = format!("phasor tables --rope '{{\"rope_theta\":{rope_theta}}}' --head-dim 64 --json");
    rows.extend([(tables, "this model's frequencies"), ("phasor rotate --help".to_owned(), "your own tensors")]);
    let lines = rows.into_iter().map(|(command, what)| format!("  {command}\n      {what}\n"));
    // Whoever came here by `cargo xtask demo` has no `phasor` on the PATH yet.
    let first = match std::env::var_os("CARGO") {
        Some(_) => " (after `cargo install --path demo`, or with `cargo run --release -p phasor-demo --` for `phasor`)",
        None => "",
    };
    format!("To go on{first}:\n{}", lines.collect::<String>())
}
