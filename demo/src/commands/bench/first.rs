//! How long the first result takes, in a process that has just begun.

use crate::adapter;
use crate::failure::Failure;
use clap::ValueEnum;
use phasor::attention::{Attention, ContextualPe, Fused};
use phasor::frequencies::Plain;
use phasor::{ElementType, Gpu, Pairing, Prepared, Rope, Rotate, View};
use phasor_measure::Device;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What the first result is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// A rotation of one token's queries and keys: a small kernel
    Rotation,
    /// Fused attention with contextual encoding of 64 tokens: a large one
    Attention,
}

impl Work {
    /// In a few words.
    pub fn told(self) -> &'static str {
        match self {
            Self::Rotation => "rotation of a token",
            Self::Attention => "attention of 64",
        }
    }
}

/// A first result and its parts.
#[derive(Debug, Serialize)]
pub struct FirstResult {
    /// The device.
    pub device: Device,
    /// What was computed.
    pub work: Work,
    /// `cold` if the driver began with an empty shader cache, `warm` if with what the run before left there, `system` if
    /// with the system's own, whatever that held.
    pub shader_cache: &'static str,
    /// From the start of the process to numbers on the host, in seconds.
    pub seconds: f64,
    /// What came one after the other, in seconds.
    pub parts: Vec<(String, f64)>,
}

/// What a process says of its own first result.
#[derive(Debug, Serialize, Deserialize)]
pub struct Here {
    device: Device,
    /// When it began to work, in seconds since 1970.
    began: f64,
    parts: Vec<(String, f64)>,
}

/// Where drivers on Linux look for their shader cache: Mesa's, NVIDIA's, and whatever else keeps to the desktop's rules.
const CACHES: [&str; 3] = ["MESA_SHADER_CACHE_DIR", "__GL_SHADER_DISK_CACHE_PATH", "XDG_CACHE_HOME"];

/// Each work in processes of its own: with an empty shader cache and then with what that left, where one can choose it.
pub fn measure(wanted: Option<&str>) -> Result<Vec<FirstResult>, Failure> {
    let mut results = Vec::new();
    for work in [Work::Rotation, Work::Attention] {
        if cfg!(target_os = "linux") {
            let cache = tempfile::tempdir().map_err(|e| Failure::new(format!("a directory for shader caches: {e}")))?;
            results.push(elsewhere(wanted, work, "cold", Some(cache.path()))?);
            results.push(elsewhere(wanted, work, "warm", Some(cache.path()))?);
        } else {
            results.push(elsewhere(wanted, work, "system", None)?);
        }
    }
    Ok(results)
}

/// In a process that is started for it.
fn elsewhere(
    wanted: Option<&str>,
    work: Work,
    shader_cache: &'static str,
    cache: Option<&Path>,
) -> Result<FirstResult, Failure> {
    let failed = |problem: String| Failure::new(format!("the first result, in a process of its own: {problem}"));
    let mut command = Command::new(std::env::current_exe().map_err(|e| failed(e.to_string()))?);
    command.args(wanted.iter().flat_map(|name| ["--adapter", name]));
    let name = work.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    command.args(["bench", "--first", &name]);
    if let Some(cache) = cache {
        command.envs(CACHES.map(|variable| (variable, cache)));
    }
    let start = now();
    let output = command.output().map_err(|e| failed(e.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let Here { device, began, mut parts } =
        serde_json::from_slice(&output.stdout).map_err(|e| failed(e.to_string()))?;
    parts.insert(0, ("process".to_owned(), (began - start).max(0.0)));
    let seconds = parts.iter().map(|(_, seconds)| seconds).sum();
    Ok(FirstResult { device, work, shader_cache, seconds, parts })
}

/// Seconds since 1970, which two processes agree on.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Times one thing after the other.
struct Parts {
    done: Vec<(String, f64)>,
    last: Instant,
}

impl Parts {
    /// What took from the last time until now.
    fn done(&mut self, name: &str) {
        let last = std::mem::replace(&mut self.last, Instant::now());
        self.done.push((name.to_owned(), (self.last - last).as_secs_f64()));
    }
}

/// In this process. A pipeline's part holds all checks and bind groups, too; some drivers compile no earlier than in the
/// first dispatch.
pub fn here(wanted: Option<&str>, work: Work) -> Result<Here, Failure> {
    let began = now();
    let mut parts = Parts { done: Vec::new(), last: Instant::now() };
    let adapter = adapter::choose(wanted)?;
    parts.done("adapter");
    let gpu = Gpu::on_blocking(&adapter)?;
    parts.done("device");
    let (prepared, result) = match work {
        Work::Rotation => rotation(&gpu, &mut parts)?,
        Work::Attention => attention(&gpu, &mut parts)?,
    };
    parts.done("pipeline");
    gpu.submit(|pass| prepared.record(pass))?;
    gpu.wait()?;
    parts.done("dispatch");
    gpu.read_blocking(&result)?;
    parts.done("read back");
    Ok(Here { device: Device::from(gpu.info()), began, parts: parts.done })
}

fn ones(gpu: &Gpu, shape: [usize; 4]) -> phasor::Result<View> {
    gpu.upload(&vec![1.0; shape.iter().product()], shape)
}

fn rotation(gpu: &Gpu, parts: &mut Parts) -> phasor::Result<(Prepared, View)> {
    let rope = Rope::new(gpu, &Plain::new(10_000.0).frequencies(128)?, Pairing::HalfSplit)?;
    let (q, k) = (ones(gpu, [1, 1, 32, 128])?, ones(gpu, [1, 1, 8, 128])?);
    parts.done("tensors");
    Ok((rope.prepare(&Rotate::in_place(&q).and_in_place(&k))?, q))
}

fn attention(gpu: &Gpu, parts: &mut Parts) -> phasor::Result<(Prepared, View)> {
    const SHAPE: [usize; 4] = [1, 64, 8, 64];
    let (q, embeddings) = (ones(gpu, SHAPE)?, ones(gpu, [1, 64, 1, 64])?);
    let out = gpu.zeros(ElementType::F32, SHAPE)?;
    parts.done("tensors");
    let request = Attention::new(&q, &q, &q).causal().cope(ContextualPe::new(&embeddings));
    Ok((Fused::new(&request, &out).prepare(gpu)?, out))
}
