//! What the encoding is for, under every law: the product of a query at `m` and a key at `n` depends on `m - n` alone.

use crate::case::ROTATION;
use crate::common::{Random, gpu};
use crate::raw::{positions, run};
use phasor::frequencies::{
    Axes, Axial, AxialSeries, ClippedRope, Divided, DynamicNtk, FixedNtk, Frequencies, Law, Linear, Llama3, LongRope,
    NtkAware, Plain, Proportional, Yarn,
};
use phasor::{Layout, Pairing, Positions, Rope, Rotate};

const DIM: usize = 64;
const PAIRS: usize = DIM / 2;

/// Every law, with the length of a sequence that brings out what it does.
fn laws() -> Vec<(Law, u32)> {
    let list = |step: f64| (0..PAIRS).map(|i| 1.0 + step * i as f64).collect::<Vec<_>>();
    let long_rope = LongRope::new(1e4, list(0.01), list(2.0), 4096, 32.0);
    vec![
        (Plain::new(5e5).into(), 0),
        (Linear::new(1e4, 4.0).into(), 0),
        (NtkAware::new(1e4, 16.0).into(), 0),
        (FixedNtk::new(1e4, 4.0).into(), 0),
        (DynamicNtk::new(1e4, 4.0, 2048).into(), 2048),
        (DynamicNtk::new(1e4, 4.0, 2048).into(), 50_000),
        (Yarn::new(1e4, 16.0, 2048).into(), 0),
        (long_rope.clone().into(), 4096),
        (long_rope.into(), 100_000),
        (Llama3::new(5e5, 8.0, 8192).into(), 0),
        (Proportional::new(1e6, 0.25).into(), 0),
        (Axial::new(1e4).into(), 0),
        (Axial { series: AxialSeries::Alternating, ..Axial::new(1e4) }.into(), 0),
        (Divided::new(Plain::new(1e4), list(0.5)).into(), 0),
        (ClippedRope::new(Plain::new(1e4)).into(), 0),
    ]
}

/// `A^2 <R(d) q, k>` by its definition, `d` being the distance on each pair's axis; and how far f32 may be off.
///
/// Each of a pair's two channels is at most `A * (|x0| + |x1|)`, and off by ROTATION times that: so is their product,
/// once for either factor and once for both.
fn product([q, k]: [&[f32]; 2], law: &Frequencies, pairing: Pairing, distance: impl Fn(usize) -> i32) -> (f64, f64) {
    let (mut sum, mut tolerance) = (0.0, 0.0);
    let square = law.attention_factor().powi(2);
    for (i, &w) in law.inv_freq().iter().enumerate() {
        let (first, second) = pairing.channels(i as u32, PAIRS as u32);
        let pair = |x: &[f32]| [first, second].map(|channel| f64::from(x[channel as usize]));
        let ([a, b], [c, d]) = (pair(q), pair(k));
        let (sin, cos) = (f64::from(distance(i)) * w).sin_cos();
        sum += square * ((a * cos - b * sin) * c + (a * sin + b * cos) * d);
        let reach = square * (a.abs() + b.abs()) * (c.abs() + d.abs());
        tolerance += 2.0 * reach * (2.0 * ROTATION + ROTATION * ROTATION);
    }
    (sum, tolerance)
}

#[test]
fn every_law_keeps_to_distances() -> phasor::Result<()> {
    let starts = [0, 1, 777, 131_071, 1_000_000, (1 << 24) - 3_000, -(1 << 24)];
    let distances = [0, 1, -1, 13, 2500];
    let mut random = Random::new(51);
    let (q, k) = (random.values(DIM), random.values(DIM));
    for (law, seq_len) in laws() {
        let frequencies = law.frequencies_at(DIM as u32, seq_len)?;
        let axes = match law {
            Law::Axial(_) => Axes::axial(PAIRS)?,
            _ => Axes::one(PAIRS),
        };
        let n_axes = usize::from(axes.count());
        // On a second axis other starts, and distances three times as far.
        let start = |i: usize, axis: usize| starts[(i + 2 * axis) % starts.len()];
        let scale = |axis: usize| 1 + 2 * axis as i32;
        for pairing in [Pairing::Interleaved, Pairing::HalfSplit] {
            let rope = Rope::new(gpu(), &frequencies, pairing)?.with_axes(&axes)?;
            let turned = |x: &[f32], distance: i32| {
                let view = gpu().upload(&x.repeat(starts.len()), [1, starts.len(), 1, DIM])?;
                let layout = Layout::contiguous([1, starts.len(), n_axes, 1])?;
                let list = (0..starts.len() * n_axes).map(|i| (i / n_axes, i % n_axes));
                let at = positions(gpu(), layout, list.map(|(i, axis)| start(i, axis) + distance * scale(axis)))?;
                run(gpu(), &rope, &Rotate::in_place(&view).positions(Positions::PerToken(at)))?;
                gpu().read_blocking(&view)
            };
            let keys = turned(&k, 0)?;
            for distance in distances {
                let of_pair = |i: usize| distance * scale(axes.axis_of_pair()[i].into());
                let (expected, tolerance) = product([&q, &k], &frequencies, pairing, of_pair);
                let queries = turned(&q, distance)?;
                for ((q, k), start) in queries.chunks(DIM).zip(keys.chunks(DIM)).zip(starts) {
                    let got: f64 = q.iter().zip(k).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
                    assert!(
                        (got - expected).abs() <= tolerance,
                        "{law:?}, {pairing:?}, distance {distance}, key at {start}: {got} instead of {expected}"
                    );
                }
            }
        }
    }
    Ok(())
}
