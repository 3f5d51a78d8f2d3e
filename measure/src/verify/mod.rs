//! Is this device right? Every variant of the rotation's kernels against the f64 reference, at positions near and far, and
//! attention with every option, cut in every way.

mod attention;
mod attention_bound;
mod bound;
mod case;
mod projection;
mod rotation;
mod table;
mod tally;

pub use bound::Bound;
pub(crate) use bound::U;
pub use tally::VariantCheck;

use crate::{Device, Progress, Step};
use phasor::{ElementType, Gpu, Result};
use serde::Serialize;
use std::collections::BTreeSet;
use tally::Tally;

/// What a device's kernels came to.
#[derive(Debug, Clone, Serialize)]
pub struct Verification {
    /// The device that was checked.
    pub device: Device,
    /// How much was checked.
    pub extent: Extent,
    /// Whether every number of every variant was within its bound.
    pub passed: bool,
    /// How many numbers were compared.
    pub values: u64,
    /// Each variant that ran, and how near its bound it came. What several kernels make together counts for each.
    pub variants: Vec<VariantCheck>,
    /// Tasks that this device's limits do not allow, in words: the library refuses them.
    pub refused: Vec<String>,
    /// Finished shaders of the rotation and its table that this device's plans never chose.
    pub not_reached: BTreeSet<String>,
    /// Kernels that are not checked here at all.
    pub not_checked: BTreeSet<String>,
}

/// Runs every variant of the rotation's and the table's kernels on this device, and attention and contextual encoding with
/// every option, and compares each number with the f64 reference.
///
/// Views lie between other numbers, all of which must come back as they were. Positions reach to 2^24 - 1 and back to
/// its negative, and to both ends of i32, where the bound grows by what the phase is known to lose.
///
/// # Errors
/// Those of the device. A wrong number is no error but a [`Verification`] that did not pass.
pub async fn verify(gpu: &Gpu, extent: Extent, progress: Progress<'_>) -> Result<Verification> {
    let mut tally = Tally::default();
    let tables = extent.of(table::cases()?);
    let rotations = extent.of(case::cases());
    let attentions = extent.of(attention::cases());
    let projections = extent.of(projection::cases());
    let total = tables.len() + rotations.len() + attentions.len() + projections.len() + 2;
    let mut steps = Steps { done: 0, total: total as u64, progress };
    for table in &tables {
        steps.next("tables");
        table::check(gpu, table, &mut tally).await?;
    }
    let mut bench = rotation::Bench::new(gpu)?;
    for rotation in &rotations {
        steps.next("rotations");
        bench.check(rotation, &mut tally).await?;
    }
    for case in &attentions {
        steps.next("attention");
        attention::check(gpu, case, &mut tally).await?;
    }
    for case in &projections {
        steps.next("projections");
        projection::check(gpu, case, &mut tally).await?;
    }
    steps.next("contextual bias");
    for element in FLOATS {
        attention::check_bias(gpu, element, &mut tally).await?;
    }
    steps.next("merges");
    for own in FLOATS {
        for other in FLOATS {
            attention::check_merge(gpu, [own, other], &mut tally).await?;
        }
    }
    let (values, refused) = (tally.values, std::mem::take(&mut tally.refused));
    let variants = tally.into_variants();
    let names: Vec<_> = phasor::gpu::shaders().into_iter().map(|shader| shader.name).collect();
    let is_checked = |name: &str| variants.iter().any(|variant| kernel(&variant.shader) == kernel(name));
    let is_reached = |name: &str| variants.iter().any(|variant| variant.shader == name);
    let names = || names.iter().map(String::as_str);
    // Of some tasks nobody can say what others would have chosen.
    let of_list = names().filter(|name| extent == Extent::All && LISTED_IN_FULL.contains(&kernel(name)));
    let not_reached: BTreeSet<_> = of_list.filter(|name| !is_reached(name)).map(str::to_owned).collect();
    let not_checked: BTreeSet<_> =
        names().filter(|name| !is_checked(name)).map(|name| kernel(name).to_owned()).collect();
    Ok(Verification {
        device: Device::from(gpu.info()),
        extent,
        passed: variants.iter().all(|variant| variant.passed),
        values,
        variants,
        refused,
        not_reached,
        not_checked,
    })
}

/// How much is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// Every variant. On a software device that takes minutes, most of them for compiling shaders.
    All,
    /// One task in seven, of every kind.
    Some,
}

impl Extent {
    fn of<T>(self, cases: Vec<T>) -> Vec<T> {
        match self {
            Self::All => cases,
            Self::Some => cases.into_iter().step_by(7).collect(),
        }
    }
}

/// Kernels of which every variant is among the finished shaders; of others there are too many, and some of every kind are.
const LISTED_IN_FULL: [&str; 2] = ["rope_rotate", "rope_table"];

const FLOATS: [ElementType; 3] = [ElementType::F32, ElementType::F16, ElementType::BF16];

/// Tells how far the run is.
struct Steps<'a> {
    done: u64,
    total: u64,
    progress: Progress<'a>,
}

impl Steps<'_> {
    fn next(&mut self, name: &str) {
        (self.progress)(Step { done: self.done, total: self.total, name });
        self.done += 1;
    }
}

/// The kernel of a variant: what its name begins with.
fn kernel(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}
