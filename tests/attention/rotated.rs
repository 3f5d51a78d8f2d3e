//! Attention that rotates queries and keys itself.

use crate::case::{Both, assert_near, wide};
use crate::common::refused::expect_refused;
use crate::common::{Golden, Random, gpu};
use crate::fused::{SCHEDULES, of, rounding_of};
use crate::request::{Cope, Request, Source, TOLERANCE, assert_same};
use phasor::attention::{Attention, ContextualPe, Fused, Rotation, Schedule, Standing};
use phasor::frequencies::{Frequencies, Plain};
use phasor::{ElementType, ErrorKind, Pairing, Positions, Rope, Rotate};

/// The attention factor of the tests that have one.
const FACTOR: f64 = 1.25;

/// What rotated queries and keys are off by in a logit, beside the rounding of the sum of products: cosine and sine are
/// off by 1e-7 each and turning rounds three times, 3e-7 of a pair's length, on both sides. Numbers are up to 2, so that
/// a pair is up to 2.9 long and its product up to 8, before the attention factor; there are `channels / 2` pairs, and the
/// scale divides by their root. Outputs move by at most twice their logits' error times values of up to 2.
fn tolerance(channels: usize) -> f64 {
    TOLERANCE + 4.0 * 2.0 * 3e-7 * 8.0 * FACTOR * FACTOR * (channels as f64).sqrt() / 2.0
}

fn plain(pairs: usize) -> Frequencies {
    Plain { base: 100.0 }.frequencies(2 * pairs as u32).unwrap()
}

fn both_pairings() -> [Pairing; 2] {
    [Pairing::HalfSplit, Pairing::Interleaved]
}

/// Each way of cutting the work gives what the reference gives, and so do the kernels one after the other.
#[track_caller]
fn assert_agrees(request: &Request, what: &str) {
    let [_, keys, ..] = request.k.layout.shape();
    let [.., channels] = request.q.layout.shape();
    let expected = request.reference();
    for schedule in SCHEDULES {
        let what = format!("{what}, {schedule:?}");
        assert_same(&what, &request.fused(schedule), &expected, tolerance(channels), keys);
    }
    assert_same(&format!("{what}, unfused"), &request.unfused(), &expected, tolerance(channels), keys);
}

/// All channels, some, in the middle and at the end, in whole words of four and not.
#[test]
fn every_pairing_and_every_part_of_a_head() {
    let mut random = Random::new(101);
    for (channels, pairs, first) in [(16, 8, 0), (24, 8, 4), (12, 4, 2), (5, 2, 1), (8, 3, 2), (2, 1, 0)] {
        let request = Request { causal: true, ..Request::random(&mut random, [2, 9, 21], [4, 2, channels]) };
        for pairing in both_pairings() {
            let frequencies = Frequencies::new(plain(pairs).inv_freq().to_vec(), FACTOR).unwrap();
            let rotation = Rotation::new(&frequencies, pairing).from_channel(first);
            let request = Request { rotation: Some(rotation), ..request.clone() };
            assert_agrees(&request, &format!("{channels} channels, {pairs} pairs from {first}, {pairing:?}"));
        }
    }
}

/// Queries stand where masks say so.
#[test]
fn every_standing() {
    let mut random = Random::new(102);
    let rotation = Rotation::new(&plain(4), Pairing::HalfSplit);
    let request = Request::random(&mut random, [2, 6, 13], [4, 2, 8]);
    let request = Request { rotation: Some(rotation.clone()), ..request };
    let lengths = Both::new(vec![7.0, 13.0], of([2, 1, 1, 1]));
    let ranges = Both::new(vec![3.0, 9.0, 0.0, 99.0], of([2, 1, 1, 2]));
    for key_ranges in [None, Some(lengths), Some(ranges)] {
        for standing in [Standing::Last, Standing::RowLast, Standing::From(2), Standing::From(-3)] {
            if key_ranges.is_some() && standing == Standing::Last {
                // Refused: rows end before the last key.
                continue;
            }
            for causal in [false, true] {
                let request = Request { key_ranges: key_ranges.clone(), standing, causal, ..request.clone() };
                assert_agrees(&request, &format!("{standing:?}, causal {causal}"));
                let moved = Request { rotation: Some(rotation.clone().first_key(1000)), ..request.clone() };
                let (moved, here) = (moved.reference(), request.reference());
                assert_near("moved", &moved.out, &here.out, 1e-12);
            }
        }
    }
}

#[test]
fn contextual_encoding_in_every_variant() {
    let mut random = Random::new(103);
    let (batch, tokens, keys) = (2, 19, 70);
    for (channels, pairs, pairing) in [(16, 4, Pairing::HalfSplit), (6, 3, Pairing::Interleaved)] {
        let rotation = Rotation::new(&plain(pairs), pairing).first_key(-5);
        let request = Request::random(&mut random, [batch, tokens, keys], [4, 2, channels]);
        let request = Request { causal: true, rotation: Some(rotation), ..request };
        let cope = Cope::new(Both::random(&mut random, [1, channels, 1, 12], 0.3));
        let with = |cope: Cope| Request { cope: Some(cope), ..request.clone() };
        assert_agrees(&with(cope.clone()), "rotated query");
        let query = Some(request.q.clone());
        assert_agrees(&with(Cope { query, ..cope.clone() }), "query of before the rotation");
        let gate_keys = Both::random(&mut random, [batch, keys, 2, channels], 1.0);
        assert_agrees(&with(Cope { gates: Source::Keys(gate_keys), ..cope.clone() }), "separate keys");
        assert_agrees(&with(Cope { gates: Source::Values, ..cope.clone() }), "values");
        let bias = Both::random(&mut random, [1, tokens, 1, keys], 1.0);
        let apart = Request { bias: Some(bias), ..with(Cope { gates_see_bias: false, ..cope }) };
        assert_agrees(&apart, "gates without the bias");
    }
}

#[test]
fn tensors_stored_in_halves() {
    let mut random = Random::new(104);
    for (element, unit) in [(ElementType::F16, 2f64.powi(-11)), (ElementType::BF16, 2f64.powi(-8))] {
        for (channels, pairs) in [(8, 4), (5, 2)] {
            for pairing in both_pairings() {
                let Request { q, k, v, .. } = Request::random(&mut random, [2, 7, 9], [4, 2, channels]);
                let mut request = Request::new(q.stored(element), k.stored(element), v.stored(element));
                request.rotation = Some(Rotation::new(&plain(pairs), pairing));
                let expected = request.reference();
                for schedule in SCHEDULES {
                    let got = request.fused(schedule);
                    let tolerance = tolerance(channels);
                    assert_near("out", &got.out, &expected.out, 2.0 * unit + tolerance);
                    assert_near("lse", &got.lse, &expected.lse, tolerance);
                }
            }
        }
    }
}

/// The same angles on both ways: only the order of operations differs.
#[test]
fn a_rotation_before_is_the_same() {
    let mut random = Random::new(105);
    let (tokens, keys, channels) = (5, 150, 32);
    let request = Request { causal: true, ..Request::random(&mut random, [2, tokens, keys], [4, 2, channels]) };
    for pairing in both_pairings() {
        let frequencies = Plain { base: 10_000.0 }.frequencies(16).unwrap();
        let fused = Request { rotation: Some(Rotation::new(&frequencies, pairing).from_channel(8)), ..request.clone() };
        let rope = Rope::new(gpu(), &frequencies, pairing).unwrap().from_channel(8);
        let [q, k, v] = [&request.q, &request.k, &request.v].map(Both::view);
        let turn = |tensor, start| rope.prepare(&Rotate::in_place(tensor).positions(Positions::Start(start))).unwrap();
        let before = [turn(&q, (keys - tokens) as i32), turn(&k, 0)];
        let out = gpu().zeros(ElementType::F32, [2, tokens, 4, channels]).unwrap();
        gpu().submit(|pass| before.iter().for_each(|turn| turn.record(pass))).unwrap();
        for schedule in SCHEDULES {
            let attention = Attention::new(&q, &k, &v).causal();
            let prepared = Fused::new(&attention, &out).schedule(schedule).prepare(gpu()).unwrap();
            gpu().submit(|pass| prepared.record(pass)).unwrap();
            let before = wide(&gpu().read_blocking(&out).unwrap());
            assert_near("out", &fused.fused_output(schedule), &before, tolerance(channels));
        }
    }
}

/// Positions far from zero stay exact: logits depend on differences alone.
#[test]
fn far_positions_stay_exact() {
    let mut random = Random::new(106);
    let rotation = Rotation::new(&plain(4), Pairing::HalfSplit);
    let request = Request { causal: true, ..Request::random(&mut random, [1, 9, 21], [2, 1, 8]) };
    for first in [-1_000_000, 131_000, 16_000_000] {
        let request = Request { rotation: Some(rotation.clone().first_key(first)), ..request.clone() };
        assert_agrees(&request, &format!("from {first}"));
    }
}

/// A cache of keys that are not rotated, a token at a time, with contextual encoding beside the rotation: what a whole
/// prompt gives at once.
#[test]
fn a_cache_step_after_step_is_the_whole_prompt() {
    let mut random = Random::new(107);
    let (keys, channels) = (33, 8);
    let mut whole = Request { causal: true, ..Request::random(&mut random, [1, keys, keys], [4, 2, channels]) };
    whole.rotation = Some(Rotation::new(&plain(4), Pairing::Interleaved));
    whole.cope = Some(Cope::new(Both::random(&mut random, [1, channels, 1, 9], 0.3)));
    let prefills: Vec<_> = SCHEDULES.into_iter().map(|schedule| whole.fused(schedule).out).collect();
    let q = gpu().zeros(ElementType::F32, [1, 1, 4, channels]).unwrap();
    let lengths = gpu().upload_positions(&[0], [1, 1]).unwrap();
    let out = gpu().zeros(ElementType::F32, [1, 1, 4, channels]).unwrap();
    let embeddings = whole.cope.as_ref().unwrap().embeddings.view();
    let attention = Attention::new(&q, &whole.k.view(), &whole.v.view())
        .causal()
        .key_ranges(&lengths)
        .standing(Standing::RowLast)
        .rotate(whole.rotation.clone().unwrap())
        .cope(ContextualPe::new(&embeddings));
    let step = Fused::new(&attention, &out).prepare(gpu()).unwrap();
    for t in 0..keys {
        let row = &whole.q.values[t * 4 * channels..][..4 * channels];
        gpu().queue().write_buffer(q.buffer(), 0, bytemuck::cast_slice(row));
        gpu().queue().write_buffer(lengths.buffer(), 0, bytemuck::bytes_of(&(t as i32 + 1)));
        gpu().submit(|pass| step.record(pass)).unwrap();
        let got = wide(&gpu().read_blocking(&out).unwrap());
        for prefill in &prefills {
            let expected = &prefill[t * 4 * channels..][..4 * channels];
            assert_near(&format!("token {t}"), &got, expected, tolerance(channels));
        }
    }
}

/// Keys in two parts, the second of which says where it stands.
#[test]
fn a_part_of_a_sequence_stands_where_it_stands() {
    let mut random = Random::new(108);
    let (tokens, keys, cut) = (4, 30, 13);
    let mut whole = Request { causal: true, ..Request::random(&mut random, [1, tokens, keys], [4, 2, 8]) };
    let rotation = Rotation::new(&plain(4), Pairing::HalfSplit);
    let cope = Cope::new(Both::random(&mut random, [1, 8, 1, 20], 0.3));
    whole.rotation = Some(rotation.clone());
    whole.cope = Some(cope.clone());
    for schedule in SCHEDULES {
        let part = |range: std::ops::Range<usize>, sum: Option<Both>| {
            let of = |both: &Both| Both { layout: both.layout.tokens(range.clone()).unwrap(), ..both.clone() };
            Request {
                k: of(&whole.k),
                v: of(&whole.v),
                standing: Standing::From((keys - tokens) as i64 - range.start as i64),
                rotation: Some(rotation.clone().first_key(range.start as i32)),
                cope: Some(Cope { gate_sum: sum, ..cope.clone() }),
                ..whole.clone()
            }
            .fused(schedule)
        };
        let right = part(cut..keys, None);
        let sum = Both::new(right.gate_sum.iter().map(|&x| x as f32).collect(), of([1, tokens, 4, 2]));
        let merged = phasor::reference::attention_merge(&[part(0..cut, Some(sum)), right]).unwrap();
        assert_same("merged", &merged, &whole.reference(), tolerance(8), keys);
    }
}

/// A head of a real model, from queries and keys of before the rotation.
#[test]
fn smollm2s_attention() {
    let golden = Golden::smollm2();
    let get = |name: &str, heads| Both::shaped(&golden, &format!("layer15.{name}"), [1, 49, heads, 64]);
    let frequencies = Plain { base: 100_000.0 }.frequencies(64).unwrap();
    let mut request = Request { causal: true, ..Request::new(get("q", 9), get("k", 3), get("v", 3)) };
    request.rotation = Some(Rotation::new(&frequencies, Pairing::HalfSplit));
    let expected = request.reference();
    let before = Request::new(get("q_rotated", 9), get("k_rotated", 3), get("v", 3));
    let tolerance = rounding_of(&before, true);
    for schedule in SCHEDULES {
        let got = request.fused(schedule);
        assert_near("file", &got.out, &get("attention", 9).wide, 2.0 * tolerance);
        assert_same("reference", &got, &expected, tolerance, 49);
    }
}

#[test]
fn what_cannot_rotate_is_refused() {
    let mut random = Random::new(109);
    let request = Request::random(&mut random, [1, 3, 4], [4, 2, 8]);
    let out = gpu().zeros(ElementType::F32, [1, 3, 4, 8]).unwrap();
    let refused = |rotation: Rotation, standing| {
        let request = Request { rotation: Some(rotation), standing, ..request.clone() };
        let result = Fused::new(&request.over(Both::view, Both::i32_view), &out).prepare(gpu());
        matches!(result, Err(error) if error.kind() == ErrorKind::Tensor && error.argument() == "rotation")
    };
    let rotation = |pairs| Rotation::new(&plain(pairs), Pairing::HalfSplit);
    assert!(!refused(rotation(4), Standing::Last));
    assert!(refused(rotation(5), Standing::Last), "more channels than a head has");
    assert!(refused(rotation(4).from_channel(1), Standing::Last));
    assert!(refused(rotation(4).from_channel(usize::MAX), Standing::Last));
    assert!(refused(rotation(4).first_key(i32::MIN), Standing::Last));
    assert!(refused(rotation(4), Standing::From(i64::MIN)));
    assert!(refused(rotation(4), Standing::From(1 << 31)));
    let far = 1 << 28;
    assert!(!refused(rotation(4).first_key(far), Standing::From(far.into())));
    assert!(refused(rotation(4).first_key(far + 1), Standing::Last));
    // Fewer queries than keys, of which rows have their own: the last one need not be a row's.
    let ranged = |standing| {
        let key_ranges = Some(Both::filled([1, 1, 1, 1], 2.0));
        let request = Request { rotation: Some(rotation(4)), standing, key_ranges, ..request.clone() };
        Fused::new(&request.over(Both::view, Both::i32_view), &out).prepare(gpu())
    };
    expect_refused(ranged(Standing::Last), ErrorKind::Tensor, "standing");
    assert!(ranged(Standing::RowLast).is_ok() && ranged(Standing::From(1)).is_ok());
    // 257 pairs are one more than there is room for, and heads of 512 channels are not.
    let wide = Request::random(&mut random, [1, 2, 3], [1, 1, 514]);
    let out = gpu().zeros(ElementType::F32, [1, 2, 1, 514]).unwrap();
    let prepare = |rotation| {
        let request = Request { rotation: Some(rotation), ..wide.clone() };
        Fused::new(&request.over(Both::view, Both::i32_view), &out).schedule(Schedule::Split).prepare(gpu())
    };
    expect_refused(prepare(rotation(257)), ErrorKind::Tensor, "rotation");
    assert!(prepare(rotation(256)).is_ok());
}
