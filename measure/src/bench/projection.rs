//! Linear layers by each of their schedules; for few tokens beside a kernel that only reads the weights.

use super::read::Read;
use super::{Measurement, Operation, Subject, expect_buffers, expect_sizes, measure, noise, setting};
use crate::Progress;
use phasor::attention::{Projection, ProjectionSchedule};
use phasor::{ElementType, ErrorKind, Gpu, Prepared, Result, View};
use serde::{Deserialize, Serialize};

/// The tensors to measure on, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectionSizes {
    /// Tokens of the one batch row.
    pub tokens: u32,
    /// Inputs of each token.
    pub inputs: u32,
    /// Outputs of each token.
    pub outputs: u32,
    /// How often each operation is timed.
    pub rounds: u32,
}

impl ProjectionSizes {
    /// A square layer.
    #[must_use]
    pub fn square(tokens: u32, channels: u32) -> Self {
        Self { tokens, inputs: channels, outputs: channels, rounds: if tokens == 1 { 30 } else { 10 } }
    }

    /// Whether weights are read for so few tokens that memory bounds it.
    #[must_use]
    pub fn is_decode(&self) -> bool {
        self.tokens <= 4
    }

    /// Bytes of inputs, weights and outputs together.
    #[must_use]
    pub fn tensor_bytes(&self) -> u64 {
        let [tokens, inputs, outputs] = [self.tokens, self.inputs, self.outputs].map(u64::from);
        4 * (tokens * inputs + inputs * outputs + tokens * outputs)
    }

    /// Multiplications and additions.
    fn flop(&self) -> u64 {
        2 * u64::from(self.tokens) * u64::from(self.inputs) * u64::from(self.outputs)
    }

    pub(super) fn check(&self, gpu: &Gpu) -> Result<()> {
        /// As many as the kernel that reads the weights takes at once.
        const LEAST: u32 = 4;
        /// As many as all schedules are good for.
        const MOST: u32 = 1 << 15;
        if !(LEAST..=MOST).contains(&self.inputs) {
            return setting("inputs", self.inputs, format!("{LEAST} to {MOST}"));
        }
        let numbers = [("tokens", self.tokens), ("outputs", self.outputs), ("rounds", self.rounds)];
        expect_sizes(numbers, 1 << 20)?;
        let Self { tokens, inputs, outputs, .. } = *self;
        expect_buffers(gpu, [[1, tokens, inputs], [1, inputs, outputs], [1, tokens, outputs]])
    }
}

/// A layer's tensors.
struct Tensors {
    x: View,
    weight: View,
    y: View,
}

impl Tensors {
    fn new(gpu: &Gpu, sizes: &ProjectionSizes) -> Result<Self> {
        let [tokens, inputs, outputs] = [sizes.tokens, sizes.inputs, sizes.outputs].map(|n| n as usize);
        Ok(Self {
            x: noise(gpu, [1, tokens, 1, inputs])?,
            weight: noise(gpu, [1, outputs, 1, inputs])?,
            y: gpu.zeros(ElementType::F32, [1, tokens, 1, outputs])?,
        })
    }

    fn projection(&self) -> Projection {
        Projection::new(&self.x, &self.weight, &self.y)
    }
}

fn operation(name: &'static str, sizes: &ProjectionSizes, prepared: Prepared) -> Operation {
    Operation { flop: Some(sizes.flop()), ..Operation::prepared(name, sizes.tensor_bytes(), prepared) }
}

/// A square matrix product of about so many operations, as the library makes it on this device.
pub(super) fn matrix_product(gpu: &Gpu, flop: u64) -> Result<Operation> {
    let side = side(flop);
    let sizes = ProjectionSizes::square(side, side);
    sizes.check(gpu)?;
    Ok(operation("matrix product", &sizes, Tensors::new(gpu, &sizes)?.projection().prepare(gpu)?))
}

/// In whole tiles, and no larger than what fills any device.
fn side(flop: u64) -> u32 {
    const TILE: u32 = 64;
    const MOST: u32 = 4096;
    let tiles = (flop as f64 / 2.0).cbrt() / f64::from(TILE);
    (tiles.round() as u32).clamp(1, MOST / TILE) * TILE
}

/// The layer by each schedule that this device is made for.
///
/// # Errors
/// [`Setting`](phasor::ErrorKind::Setting) and [`Limit`](phasor::ErrorKind::Limit) for impossible sizes, and those of the
/// device.
pub fn projection_operations(gpu: &Gpu, sizes: &ProjectionSizes) -> Result<Vec<Operation>> {
    sizes.check(gpu)?;
    let tensors = Tensors::new(gpu, sizes)?;
    let mut all = Vec::new();
    if sizes.is_decode() {
        let read = Read::new(gpu, &[&tensors.weight])?;
        let bytes = 4 * tensors.weight.layout().elements() as u64;
        all.push(Operation::new("reading the weights", bytes, move |pass| read.record(pass)).baseline());
    }
    let chosen = name(&tensors.projection().prepare(gpu)?);
    for (title, schedule) in [
        ("linear, by tiles", ProjectionSchedule::Tiles),
        ("linear, by rows", ProjectionSchedule::Rows),
        ("linear, by dot products", ProjectionSchedule::Dots),
    ] {
        let prepared = match tensors.projection().schedule(schedule).prepare(gpu) {
            // Rows want subgroups.
            Err(error) if error.kind() == ErrorKind::Limit && error.argument() == "subgroup_min_size" => continue,
            prepared => prepared?,
        };
        let is_chosen = name(&prepared) == chosen;
        let operation = operation(title, sizes, prepared);
        all.push(if is_chosen && !sizes.is_decode() { operation.baseline() } else { operation });
    }
    Ok(all)
}

/// What tells schedules apart.
fn name(prepared: &Prepared) -> Option<String> {
    prepared.shaders().next().map(|shader| shader.name.clone())
}

/// Times every operation in turn.
///
/// # Errors
/// [`Setting`](phasor::ErrorKind::Setting) and [`Limit`](phasor::ErrorKind::Limit) for impossible sizes, and those of the
/// device.
pub async fn projection(gpu: &Gpu, sizes: ProjectionSizes, progress: Progress<'_>) -> Result<Measurement> {
    measure(gpu, Subject::Projection(sizes), || projection_operations(gpu, &sizes), progress).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_has_about_as_many_operations_as_was_asked_for() {
        assert_eq!([0, 2 << 27, 1 << 50].map(side), [64, 512, 4096]);
        let sizes = ProjectionSizes::square(3, 5);
        assert_eq!((sizes.flop(), sizes.tensor_bytes()), (2 * 3 * 5 * 5, 4 * (15 + 25 + 15)));
    }
}
