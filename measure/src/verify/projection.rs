//! Linear layers: every way to cut the work, with every kind of storage.

use super::bound::{U, stored};
use super::tally::{Compared, Tally};
use phasor::attention::{Projection, ProjectionSchedule};
use phasor::reference::{Tensor, projection};
use phasor::{ElementType, ErrorKind, Gpu, Layout, Result, View};
use std::fmt;

/// One layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    schedule: ProjectionSchedule,
    x: ElementType,
    weight: ElementType,
    bias: bool,
    tokens: usize,
    /// Of one head, or in three that lie apart.
    inputs: usize,
    heads: usize,
    outputs: usize,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schedule, x, weight, bias, tokens, inputs, heads, outputs } = self;
        let bias = if *bias { "with a bias" } else { "without a bias" };
        let from = format!("{tokens} tokens of {inputs} inputs of {heads} heads in {x}");
        write!(f, "{schedule:?}, {from}, {outputs} outputs, weights in {weight}, {bias}")
    }
}

/// Inputs and outputs that come in fours and such that do not; more of them than a tile takes at once.
pub(super) fn cases() -> Vec<Case> {
    use ElementType::{BF16, F16, F32};
    let stored = [(F32, F32), (F32, F16), (BF16, BF16), (F16, F16)];
    let tokens = [(ProjectionSchedule::Tiles, 67), (ProjectionSchedule::Rows, 67), (ProjectionSchedule::Dots, 3)];
    let tokens = tokens.into_iter().chain([(ProjectionSchedule::Dots, 1)]);
    tokens
        .flat_map(|(schedule, tokens)| {
            stored.into_iter().flat_map(move |(x, weight)| {
                let shapes = [(72, 1, 72), (72, 3, 68), (37, 1, 70), (36, 3, 70)];
                shapes.into_iter().flat_map(move |(inputs, heads, outputs)| {
                    let case = Case { schedule, x, weight, bias: false, tokens, inputs, heads, outputs };
                    [case, Case { bias: true, ..case }]
                })
            })
        })
        .collect()
}

/// Numbers from -1 to 1 that this element type holds exactly, in f32 and in f64; products of most are rounded.
fn random(noise: &mut fastrand::Rng, element: ElementType, n: usize) -> (Vec<f32>, Vec<f64>) {
    let mut one = || match element.bytes() {
        2 => noise.i32(-128..=128) as f32 / 128.0,
        _ => noise.f32() * 2.0 - 1.0,
    };
    (0..n).map(|_| one()).map(|x| (x, f64::from(x))).unzip()
}

fn tensor(numbers: &[f64], shape: [usize; 4]) -> Result<Tensor<'_>> {
    Tensor::new(numbers, Layout::contiguous(shape)?)
}

pub(super) async fn check(gpu: &Gpu, case: &Case, tally: &mut Tally) -> Result<()> {
    let Case { x, weight, tokens, inputs, heads, outputs, .. } = *case;
    let mut noise = fastrand::Rng::with_seed(inputs as u64);
    // Heads before tokens in memory.
    let x_layout = Layout::heads_first([1, tokens, heads, inputs / heads])?;
    let shapes = [x_layout.shape(), [1, outputs, 1, inputs], [1, 1, 1, outputs]];
    let mut numbers = |element, shape: [usize; 4]| random(&mut noise, element, shape.iter().product());
    let (x_numbers, w_numbers) = (numbers(x, shapes[0]), numbers(weight, shapes[1]));
    let b_numbers = numbers(weight, shapes[2]);
    let upload = |element, (values, _): &(Vec<f32>, _), shape| gpu.upload_as(element, values, shape);
    let on_device: [View; 3] = [
        upload(x, &x_numbers, shapes[0])?,
        upload(weight, &w_numbers, shapes[1])?,
        upload(weight, &b_numbers, shapes[2])?,
    ];
    let out = gpu.zeros(x, [1, tokens, 1, outputs])?;
    let x_view = View::new(on_device[0].buffer(), x, x_layout)?;
    let request = Projection::new(&x_view, &on_device[1], &out).schedule(case.schedule);
    let request = if case.bias { request.bias(&on_device[2]) } else { request };
    let prepared = match request.prepare(gpu) {
        // No device need have subgroups; without them that schedule is not there.
        Err(error) if error.kind() == ErrorKind::Limit && case.schedule == ProjectionSchedule::Rows => return Ok(()),
        prepared => prepared?,
    };
    gpu.submit(|pass| prepared.record(pass))?;
    let expected = {
        let bias = tensor(&b_numbers.1, shapes[2])?;
        let bias = case.bias.then_some(&bias);
        projection(&Tensor::new(&x_numbers.1, x_layout)?, &tensor(&w_numbers.1, shapes[1])?, bias)?
    };
    // As many products and sums in f32 as there are inputs, each of at most `inputs` in size, and the bias on top.
    let bound = (inputs + 2) as f64 * U * (inputs + 1) as f64;
    let numbers: Vec<_> = gpu
        .read(&out)
        .await?
        .into_iter()
        .zip(expected)
        .map(|(got, expected)| Compared { got, expected, bound: stored(x, expected, bound) })
        .collect();
    tally.add(prepared.shaders(), &case.to_string(), &numbers);
    Ok(())
}
