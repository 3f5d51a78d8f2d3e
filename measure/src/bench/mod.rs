//! Is it fast? Rotation and table beside a copy of the same bytes, interleaved in one run.

mod clock;
mod copy;
mod operations;

pub use operations::{Operation, operations};

use crate::{Device, Progress, Step};
use clock::{Clock, Lap};
use phasor::{Error, Gpu, Result};
use serde::Serialize;
use web_time::{Duration, Instant};

/// The tensors to measure on, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// Tokens of the one batch row.
    pub tokens: u32,
    /// Query heads.
    pub heads: u32,
    /// Key heads.
    pub kv_heads: u32,
    /// Channels of a head: a multiple of 8.
    pub head_dim: u32,
    /// How often each operation is timed.
    pub rounds: u32,
}

impl Default for Sizes {
    /// A prompt of 2,048 tokens in a model of 7 or 8 billion parameters, as Llama 3 and Mistral have it.
    fn default() -> Self {
        Self { tokens: 2048, heads: 32, kv_heads: 8, head_dim: 128, rounds: 30 }
    }
}

impl Sizes {
    /// Bytes of queries and keys together.
    #[must_use]
    pub fn tensor_bytes(&self) -> u64 {
        let heads = u64::from(self.heads) + u64::from(self.kv_heads);
        u64::from(self.tokens).saturating_mul(heads).saturating_mul(u64::from(self.head_dim)).saturating_mul(4)
    }

    /// Refuses what no copy kernel could be shaped for, or the device does not hold in one binding.
    fn check(&self, gpu: &Gpu) -> Result<()> {
        let setting = |field: &str, was: u32, may_be: &str| {
            Err(Error::Setting { field: field.into(), was: was.to_string(), may_be: may_be.into() })
        };
        for (field, was) in
            [("tokens", self.tokens), ("heads", self.heads), ("kv-heads", self.kv_heads), ("rounds", self.rounds)]
        {
            if was == 0 {
                return setting(field, was, "at least 1");
            }
        }
        if self.head_dim == 0 || !self.head_dim.is_multiple_of(8) || self.head_dim > 512 {
            return setting("head-dim", self.head_dim, "a multiple of 8 up to 512");
        }
        if self.tokens > 65_535 {
            return setting("tokens", self.tokens, "at most 65535");
        }
        let largest = u64::from(self.tokens) * u64::from(self.heads.max(self.kv_heads)) * u64::from(self.head_dim) * 4;
        let allowed = gpu.limits().max_storage_buffer_binding_size;
        if largest > allowed {
            return Err(Error::Limit {
                limit: "max_storage_buffer_binding_size".into(),
                was: format!("{largest} bytes for {} tokens", self.tokens),
                may_be: format!("up to {allowed} bytes on this device"),
            });
        }
        Ok(())
    }
}

/// What a measurement came to.
#[derive(Debug, Clone, Serialize)]
pub struct Measurement {
    /// The device.
    pub device: Device,
    /// The tensors.
    pub sizes: Sizes,
    /// How often each operation was timed: fewer than asked for where that took too long.
    pub rounds: u32,
    /// `device` if the times are from the device's own clock, `processor` if they are what all threads of the process
    /// used, which is what a software device costs, `wall` if from the host's clock.
    pub clock: &'static str,
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
    /// By the clock that the measurement names.
    pub time: Statistics,
    /// From submission until the host knew, always.
    pub wall: Statistics,
    /// Bytes over the minimum of `time`, in 1e9 bytes per second.
    pub gigabytes_per_second: f64,
    /// The minimum of `time` over that of the fastest copy.
    pub over_copy: f64,
}

/// Times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Statistics {
    /// The shortest.
    pub minimum: f64,
    /// The one in the middle.
    pub median: f64,
}

impl Statistics {
    /// Of at least one time.
    fn of(times: impl Iterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<_> = times.collect();
        sorted.sort_unstable_by(f64::total_cmp);
        Some(Self { minimum: *sorted.first()?, median: *sorted.get(sorted.len() / 2)? })
    }
}

/// On a software device, which the user shares with the rest of the machine, no new round begins after this.
const PATIENCE: Duration = Duration::from_secs(10);

impl Measurement {
    /// The fastest copy's share of an operation's time is the best that this operation can have.
    #[must_use]
    pub fn fastest_copy(&self) -> Option<&Timing> {
        let copies = self.operations.iter().filter(|timing| timing.name.starts_with("copy"));
        copies.min_by(|a, b| a.time.minimum.total_cmp(&b.time.minimum))
    }
}

/// Times every operation in turn, round after round, so that all of them meet the same machine.
///
/// # Errors
/// [`Error::Setting`] and [`Error::Limit`] for impossible sizes, and those of the device.
pub async fn bench(gpu: &Gpu, sizes: Sizes, progress: Progress<'_>) -> Result<Measurement> {
    let operations = operations(gpu, &sizes)?;
    let clock = Clock::new(gpu);
    // The first run compiles and touches memory; it is not counted.
    for operation in &operations {
        progress(Step { done: 0, total: sizes.rounds.into(), name: "warming up" });
        clock.time(&|pass| operation.record(pass)).await?;
    }
    let mut laps: Vec<Vec<Lap>> = vec![Vec::new(); operations.len()];
    let begin = Instant::now();
    let mut rounds = 0;
    while rounds < sizes.rounds && !(rounds > 0 && gpu.is_software() && begin.elapsed() > PATIENCE) {
        for (operation, laps) in operations.iter().zip(&mut laps) {
            progress(Step { done: rounds.into(), total: sizes.rounds.into(), name: operation.name });
            laps.push(clock.time(&|pass| operation.record(pass)).await?);
        }
        rounds += 1;
    }
    Ok(evaluate(gpu, sizes, rounds, &operations, &laps))
}

fn evaluate(gpu: &Gpu, sizes: Sizes, rounds: u32, operations: &[Operation], laps: &[Vec<Lap>]) -> Measurement {
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
            Some(Timing {
                name: operation.name,
                bytes: operation.bytes,
                time: own,
                wall: Statistics::of(laps.iter().map(|lap| lap.wall))?,
                gigabytes_per_second: operation.bytes as f64 / own.minimum / 1e9,
                over_copy: f64::NAN,
            })
        })
        .collect();
    let copies =
        operations.iter().zip(&timings).filter(|(operation, _)| matches!(operation.kind, operations::Kind::Copy(_)));
    let copy = copies.map(|(_, timing)| timing.time.minimum).fold(f64::INFINITY, f64::min);
    for timing in &mut timings {
        timing.over_copy = timing.time.minimum / copy;
    }
    let clock = match (by_processor, by_device) {
        (true, _) => "processor",
        (_, true) => "device",
        _ => "wall",
    };
    Measurement { device: Device::from(gpu.info()), sizes, rounds, clock, operations: timings }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        let statistics = Statistics::of([5.0, 1.0, 9.0].into_iter());
        assert_eq!(statistics, Some(Statistics { minimum: 1.0, median: 5.0 }));
        assert_eq!(Statistics::of(std::iter::empty()), None);
    }

    #[test]
    fn sizes_are_counted_in_bytes() {
        assert_eq!(Sizes::default().tensor_bytes(), 2048 * 40 * 128 * 4);
    }
}
