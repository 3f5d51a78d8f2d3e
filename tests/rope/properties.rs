//! Rotations drawn at random from everything that can vary, and what must hold for all of them.

use crate::case::{Case, Memory, Order, ROTATION, Standing};
use crate::common::{Random, gpu};
use phasor::frequencies::{Plain, Yarn};
use phasor::{Direction, ElementType, Pairing, Positions, Rope, Rotate, View};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};

/// The same cases in every run. Each may need a pipeline that no other one does, hence not many of them.
fn runner(cases: u32) -> TestRunner {
    TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_iters: 200,
        rng_seed: RngSeed::Fixed(0x70a5_0125),
        ..ProptestConfig::default()
    })
}

fn shape() -> impl Strategy<Value = Case> {
    // Head dims that models have, or anything small; some of the channels or all.
    let channels = prop_oneof![Just(64), Just(80), Just(96), Just(128), Just(192), Just(256), 2usize..48];
    let heads = prop_oneof![Just((9, Some(3))), Just((71, Some(1))), (1usize..9, prop::option::of(1usize..9))];
    (1usize..4, 1usize..6, heads, channels, any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<bool>())
        .prop_map(|(batch, tokens, (q_heads, k_heads), channels, pairs, first, whole)| {
            let rotary_dim = if whole { channels / 2 * 2 } else { 2 * (1 + pairs.index(channels / 2)) };
            let first_channel = first.index(channels - rotary_dim + 1);
            Case { batch, tokens, q_heads, k_heads, channels, rotary_dim, first_channel, ..Case::default() }
        })
}

fn any_case() -> impl Strategy<Value = Case> {
    let pairing = prop::sample::select(vec![Pairing::Interleaved, Pairing::HalfSplit]);
    let direction = prop::sample::select(vec![Direction::Forward, Direction::Inverse, Direction::Adjoint]);
    let memory = prop::sample::select(Memory::ALL.to_vec());
    let order = prop::sample::select(Order::ALL.to_vec());
    let standing = prop::sample::select(Standing::ALL.to_vec());
    let origin = prop_oneof![-5000i32..5000, (1 << 24) - 100..(1 << 24) - 70, -(1 << 24)..-(1 << 24) + 10];
    let base = prop::sample::select(vec![1e4, 5e5, 1e6, 1e7]);
    let factor = prop::sample::select(vec![1.0, 0.903, 1.277]);
    let element = || prop::sample::select(vec![ElementType::F32, ElementType::F16, ElementType::BF16]);
    let elements = prop_oneof![Just([ElementType::F32; 2]), [element(), element()]];
    let angles = (standing, any::<bool>(), origin, base, factor);
    (shape(), pairing, direction, memory, order, elements, angles).prop_map(
        |(shape, pairing, direction, memory, order, elements, (standing, table, origin, base, attention_factor))| {
            Case {
                base,
                attention_factor,
                pairing,
                direction,
                memory,
                order,
                elements,
                standing,
                origin,
                table,
                ..shape
            }
        },
    )
}

#[test]
fn any_rotation_is_the_reference_s_and_touches_nothing_else() {
    let run = |case: Case| case.run(gpu()).map(|_| ()).map_err(TestCaseError::fail);
    runner(96).run(&any_case(), run).unwrap_or_else(|error| panic!("{error}"));
}

/// What the encoding is for: the product of a query at `m` and a key at `n` depends on `m - n` alone.
#[test]
fn the_product_depends_on_the_distance_alone() -> phasor::Result<()> {
    let channels = 128;
    let mut random = Random::new(3);
    let (q, k) = (random.values(channels), random.values(channels));
    let starts = [0, 1, 50, 4095, 131_071, 1_000_000, (1 << 24) - 1_001, -(1 << 24)];
    for pairing in [Pairing::Interleaved, Pairing::HalfSplit] {
        let rope = Rope::new(gpu(), &Plain::new(5e5).frequencies(channels as u32)?, pairing)?;
        let turned = |x: &[f32], positions: &[i32]| {
            let tokens = positions.len();
            let view = gpu().upload(&x.repeat(tokens), [1, tokens, 1, channels])?;
            let positions = Positions::PerToken(gpu().upload_positions(positions, [1, tokens])?);
            let rotation = rope.prepare(&Rotate::in_place(&view).positions(positions))?;
            gpu().submit(|pass| rotation.record(pass))?;
            gpu().read_blocking(&view)
        };
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
        // Each of a pair's two channels is off by at most ROTATION * (|x0| + |x1|), and is at most that sum itself.
        let sums = |x: &[f32]| {
            let pair = |i: u32| pairing.channels(i, channels as u32 / 2);
            let magnitude = |c: u32| f64::from(x[c as usize].abs());
            (0..channels as u32 / 2).map(|i| magnitude(pair(i).0) + magnitude(pair(i).1)).collect::<Vec<_>>()
        };
        let tolerance: f64 = sums(&q).iter().zip(sums(&k)).map(|(q, k)| 2.0 * 2.0 * ROTATION * q * k).sum();
        for distance in [0, 1, 7, 1000] {
            let queries = turned(&q, &starts.map(|n| n + distance))?;
            let keys = turned(&k, &starts)?;
            let products: Vec<_> =
                queries.chunks(channels).zip(keys.chunks(channels)).map(|(q, k)| dot(q, k)).collect();
            for (product, start) in products.iter().zip(starts) {
                let off = (product - products[0]).abs();
                assert!(off <= 2.0 * tolerance, "{pairing:?}, distance {distance}, key at {start}: off by {off}");
            }
        }
    }
    Ok(())
}

/// Forward and back again is where one started, magnitude included.
#[test]
fn the_inverse_undoes_the_rotation() -> phasor::Result<()> {
    let shape = [2, 5, 3, 64];
    let values = Random::new(5).values(shape.iter().product());
    for pairing in [Pairing::Interleaved, Pairing::HalfSplit] {
        let frequencies = Yarn::new(1e4, 16.0, 2048).frequencies(64)?;
        let rope = Rope::new(gpu(), &frequencies, pairing)?;
        let view = gpu().upload(&values, shape)?;
        for direction in [Direction::Forward, Direction::Inverse] {
            let rotate = Rotate::in_place(&view).positions(Positions::Start(70_000)).direction(direction);
            let rotation = rope.prepare(&rotate)?;
            gpu().submit(|pass| rotation.record(pass))?;
        }
        for (got, value) in gpu().read_blocking(&view)?.iter().zip(&values) {
            // Either way adds at most ROTATION times a sum of two channels of at most 2, times sqrt(2) for the second.
            assert!(f64::from((got - value).abs()) <= ROTATION * 4.0 * (1.0 + 2f64.sqrt()), "{got} instead of {value}");
        }
    }
    Ok(())
}

/// Keys that were dropped from the front of a cache move those behind them: a rotation of what is rotated, by one
/// distance, without the magnitude that the keys have already.
#[test]
fn rotated_keys_may_move() -> phasor::Result<()> {
    let shape = [2, 5, 3, 64];
    let values = Random::new(8).values(shape.iter().product());
    let frequencies = Yarn::new(1e4, 16.0, 2048).frequencies(64)?;
    let rope = Rope::new(gpu(), &frequencies, Pairing::HalfSplit)?;
    let moving = rope.clone().without_attention_factor();
    let (moved, there) = (gpu().upload(&values, shape)?, gpu().upload(&values, shape)?);
    for (rope, view, positions) in [
        (&rope, &moved, Positions::Start(5000)),
        (&moving, &moved, Positions::Same(-4096)),
        (&rope, &there, Positions::Start(904)),
    ] {
        let rotation = rope.prepare(&Rotate::in_place(view).positions(positions))?;
        gpu().submit(|pass| rotation.record(pass))?;
    }
    assert_alike(&moved, &there, frequencies.attention_factor())
}

/// Keys that were rotated by one law come to stand as if rotated by another.
#[test]
fn rotated_keys_may_change_their_law() -> phasor::Result<()> {
    let shape = [1, 6, 2, 64];
    let values = Random::new(9).values(shape.iter().product());
    let (from, to) = (Plain::new(1e4).frequencies(64)?, Yarn::new(1e4, 16.0, 2048).frequencies(64)?);
    let (changed, there) = (gpu().upload(&values, shape)?, gpu().upload(&values, shape)?);
    for (rope, view) in [
        (Rope::new(gpu(), &from, Pairing::Interleaved)?, &changed),
        (Rope::between(gpu(), &from, &to, Pairing::Interleaved)?, &changed),
        (Rope::new(gpu(), &to, Pairing::Interleaved)?, &there),
    ] {
        let rotation = rope.prepare(&Rotate::in_place(view).positions(Positions::Start(3000)))?;
        gpu().submit(|pass| rotation.record(pass))?;
    }
    assert_alike(&changed, &there, to.attention_factor())
}

/// Two rotations of channels of at most 2 are as one: each adds ROTATION times the sum of the two channels of a pair,
/// which may have grown by sqrt(2) before the second one.
fn assert_alike(twice: &View, once: &View, magnitude: f64) -> phasor::Result<()> {
    let tolerance = magnitude * ROTATION * 4.0 * (2.0 + 2f64.sqrt());
    for (a, b) in gpu().read_blocking(twice)?.iter().zip(gpu().read_blocking(once)?) {
        assert!(f64::from((a - b).abs()) <= tolerance, "{a} instead of {b}");
    }
    Ok(())
}
