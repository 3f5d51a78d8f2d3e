//! Is this device right? Every variant of the rotation's kernels against the f64 reference, at positions near and far.

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
use std::collections::BTreeSet;
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
    /// Finished shaders of these kernels that this device's plans never chose.
    pub not_reached: BTreeSet<String>,
    /// Kernels that are not checked here at all.
    pub not_checked: BTreeSet<String>,
}

/// Runs every variant of the rotation's and the table's kernels on this device and compares each number with the f64 reference.
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
    let names: Vec<_> = phasor::gpu::shaders().into_iter().map(|shader| shader.name).collect();
    let is_checked = |name: &str| variants.iter().any(|variant| kernel(&variant.shader) == kernel(name));
    let is_reached = |name: &str| variants.iter().any(|variant| variant.shader == name);
    let (checked, others): (Vec<&str>, Vec<&str>) = names.iter().map(String::as_str).partition(|name| is_checked(name));
    let not_reached: BTreeSet<_> = checked.into_iter().filter(|name| !is_reached(name)).map(str::to_owned).collect();
    let not_checked: BTreeSet<_> = others.into_iter().map(|name| kernel(name).to_owned()).collect();
    Ok(Verification {
        device: Device::from(gpu.info()),
        passed: variants.iter().all(|variant| variant.passed),
        variants,
        not_reached,
        not_checked,
    })
}

/// The kernel of a variant: what its name begins with.
fn kernel(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}
