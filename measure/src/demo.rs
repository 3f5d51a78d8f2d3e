//! Real activations, rotated and compared with what transformers computes and with f64.

use crate::activations::{Activation, Activations};
use crate::verify::{Bound, U};
use crate::{Device, Progress, Step};
use phasor::frequencies::{Frequencies, Plain};
use phasor::{Direction, Gpu, Layout, Pairing, Result, Rope, RopeTable, Rotate, reference};
use serde::Serialize;

/// What the demo came to.
#[derive(Debug, Clone, Serialize)]
pub struct Demo {
    /// The device; none if the CPU reference did the work.
    pub device: Option<Device>,
    /// Each tensor.
    pub tensors: Vec<Rotated>,
    /// Whether every number was within its bounds.
    pub passed: bool,
}

/// One tensor's comparison.
#[derive(Debug, Clone, Serialize)]
pub struct Rotated {
    /// Its name in the file.
    pub name: String,
    /// `[batch, tokens, heads, channels]`.
    pub shape: [usize; 4],
    /// The largest number in it, for scale.
    pub largest_value: f64,
    /// The largest difference from what transformers computed, in f32.
    pub from_transformers: f64,
    /// The largest difference from the f64 reference, by a rotation without a table.
    pub from_f64: f64,
    /// The same, by a rotation from a table; none where the CPU reference did the work.
    pub from_f64_with_table: Option<f64>,
    /// Whether every number was within its bounds.
    pub passed: bool,
}

/// Rotates activations on a device, or with the CPU reference if there is none.
///
/// # Errors
/// Those of the device, and [`Tensor`](phasor::ErrorKind::Tensor) for activations whose shapes do not fit together.
pub async fn demo(gpu: Option<&Gpu>, activations: &Activations, progress: Progress<'_>) -> Result<Demo> {
    let frequencies = Plain::new(activations.rope_theta).frequencies(activations.head_dim)?;
    let total = activations.tensors.len() as u64;
    let mut tensors = Vec::new();
    for (done, activation) in (0..).zip(&activations.tensors) {
        progress(Step { done, total, name: &activation.name });
        let exact = exact(activation, &frequencies)?;
        let (got, with_table) = match gpu {
            Some(gpu) => {
                let rope = Rope::new(gpu, &frequencies, Pairing::HalfSplit)?;
                let table = rope.table(0, activation.shape[1])?;
                let without = on_device(gpu, &rope, activation, None).await?;
                (without, Some(on_device(gpu, &rope, activation, Some(&table)).await?))
            }
            None => (exact.iter().map(|&x| x as f32).collect(), None),
        };
        tensors.push(compare(activation, &frequencies, &exact, &got, with_table.as_deref()));
    }
    let passed = tensors.iter().all(|tensor| tensor.passed);
    Ok(Demo { device: gpu.map(|gpu| Device::from(gpu.info())), tensors, passed })
}

fn exact(activation: &Activation, frequencies: &Frequencies) -> Result<Vec<f64>> {
    let mut x: Vec<f64> = activation.before.iter().map(|&x| x.into()).collect();
    let layout = Layout::contiguous(activation.shape)?;
    reference::rope_rotate(&mut x, layout, frequencies, Pairing::HalfSplit, 0, Direction::Forward, |_, t| t as i32)?;
    Ok(x)
}

async fn on_device(gpu: &Gpu, rope: &Rope, activation: &Activation, table: Option<&RopeTable>) -> Result<Vec<f32>> {
    let x = gpu.upload(&activation.before, activation.shape)?;
    let rotate = Rotate::in_place(&x);
    let rotation = rope.prepare(&match table {
        Some(table) => rotate.from_table(table),
        None => rotate,
    })?;
    gpu.submit(|pass| {
        if let Some(table) = table {
            table.record(pass);
        }
        rotation.record(pass);
    })?;
    gpu.read(&x).await
}

fn compare(
    activation: &Activation,
    frequencies: &Frequencies,
    exact: &[f64],
    got: &[f32],
    with_table: Option<&[f32]>,
) -> Rotated {
    let Activation { name, shape, before, after } = activation;
    let [_, tokens, heads, channels] = *shape;
    let bound = Bound::new(frequencies.attention_factor());
    let mut rotated = Rotated {
        name: name.clone(),
        shape: *shape,
        largest_value: before.iter().map(|&x| f64::from(x).abs()).fold(0.0, f64::max),
        from_transformers: 0.0,
        from_f64: 0.0,
        from_f64_with_table: with_table.map(|_| 0.0),
        passed: got.len() == exact.len(),
    };
    let pairs = frequencies.pairs();
    for (i, (((&exact, &got), &after), row)) in exact.iter().zip(got).zip(after).zip(rows(before, channels)).enumerate()
    {
        let position = i / (channels * heads) % tokens;
        let pair = i % channels % pairs;
        let (x0, x1) = (row[pair], row[pair + pairs]);
        let ours = bound.rotation(position as i32, x0, x1);
        // transformers rounds the frequency (a power: 2 u), the angle (u), cosine and sine (u each, and their functions
        // another), and rotates as we do.
        let angle = position as f64 * frequencies.inv_freq()[pair];
        let size = f64::from(x0).abs() + f64::from(x1).abs();
        let theirs = (3.0 * angle + 2.0) * U * size + 2.0 * U * size;
        let from_transformers = (f64::from(got) - f64::from(after)).abs();
        let from_f64 = (f64::from(got) - exact).abs();
        rotated.from_transformers = rotated.from_transformers.max(from_transformers);
        rotated.from_f64 = rotated.from_f64.max(from_f64);
        rotated.passed &= from_transformers <= ours + theirs && from_f64 <= ours;
        if let (Some(largest), Some(&got)) = (&mut rotated.from_f64_with_table, with_table.and_then(|list| list.get(i)))
        {
            let error = (f64::from(got) - exact).abs();
            *largest = largest.max(error);
            rotated.passed &= error <= ours;
        }
    }
    rotated
}

/// For each number, the head that it belongs to.
fn rows(values: &[f32], channels: usize) -> impl Iterator<Item = &[f32]> {
    values.chunks(channels).flat_map(|row| std::iter::repeat_n(row, row.len()))
}
