//! Is this device right? Every kernel variant against the f64 reference, at positions near and far.

mod bound;
mod case;
mod rotation;
mod table;
mod tally;

pub use bound::Bound;
pub(crate) use bound::U;
pub use tally::VariantCheck;

use crate::{Device, Progress, Step};
use phasor::{Gpu, Result};
use serde::Serialize;
use tally::Tally;

/// What a device's kernels came to.
#[derive(Debug, Clone, Serialize)]
pub struct Verification {
    /// The device that was checked.
    pub device: Device,
    /// Whether every number of every variant was within its bound.
    pub passed: bool,
    /// Each variant that ran, and how near its bound it came.
    pub variants: Vec<VariantCheck>,
    /// Finished shaders that this device's plans never chose.
    pub not_reached: Vec<String>,
}

/// Runs every kernel variant on this device and compares each number with the f64 reference.
///
/// Views lie between other numbers, all of which must come back as they were. Positions reach to 2^24 - 1 and back to
/// its negative, and to both ends of i32, where the bound grows by what the phase is known to lose.
///
/// # Errors
/// Those of the device. A wrong number is no error but a [`Verification`] that did not pass.
pub async fn verify(gpu: &Gpu, progress: Progress<'_>) -> Result<Verification> {
    let mut tally = Tally::default();
    let tables = table::cases()?;
    let rotations = case::cases();
    let total = (tables.len() + rotations.len()) as u64;
    for (done, table) in (0..).zip(&tables) {
        progress(Step { done, total, name: "tables" });
        table::check(gpu, table, &mut tally).await?;
    }
    let mut bench = rotation::Bench::new(gpu)?;
    for (done, case) in (tables.len() as u64..).zip(&rotations) {
        progress(Step { done, total, name: "rotations" });
        bench.check(case, &mut tally).await?;
    }
    let variants = tally.into_variants();
    let reached = |name: &str| variants.iter().any(|variant| variant.shader == name);
    let mut not_reached: Vec<_> =
        phasor::gpu::shaders().into_iter().map(|shader| shader.name).filter(|name| !reached(name)).collect();
    not_reached.dedup();
    Ok(Verification {
        device: Device::from(gpu.info()),
        passed: variants.iter().all(|variant| variant.passed),
        variants,
        not_reached,
    })
}
