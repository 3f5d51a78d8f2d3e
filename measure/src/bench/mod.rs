//! Is it fast? Each operation beside what bounds it, interleaved in one run.

mod attention;
mod clock;
mod copy;
mod curve;
mod kernel;
mod projection;
mod read;
mod rotation;
mod variants;

pub use attention::{AttentionSizes, attention, attention_operations};
pub use clock::processor_time;
pub use curve::{Curve, CurveSizes, Curves, Exponent, Point, Stop, curves};
pub use projection::{ProjectionSizes, projection, projection_operations};
pub use rotation::{Sizes, operations, rotation};
pub use variants::{variants, variants_operations};

use crate::{Device, Progress, Step};
use clock::{Clock, Lap};
use phasor::{ElementType, Error, ErrorKind, Gpu, Prepared, Result, View};
use serde::Serialize;
use web_time::{Duration, Instant};

/// One operation, ready to be recorded.
pub struct Operation {
    /// What it does.
    pub name: &'static str,
    /// Bytes that it must read and write.
    pub bytes: u64,
    /// Multiplications and additions in its products; `None` where memory alone matters.
    pub flop: Option<u64>,
    /// Bytes of its tensors and of its scratch memory, where it has some.
    pub memory: Option<u64>,
    /// How many dispatches it takes; `None` for what is no part of the library.
    pub dispatches: Option<usize>,
    is_baseline: bool,
    record: Box<dyn Fn(&mut wgpu::ComputePass<'_>)>,
}

impl Operation {
    fn new(name: &'static str, bytes: u64, record: impl Fn(&mut wgpu::ComputePass<'_>) + 'static) -> Self {
        Self { name, bytes, flop: None, memory: None, dispatches: None, is_baseline: false, record: Box::new(record) }
    }

    fn prepared(name: &'static str, bytes: u64, prepared: Prepared) -> Self {
        let dispatches = Some(prepared.dispatches());
        Self { dispatches, ..Self::new(name, bytes, move |pass| prepared.record(pass)) }
    }

    /// One of those that others are measured by.
    fn baseline(mut self) -> Self {
        self.is_baseline = true;
        self
    }

    /// Records it into a pass.
    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        (self.record)(pass);
    }
}

/// What is measured, and on tensors of which sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Subject {
    /// Rotation and tables.
    Rotation(Sizes),
    /// Attention; decode steps if there are more keys than queries.
    Attention(AttentionSizes),
    /// A linear layer.
    Projection(ProjectionSizes),
    /// The same attention in every way that the library has.
    Variants(AttentionSizes),
}

impl Subject {
    /// Refuses sizes that cannot be, before anything is measured.
    ///
    /// # Errors
    /// [`Setting`](phasor::ErrorKind::Setting) and [`Limit`](phasor::ErrorKind::Limit), which name the size.
    pub fn check(self, gpu: &Gpu) -> Result<()> {
        match self {
            Self::Rotation(sizes) => sizes.check(gpu),
            Self::Attention(sizes) | Self::Variants(sizes) => sizes.check(gpu),
            Self::Projection(sizes) => sizes.check(gpu),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Rotation(_) => "rotation",
            Self::Attention(sizes) if sizes.is_decode() => "decode",
            Self::Attention(_) => "attention",
            Self::Projection(_) => "projection",
            Self::Variants(_) => "variants",
        }
    }

    fn baseline(self) -> &'static str {
        match self {
            Self::Rotation(_) => "the fastest copy",
            Self::Attention(sizes) if sizes.is_decode() => "reading keys and values",
            Self::Attention(_) => "fused, plain",
            Self::Variants(_) => "what is chosen, plain",
            Self::Projection(sizes) if sizes.is_decode() => "reading the weights",
            Self::Projection(_) => "the schedule that is chosen",
        }
    }

    fn rounds(self) -> u32 {
        match self {
            Self::Rotation(sizes) => sizes.rounds,
            Self::Attention(sizes) | Self::Variants(sizes) => sizes.rounds,
            Self::Projection(sizes) => sizes.rounds,
        }
    }
}

/// What a measurement came to.
#[derive(Debug, Clone, Serialize)]
pub struct Measurement {
    /// The device.
    pub device: Device,
    /// `rotation`, `attention`, `decode`, `projection` or `variants`.
    pub subject: &'static str,
    /// The tensors.
    pub sizes: Subject,
    /// How often each operation was timed: fewer than asked for where that took too long.
    pub rounds: u32,
    /// `device` if the times are from the device's own clock, `processor` if they are what all threads of the process
    /// used, which is what a software device costs, `wall` if from the host's clock.
    pub clock: &'static str,
    /// What `over_baseline` compares with.
    pub baseline: &'static str,
    /// Each operation.
    pub operations: Vec<Timing>,
}

/// One operation's times.
#[derive(Debug, Clone, Serialize)]
pub struct Timing {
    /// What was done.
    pub name: &'static str,
    /// Bytes that it must read and write.
    pub bytes: u64,
    /// Multiplications and additions in its products.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flop: Option<u64>,
    /// Bytes of its tensors and of its scratch memory: what it takes on the device at the most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// How many dispatches it takes, if it is an operation of the library: more than one where a limit has split it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatches: Option<usize>,
    /// By the clock that the measurement names.
    pub time: Statistics,
    /// From submission until the host knew, always.
    pub wall: Statistics,
    /// Bytes over the minimum of `time`, in 1e9 bytes per second.
    pub gigabytes_per_second: f64,
    /// Products over the minimum of `time`, in 1e9 per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gigaflops: Option<f64>,
    /// The minimum of `time` over that of the baseline.
    pub over_baseline: f64,
}

/// Times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Statistics {
    /// The shortest.
    pub minimum: f64,
    /// The one in the middle.
    pub median: f64,
    /// How far apart the quartiles lie: the middle half of all times is within this.
    pub spread: f64,
}

impl Statistics {
    /// Of at least one time.
    pub fn of(times: impl Iterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<_> = times.collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let quarter = |n: usize| sorted.get(n * sorted.len() / 4).copied();
        Some(Self { minimum: *sorted.first()?, median: quarter(2)?, spread: quarter(3)? - quarter(1)? })
    }
}

/// What comes before the first operation. Where a driver compiles kernels here, and not when they first run, it may take
/// longer than all that follows.
const MAKING: Step<'static> = Step { done: 0, total: 1, name: "making tensors, compiling kernels" };

/// On a software device, which the user shares with the rest of the machine, no new round begins after this.
const PATIENCE: Duration = Duration::from_secs(10);

impl Measurement {
    /// The fastest of those that others are measured by.
    #[must_use]
    pub fn fastest_baseline(&self) -> Option<&Timing> {
        // Others may be faster than a baseline, but none of the baselines is faster than this one.
        self.operations.iter().find(|timing| timing.over_baseline == 1.0)
    }
}

/// Times every operation in turn, round after round, so that all of them meet the same machine.
async fn measure(
    gpu: &Gpu,
    subject: Subject,
    make: impl FnOnce() -> Result<Vec<Operation>>,
    progress: Progress<'_>,
) -> Result<Measurement> {
    progress(MAKING);
    let operations = &make()?;
    let clock = Clock::new(gpu);
    let patience = gpu.is_software().then_some(PATIENCE);
    let laps = rounds(&clock, operations, subject.rounds(), patience, progress).await?;
    let (clock, timings) = evaluate(gpu, operations, &laps);
    Ok(Measurement {
        device: Device::from(gpu.info()),
        subject: subject.name(),
        baseline: subject.baseline(),
        sizes: subject,
        rounds: laps.first().map_or(0, |laps| laps.len() as u32),
        clock,
        operations: timings,
    })
}

/// The laps of each operation, of at least one round, after which none begins that would begin later than `patience`.
async fn rounds(
    clock: &Clock<'_>,
    operations: &[Operation],
    most: u32,
    patience: Option<Duration>,
    progress: Progress<'_>,
) -> Result<Vec<Vec<Lap>>> {
    let total = most.into();
    // The first run compiles and touches memory; it is not counted.
    for operation in operations {
        progress(Step { done: 0, total, name: &format!("first run, compiling: {}", operation.name) });
        clock.time(&|pass| operation.record(pass)).await?;
    }
    let mut laps: Vec<Vec<Lap>> = vec![Vec::new(); operations.len()];
    let begin = Instant::now();
    for round in 0..most {
        if round > 0 && patience.is_some_and(|patience| begin.elapsed() > patience) {
            break;
        }
        for (operation, laps) in operations.iter().zip(&mut laps) {
            progress(Step { done: round.into(), total, name: operation.name });
            laps.push(clock.time(&|pass| operation.record(pass)).await?);
        }
    }
    Ok(laps)
}

/// The clock that all laps have, and what each operation came to by it.
fn evaluate(gpu: &Gpu, operations: &[Operation], laps: &[Vec<Lap>]) -> (&'static str, Vec<Timing>) {
    let all = || laps.iter().flatten();
    let by_processor = gpu.is_software() && all().all(|lap| lap.processor.is_some());
    let by_device = !by_processor && all().all(|lap| lap.device.is_some());
    let time = |lap: &Lap| match (by_processor, by_device) {
        (true, _) => lap.processor.unwrap_or(lap.wall),
        (_, true) => lap.device.unwrap_or(lap.wall),
        _ => lap.wall,
    };
    let mut timings: Vec<_> = operations
        .iter()
        .zip(laps)
        .filter_map(|(operation, laps)| {
            let own = Statistics::of(laps.iter().map(time))?;
            let giga = |n: u64| n as f64 / own.minimum / 1e9;
            Some(Timing {
                name: operation.name,
                bytes: operation.bytes,
                flop: operation.flop,
                memory: operation.memory,
                dispatches: operation.dispatches,
                time: own,
                wall: Statistics::of(laps.iter().map(|lap| lap.wall))?,
                gigabytes_per_second: giga(operation.bytes),
                gigaflops: operation.flop.map(giga),
                over_baseline: f64::NAN,
            })
        })
        .collect();
    let baselines = operations.iter().zip(&timings).filter(|(operation, _)| operation.is_baseline);
    let baseline = baselines.map(|(_, timing)| timing.time.minimum).fold(f64::INFINITY, f64::min);
    for timing in &mut timings {
        timing.over_baseline = timing.time.minimum / baseline;
    }
    let clock = match (by_processor, by_device) {
        (true, _) => "processor",
        (_, true) => "device",
        _ => "wall",
    };
    (clock, timings)
}

/// A tensor of numbers from -1 to 1: zeros might be cheaper than what models hold.
fn noise(gpu: &Gpu, shape: [usize; 4]) -> Result<View> {
    noise_as(gpu, ElementType::F32, shape)
}

/// As [`noise`], in an element type.
fn noise_as(gpu: &Gpu, element: ElementType, shape: [usize; 4]) -> Result<View> {
    let mut random = fastrand::Rng::with_seed(shape[2] as u64);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| random.f32() * 2.0 - 1.0).collect();
    gpu.upload_as(element, &values, shape)
}

/// Refuses a size that is nothing, or more than this.
fn expect_sizes<const N: usize>(sizes: [(&str, u32); N], most: u32) -> Result<()> {
    match sizes.into_iter().find(|(_, was)| *was == 0 || *was > most) {
        None => Ok(()),
        Some((field, was)) => setting(field, was, format!("1 to {most}")),
    }
}

/// Refuses heads that no rotation can turn.
fn expect_even_heads(head_dim: u32) -> Result<()> {
    if head_dim.is_multiple_of(2) { Ok(()) } else { setting("head-dim", head_dim, "an even number".into()) }
}

fn setting(field: &str, was: u32, may_be: String) -> Result<()> {
    Err(Error::new(ErrorKind::Setting, field, was.to_string(), may_be))
}

/// Refuses tensors of so many elements each that the device has no buffers for, before the host makes them.
fn expect_buffers<const N: usize>(gpu: &Gpu, tensors: [[u32; 3]; N]) -> Result<()> {
    let bytes = tensors.map(|factors| factors.into_iter().map(u64::from).fold(4, u64::saturating_mul));
    let (largest, most) = (bytes.into_iter().max().unwrap_or_default(), gpu.limits().max_buffer_size);
    if largest <= most {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Limit,
        "max_buffer_size",
        format!("{largest} bytes for a tensor"),
        format!("up to {most} bytes on this device"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        let statistics = Statistics::of([5.0, 1.0, 9.0, 4.0].into_iter());
        assert_eq!(statistics, Some(Statistics { minimum: 1.0, median: 5.0, spread: 9.0 - 4.0 }));
        let one = Statistics::of([7.0].into_iter());
        assert_eq!(one, Some(Statistics { minimum: 7.0, median: 7.0, spread: 0.0 }));
        assert_eq!(Statistics::of(std::iter::empty()), None);
    }
}
