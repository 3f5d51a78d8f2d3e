//! Every kind of request, small, so that kernels compile quickly.

use crate::case::{Both, assert_near, wide};
use crate::common::refused::expect_refused;
use crate::common::{Golden, Random, gpu, gpu_with};
use crate::request::{Cope, Request, Source, TOLERANCE, assert_same, gate_error};
use phasor::attention::{Attention, ContextualPe, Fused, MASKED, Schedule, Standing};
use phasor::reference::{Attended, attention_merge};
use phasor::{ElementType, ErrorKind, Layout, View};

pub const SCHEDULES: [Schedule; 3] = [Schedule::Rows, Schedule::Tiles, Schedule::Split];

/// Each way of cutting the work gives what the reference gives.
#[track_caller]
fn assert_agrees(request: &Request, what: &str) {
    assert_near_reference(request, what, &SCHEDULES, TOLERANCE);
}

#[track_caller]
fn assert_near_reference(request: &Request, what: &str, schedules: &[Schedule], tolerance: f64) {
    let expected = request.reference();
    let keys = request.k.layout.shape()[1];
    for &schedule in schedules {
        let what = format!("{what}, {schedule:?}");
        assert_same(&what, &request.fused(schedule), &expected, tolerance, keys);
        // Nobody asks for sums: counting may stop at the last position.
        assert_near(&what, &request.fused_output(schedule), &expected.out, tolerance);
    }
}

pub fn of(shape: [usize; 4]) -> Layout {
    Layout::contiguous(shape).unwrap()
}

#[test]
fn plain_attention_with_every_kind_of_mask() {
    let mut random = Random::new(1);
    for (heads, tokens, keys) in [([4, 4, 8], 70, 70), ([6, 2, 5], 9, 130), ([3, 3, 1], 11, 3)] {
        let plain = Request::random(&mut random, [2, tokens, keys], heads);
        assert_agrees(&plain, "plain");
        let causal = Request { causal: true, ..plain.clone() };
        assert_agrees(&causal, "causal");
        assert_agrees(&Request { window: Some(3), ..causal.clone() }, "causal window");
        assert_agrees(&Request { window: Some(2), ..plain.clone() }, "window");
        assert_agrees(&Request { standing: Standing::From(1), ..causal.clone() }, "from 1");
        assert_agrees(&Request { standing: Standing::From(-4), ..causal.clone() }, "from -4");
        assert_agrees(&Request { scale: Some(-0.3), ..causal }, "scale");
    }
}

#[test]
fn masks_and_biases_from_buffers() {
    let mut random = Random::new(2);
    let (batch, tokens, keys) = (2, 6, 13);
    let plain = Request::random(&mut random, [batch, tokens, keys], [6, 2, 6]);
    for shape in [[batch, tokens, 6, keys], [1, tokens, 1, keys], [batch, 1, 1, keys]] {
        let keep = Both::whole(&mut random, shape, 3);
        let bias = Both::random(&mut random, shape, 2.0);
        assert_agrees(&Request { keep: Some(keep.clone()), ..plain.clone() }, "keep");
        let both = Request { keep: Some(keep), bias: Some(bias), causal: true, ..plain.clone() };
        assert_agrees(&both, "keep and bias");
    }
    let lengths = Both::new(vec![5.0, 13.0], of([batch, 1, 1, 1]));
    let ranges = Both::new(vec![3.0, 9.0, 0.0, 99.0], of([batch, 1, 1, 2]));
    for key_ranges in [lengths, ranges] {
        for standing in [Standing::Last, Standing::RowLast, Standing::From(0)] {
            let padded = Request { key_ranges: Some(key_ranges.clone()), standing, ..plain.clone() };
            assert_agrees(&padded, "padded");
            assert_agrees(&Request { causal: true, window: Some(4), ..padded }, "padded and causal");
        }
    }
}

#[test]
fn contextual_attention_in_every_variant() {
    let mut random = Random::new(3);
    for ([heads, kv_heads, channels], positions) in [([4, 4, 8], 7), ([6, 2, 5], 300)] {
        let (batch, tokens, keys) = (2, 37, 90);
        let plain = Request::random(&mut random, [batch, tokens, keys], [heads, kv_heads, channels]);
        let plain = Request { causal: true, ..plain };
        let cope = Cope::new(Both::random(&mut random, [1, channels, 1, positions], 0.3));
        let with = |cope: Cope| Request { cope: Some(cope), ..plain.clone() };
        assert_agrees(&with(cope.clone()), "shared");
        let per_head = Both::random(&mut random, [1, channels, heads, positions], 0.3);
        assert_agrees(&with(Cope { embeddings: per_head, ..cope.clone() }), "per head");
        assert_agrees(&with(Cope { bias_scale: 0.125, ..cope.clone() }), "bias scale");
        let query = Both::random(&mut random, [batch, tokens, heads, channels], 1.0);
        assert_agrees(&with(Cope { query: Some(query), ..cope.clone() }), "query");
        let gate_keys = Both::random(&mut random, [batch, keys, kv_heads, channels], 1.0);
        assert_agrees(&with(Cope { gates: Source::Keys(gate_keys), ..cope.clone() }), "separate keys");
        assert_agrees(&with(Cope { gates: Source::Values, ..cope.clone() }), "values");
        let mut sum = Both::filled([batch, tokens, heads, 2], 0.75);
        sum.values.iter_mut().step_by(2).for_each(|whole| *whole = 3.0);
        let sum = Both::new(sum.values, sum.layout);
        assert_agrees(&with(Cope { gate_sum: Some(sum), ..cope.clone() }), "gate sum");
        for gates_see_bias in [false, true] {
            let mut bias = Both::random(&mut random, [1, tokens, 1, keys], 1.0);
            bias.values.iter_mut().step_by(5).for_each(|hidden| *hidden = f32::MIN);
            let bias = Both::new(bias.values, bias.layout);
            let cope = Cope { gates_see_bias, ..cope.clone() };
            assert_agrees(&Request { bias: Some(bias), ..with(cope) }, "bias");
        }
    }
}

/// Several splits of the keys, and rows that end in different ones.
#[test]
fn few_queries_over_many_keys() {
    let mut random = Random::new(4);
    for ([heads, kv_heads, channels], tokens) in [([2, 2, 8], 1), ([6, 2, 5], 3)] {
        let (batch, keys) = (2, 2300);
        let plain = Request::random(&mut random, [batch, tokens, keys], [heads, kv_heads, channels]);
        let causal = Request { causal: true, ..plain };
        let ranges = Both::new(vec![3.0, 900.0, 0.0, 2299.0], of([batch, 1, 1, 2]));
        let padded = Request { key_ranges: Some(ranges), standing: Standing::RowLast, ..causal.clone() };
        let windowed = Request { window: Some(1500), ..padded.clone() };
        let split = |request: &Request| assert_near_reference(request, "split", &[Schedule::Split], TOLERANCE);
        for request in [causal, padded, windowed] {
            split(&request);
            for positions in [64, 5000] {
                let cope = Cope::new(Both::random(&mut random, [1, channels, 1, positions], 0.3));
                split(&Request { cope: Some(cope), ..request.clone() });
            }
        }
    }
}

/// So many splits that a sum of gates is kept for each of them, and not for each of its invocations.
#[test]
fn one_query_over_very_many_keys() {
    let mut random = Random::new(17);
    let keys = 33_100;
    let plain = Request { causal: true, ..Request::random(&mut random, [1, 1, keys], [2, 1, 4]) };
    // Positions that few of the splits reach, and such that all of them walk along.
    for positions in [64, 20_000] {
        let cope = Cope::new(Both::random(&mut random, [1, 4, 1, positions], 0.01));
        let request = Request { cope: Some(cope), ..plain.clone() };
        // A position that is off lies between neighbours that differ by up to 4 * 2 * 0.01.
        let tolerance = TOLERANCE + 0.08 * gate_error(keys);
        assert_same("split", &request.fused(Schedule::Split), &request.reference(), tolerance, keys);
    }
}

/// A prepared step is recorded again for each token: only its buffers change.
#[test]
fn a_step_is_recorded_again_for_the_next_token() {
    let mut random = Random::new(5);
    let (keys, channels) = (40, 8);
    let mut whole = Request { causal: true, ..Request::random(&mut random, [1, keys, keys], [4, 2, channels]) };
    whole.cope = Some(Cope::new(Both::random(&mut random, [1, channels, 1, 9], 0.3)));
    let expected = whole.reference().out;
    let token = |t: usize| Both { layout: whole.q.layout.tokens(t..t + 1).unwrap(), ..whole.q.clone() };
    let q = gpu().zeros(ElementType::F32, [1, 1, 4, channels]).unwrap();
    let lengths = gpu().upload_positions(&[0], [1, 1]).unwrap();
    let out = gpu().zeros(ElementType::F32, [1, 1, 4, channels]).unwrap();
    let embeddings = whole.cope.as_ref().unwrap().embeddings.view();
    let attention = Attention::new(&q, &whole.k.view(), &whole.v.view())
        .causal()
        .key_ranges(&lengths)
        .standing(Standing::RowLast)
        .cope(ContextualPe::new(&embeddings));
    let step = Fused::new(&attention, &out).prepare(gpu()).unwrap();
    for t in 0..keys {
        let row: Vec<f32> = token(t).in_order().iter().map(|&x| x as f32).collect();
        gpu().queue().write_buffer(q.buffer(), 0, bytemuck::cast_slice(&row));
        gpu().queue().write_buffer(lengths.buffer(), 0, bytemuck::bytes_of(&(t as i32 + 1)));
        gpu().submit(|pass| step.record(pass)).unwrap();
        let got = wide(&gpu().read_blocking(&out).unwrap());
        assert_near(&format!("token {t}"), &got, &expected[t * 4 * channels..][..4 * channels], TOLERANCE);
    }
}

#[test]
fn queries_that_see_nothing_are_zero() {
    let mut random = Random::new(6);
    let hidden = Request::hidden(&mut random);
    for (i, request) in hidden.iter().enumerate() {
        assert_agrees(request, &format!("hidden {i}"));
        for schedule in SCHEDULES {
            let got = request.fused(schedule);
            assert!(got.out[..3 * 2 * 4].iter().all(|&x| x == 0.0), "{i}, {schedule:?}: {:?}", got.out);
            assert!(got.lse[..3 * 2].iter().all(|&x| x == f64::from(MASKED)), "{i}, {schedule:?}: {:?}", got.lse);
        }
    }
}

#[test]
fn values_that_nobody_sees_may_be_anything() {
    let mut random = Random::new(7);
    let mut request = Request::random(&mut random, [1, 3, 5], [2, 1, 4]);
    request.key_ranges = Some(Both::filled([1, 1, 1, 1], 3.0));
    request.v.values[3 * 4..].fill(f32::NAN);
    request.v = Both::new(request.v.values, request.v.layout);
    assert_agrees(&request, "padding that is no number");
}

/// Logits of ±1e4 and masks of f32's lowest value, together.
#[test]
fn huge_logits_give_numbers() {
    let mut random = Random::new(8);
    let mut request = Request { scale: Some(1e4), ..Request::random(&mut random, [1, 4, 9], [2, 2, 4]) };
    request.q = Both::filled([1, 4, 2, 4], 0.5);
    request.k = Both::new((0..72).map(|i| [0.5, -0.5, 0.25][i / 4 % 3]).collect(), request.k.layout);
    let mut bias = Both::filled([1, 4, 1, 9], 0.0);
    bias.values.iter_mut().step_by(2).for_each(|bias| *bias = f32::MIN);
    request.bias = Some(Both::new(bias.values, bias.layout));
    request.cope = Some(Cope::new(Both::random(&mut random, [1, 4, 1, 3], 0.3)));
    let expected = request.reference();
    assert!(expected.lse.iter().any(|lse| lse.abs() > 4e3), "{:?}", expected.lse);
    for schedule in SCHEDULES {
        let got = request.fused(schedule);
        // Some 14,000 doublings are rounded to 2^-10; equal logits alike, but for what the contextual bias adds.
        assert_near("out", &got.out, &expected.out, 8e-3);
        assert_near("lse", &got.lse, &expected.lse, 4e-3);
    }
}

/// All gates alike: near 0, so that no position is ever reached; near 1, so that the last one is reached at once. And
/// one position, and more positions than keys.
#[test]
fn gates_that_never_or_always_count() {
    let mut random = Random::new(9);
    for logit in [-1e4, -30.0, -10.0, 0.0, 10.0, 30.0, 1e4] {
        for (keys, positions) in [(600, 4), (600, 1000), (257, 1), (257, 9)] {
            let mut request = Request::random(&mut random, [1, 5, keys], [1, 1, 4]);
            // Gates from keys of their own, since logits alone would all weigh alike.
            let gate_keys = Both::random(&mut random, [1, keys, 1, 4], 1.0);
            let bias = Both::filled([1, 1, 1, keys], logit);
            request.bias = Some(bias);
            let cope = Cope::new(Both::random(&mut random, [1, 4, 1, positions], 0.3));
            request.cope = Some(Cope { gates: Source::Keys(gate_keys), ..cope });
            // q · E changes by less than 10 a position; a logit of 1e4 is rounded to 2^-10.
            let tolerance = TOLERANCE + 10.0 * gate_error(keys) + f64::from(logit.abs()) * 2f64.powi(-22);
            let what = format!("{logit}: {keys} keys, {positions} positions");
            assert_near_reference(&request, &what, &SCHEDULES, tolerance);
        }
    }
}

/// Sums of gates stay right however long they get.
#[test]
fn long_rows() {
    let mut random = Random::new(10);
    let mut request = Request { causal: true, ..Request::random(&mut random, [1, 2, 40_000], [1, 1, 4]) };
    // Half of the keys count, so that the last position is reached at the left end.
    request.cope = Some(Cope::new(Both::random(&mut random, [1, 4, 1, 30_000], 0.1)));
    let tolerance = TOLERANCE + 2.0 * gate_error(40_000);
    assert_near_reference(&request, "40,000 keys", &[Schedule::Split], tolerance);
    let part = |both: &Both| Both { layout: both.layout.tokens(0..20_000).unwrap(), ..both.clone() };
    let request = Request { k: part(&request.k), v: part(&request.v), ..request };
    let small = Cope::new(Both::random(&mut random, [1, 4, 1, 9000], 0.1));
    let request = Request { cope: Some(small), ..request };
    assert_near_reference(&request, "20,000 keys", &[Schedule::Rows], tolerance);
}

#[test]
fn zero_embeddings_are_plain_attention() {
    let mut random = Random::new(11);
    let plain = Request { causal: true, ..Request::random(&mut random, [1, 20, 33], [4, 2, 8]) };
    let contextual = Request { cope: Some(Cope::new(Both::filled([1, 8, 1, 9], 0.0))), ..plain.clone() };
    for schedule in SCHEDULES {
        // Keys are taken in another order: sums are rounded otherwise.
        assert_near("out", &contextual.fused(schedule).out, &plain.fused(schedule).out, 1e-6);
    }
}

/// Tensors in 16 bits: the answer for the rounded numbers, itself rounded.
#[test]
fn tensors_stored_in_halves() {
    let mut random = Random::new(12);
    // Outputs are averages of values of up to 2, and f16 keeps 11 bits of a number, bf16 8.
    for (element, unit, channels) in [
        (ElementType::F16, 2f64.powi(-11), 5),
        (ElementType::F16, 2f64.powi(-11), 8),
        (ElementType::BF16, 2f64.powi(-8), 8),
    ] {
        let Request { q, k, v, .. } = Request::random(&mut random, [2, 7, 9], [4, 2, channels]);
        let mut request = Request::new(q.stored(element), k.stored(element), v.stored(element));
        request.bias = Some(Both::random(&mut random, [1, 7, 4, 9], 1.0).stored(element));
        let embeddings = Both::random(&mut random, [1, channels, 1, 4], 0.3).stored(element);
        request.cope = Some(Cope::new(embeddings));
        let expected = request.reference();
        for schedule in SCHEDULES {
            let got = request.fused(schedule);
            assert_near("out", &got.out, &expected.out, 2.0 * unit + TOLERANCE);
            assert_near("lse", &got.lse, &expected.lse, TOLERANCE);
        }
    }
}

#[test]
fn any_layout_and_a_callers_scratch() {
    let mut random = Random::new(13);
    let mut request = Request::random(&mut random, [2, 5, 9], [4, 2, 8]);
    request.q.layout = Layout::heads_first([2, 5, 4, 8]).unwrap();
    request.k.layout = Layout::heads_first([2, 9, 2, 8]).unwrap();
    // Channels four apart.
    request.v = Both::new(random.values(1200), Layout::strided([2, 9, 2, 8], [600, 4 * 16, 2, 4], 3).unwrap());
    request.cope =
        Some(Cope::new(Both::new(random.values(100), Layout::strided([1, 8, 1, 5], [0, 1, 0, 8], 7).unwrap())));
    let expected = request.reference().out;
    let attention = request.over(Both::view, Both::i32_view);
    let buffer = gpu().zeros(ElementType::F32, [1, 1, 1, 1000]).unwrap();
    let layout = Layout::heads_first([2, 5, 4, 8]).unwrap().offset_by(5).unwrap();
    let out = View::new(buffer.buffer(), ElementType::F32, layout).unwrap();
    for schedule in SCHEDULES {
        let fused = Fused::new(&attention, &out).schedule(schedule);
        let elements = fused.scratch_elements(gpu()).unwrap();
        let scratch = gpu().zeros(ElementType::F32, [1, 1, 1, elements + 17]).unwrap();
        let layout = of([1, 1, 1, elements]).offset_by(17).unwrap();
        let scratch = View::new(scratch.buffer(), ElementType::F32, layout).unwrap();
        let prepared = fused.clone().scratch(&scratch).prepare(gpu()).unwrap();
        // Twice, as a step that is recorded again.
        gpu()
            .submit(|pass| {
                prepared.record(pass);
                prepared.record(pass)
            })
            .unwrap();
        // q · E is a sum of eight products of up to 4 here.
        assert_near("out", &wide(&gpu().read_blocking(&out).unwrap()), &expected, 1e-4);
        let small = View::new(scratch.buffer(), ElementType::F32, of([1, 1, 1, elements / 2])).unwrap();
        let refused = fused.scratch(&small).prepare(gpu());
        expect_refused(refused, ErrorKind::Tensor, "scratch");
    }
}

/// What gates are made of lies where it lies, and not as keys do.
#[test]
fn gates_of_any_layout() {
    let mut random = Random::new(16);
    let mut request = Request::random(&mut random, [2, 3, 9], [4, 2, 8]);
    request.v.layout = Layout::heads_first([2, 9, 2, 8]).unwrap();
    let mut gate_keys = Both::random(&mut random, [2, 9, 2, 8], 1.0);
    gate_keys.layout = Layout::heads_first([2, 9, 2, 8]).unwrap();
    for gates in [Source::Values, Source::Keys(gate_keys)] {
        let cope = Cope { gates, ..Cope::new(Both::random(&mut random, [1, 8, 1, 5], 1.0)) };
        let request = Request { cope: Some(cope), ..request.clone() };
        let expected = request.reference();
        for schedule in SCHEDULES {
            assert_same(&format!("{schedule:?}"), &request.fused(schedule), &expected, TOLERANCE, 9);
        }
    }
}

/// Limits so small that work is cut along rows of the batch, heads, and tokens.
#[test]
fn small_limits_change_nothing() {
    let mut random = Random::new(14);
    let mut request = Request { causal: true, ..Request::random(&mut random, [2, 11, 40], [6, 3, 8]) };
    request.cope = Some(Cope::new(Both::random(&mut random, [1, 8, 6, 12], 0.3)));
    request.key_ranges = Some(Both::new(vec![30.0, 40.0], of([2, 1, 1, 1])));
    let expected = request.reference();
    for small in [
        gpu_with(|limits| limits.max_storage_buffer_binding_size = 4 << 10),
        gpu_with(|limits| limits.max_compute_workgroups_per_dimension = 5),
    ] {
        let attention = request.over(|both| both.view_on(&small), |both| both.i32_view_on(&small));
        let out = small.zeros(ElementType::F32, [2, 11, 6, 8]).unwrap();
        let lse = small.zeros(ElementType::F32, [2, 11, 6, 1]).unwrap();
        for schedule in SCHEDULES {
            let fused = Fused::new(&attention, &out).schedule(schedule).lse(&lse);
            let prepared = fused.prepare(&small).unwrap();
            assert!(prepared.dispatches() > 1, "{schedule:?}: {}", prepared.dispatches());
            small.submit(|pass| prepared.record(pass)).unwrap();
            assert_near("out", &wide(&small.read_blocking(&out).unwrap()), &expected.out, TOLERANCE);
            assert_near("lse", &wide(&small.read_blocking(&lse).unwrap()), &expected.lse, TOLERANCE);
        }
    }
}

/// Keys in three parts, from right to left, each with the gate sum of those to its right; then merged.
#[test]
fn a_sequence_in_parts_is_the_whole_sequence() {
    let mut random = Random::new(15);
    let (tokens, keys) = (6, 50);
    let mut whole = Request { causal: true, ..Request::random(&mut random, [1, tokens, keys], [4, 2, 8]) };
    let cope = Cope::new(Both::random(&mut random, [1, 8, 1, 20], 0.3));
    whole.cope = Some(cope.clone());
    for schedule in SCHEDULES {
        let mut sum = Both::filled([1, tokens, 4, 2], 0.0);
        let mut parts: Vec<Attended> = Vec::new();
        for range in [31..keys, 12..31, 0..12] {
            let part_of = |both: &Both| Both { layout: both.layout.tokens(range.clone()).unwrap(), ..both.clone() };
            let part = Request {
                k: part_of(&whole.k),
                v: part_of(&whole.v),
                standing: Standing::From((keys - tokens) as i64 - range.start as i64),
                cope: Some(Cope { gate_sum: Some(sum.clone()), ..cope.clone() }),
                ..whole.clone()
            };
            let attended = part.fused(schedule);
            sum = Both::new(attended.gate_sum.iter().map(|&x| x as f32).collect(), sum.layout);
            parts.insert(0, attended);
        }
        assert_same("merged", &attention_merge(&parts).unwrap(), &whole.reference(), TOLERANCE, keys);
    }
}

/// How far off f32 is at worst in what a causal attention with large logits gives, whose queries and keys are rotated:
/// before, or by the kernels themselves.
///
/// Kernels add four products at a time, so that a sum of `channels` products is rounded along `channels / 4 + 4`
/// operations, each by up to 2^-24 of the sum of the products' sizes. Doublings, scale, and the softmax's differences round
/// a logit four times more. Where kernels rotate, cosines and sines are off by 1e-7 and turning rounds three times, on both
/// sides. A weight is then off by its logit's error, by `exp2`, 5 * 2^-24, and by the rounding of sums over keys; and what
/// a weight is off by counts as often as its value differs from the output.
pub fn rounding_of(request: &Request, turned_by_kernels: bool) -> f64 {
    let unit = 2f64.powi(-24);
    let [_, tokens, heads, channels] = request.q.layout.shape();
    let [_, keys, kv_heads, _] = request.k.layout.shape();
    let [q, k, v] = [&request.q, &request.k, &request.v].map(Both::in_order);
    let turning = if turned_by_kernels { 2.0 * (1e-7 + 3.0 * unit) } else { 0.0 };
    let relative = (channels as f64 / 4.0 + 8.0) * unit + turning;
    let scale = 1.0 / (channels as f64).sqrt();
    let mut worst = 0f64;
    for (row, q) in q.chunks(channels).enumerate() {
        let seen = row / heads + 1 + keys - tokens;
        let of = |all: &'_ [f64], s: usize| {
            all[(s * kv_heads + row % heads * kv_heads / heads) * channels..][..channels].to_vec()
        };
        let dot = |k: &[f64]| q.iter().zip(k).map(|(q, k)| q * k * scale).sum::<f64>();
        // A turned pair's products are no larger than its lengths'.
        let length = |x: &[f64], c: usize| x[c].hypot(x[c + channels / 2]);
        let size = |k: &[f64]| (0..channels / 2).map(|c| length(q, c) * length(k, c) * scale).sum::<f64>();
        let logits: Vec<_> = (0..seen).map(|s| dot(&of(&k, s))).collect();
        let largest = logits.iter().copied().fold(f64::MIN, f64::max);
        let sum: f64 = logits.iter().map(|logit| (logit - largest).exp()).sum();
        let weights: Vec<_> = logits.iter().map(|logit| (logit - largest).exp() / sum).collect();
        let errors: Vec<_> = (0..seen).map(|s| size(&of(&k, s)) * relative + (5.0 + seen as f64) * unit).collect();
        // The log-sum-exp.
        worst = worst.max((0..seen).map(|s| weights[s] * errors[s]).sum());
        for c in 0..channels {
            let out: f64 = (0..seen).map(|s| weights[s] * of(&v, s)[c]).sum();
            let spread = |s: usize| (of(&v, s)[c] - out).abs() + unit * seen as f64 * out.abs();
            worst = worst.max((0..seen).map(|s| weights[s] * errors[s] * spread(s)).sum());
        }
    }
    worst
}

/// A head of a real model, with 64 channels.
#[test]
fn smollm2s_attention() {
    let golden = Golden::smollm2();
    let get = |name: &str, heads| Both::shaped(&golden, &format!("layer15.{name}"), [1, 49, heads, 64]);
    let request = Request { causal: true, ..Request::new(get("q_rotated", 9), get("k_rotated", 3), get("v", 3)) };
    let expected = request.reference();
    let tolerance = rounding_of(&request, false);
    for schedule in SCHEDULES {
        let got = request.fused(schedule);
        // The file's numbers are those of another program in f32.
        assert_near("file", &got.out, &get("attention", 9).wide, 2.0 * tolerance);
        assert_same("reference", &got, &expected, tolerance, 49);
    }
}

/// The article's contextual encoding, from its own logits: they come as a bias on queries and keys of 0, other queries
/// meet the position embeddings, and values are the keys' unit vectors, so that outputs are the weights themselves.
#[test]
fn the_articles_contextual_encoding() {
    let golden = Golden::article();
    let cases = golden.names("cope.").into_iter().filter_map(|name| name.strip_suffix(".out").map(String::from));
    let mut n = 0;
    for case in cases {
        n += 1;
        let query = Both::heads_first(&golden, &format!("{case}.query"));
        let logits = Both::heads_first(&golden, &format!("{case}.logits"));
        let bias = Both::heads_first(&golden, &format!("{case}.out"));
        let [batch, tokens, heads, keys] = logits.layout.shape();
        let [.., channels] = query.layout.shape();
        let zeros = |tokens| Both::filled([batch, tokens, heads, channels], 0.0);
        let mut units = Both::filled([batch, keys, heads, keys], 0.0);
        for (key, row) in units.values.chunks_mut(heads * keys).enumerate() {
            row.iter_mut().skip(key % keys).step_by(keys).for_each(|x| *x = 1.0);
        }
        let mut request = Request::new(zeros(tokens), zeros(keys), Both::new(units.values, units.layout));
        let embeddings = Both::matrix(&golden, &format!("{case}.position_embeddings"));
        request.cope = Some(Cope { query: Some(query), ..Cope::new(embeddings) });
        request.bias = Some(logits.clone());
        let sums: Vec<_> = logits.in_order().iter().zip(bias.in_order()).map(|(a, b)| a + b).collect();
        let expected: Vec<_> = sums
            .chunks(keys)
            .flat_map(|row| {
                let seen = |x: f64| if x <= f64::from(MASKED) / 2.0 { 0.0 } else { x.exp() };
                let sum: f64 = row.iter().map(|&x| seen(x)).sum();
                row.iter().map(move |&x| seen(x) / sum).collect::<Vec<_>>()
            })
            .collect();
        for schedule in SCHEDULES {
            assert_near(&format!("{case}, {schedule:?}"), &request.fused(schedule).out, &expected, TOLERANCE);
        }
    }
    assert!(n >= 5, "{n} cases");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let mut random = Random::new(16);
    let request = Request::random(&mut random, [1, 3, 4], [4, 2, 8]);
    let attention = request.over(Both::view, Both::i32_view);
    let out = gpu().zeros(ElementType::F32, [1, 3, 4, 8]).unwrap();
    let argument = |fused: Fused| match fused.prepare(gpu()) {
        Err(error) if matches!(error.kind(), ErrorKind::Tensor | ErrorKind::Overlap) => error.argument().to_owned(),
        other => panic!("should have been refused: {other:?}"),
    };
    assert_eq!(argument(Fused::new(&attention, &request.k.view())), "output");
    assert_eq!(argument(Fused::new(&attention, &out).gate_sum(&request.q.view())), "gate_sum");
    // Results between each other's elements in one buffer.
    let arena = gpu().zeros(ElementType::F32, [1, 3, 4, 9]).unwrap();
    let strided = |channels, offset| Layout::strided([1, 3, 4, channels], [0, 36, 9, 1], offset).unwrap();
    let view = |layout| View::new(arena.buffer(), ElementType::F32, layout).unwrap();
    let between = Fused::new(&attention, &view(strided(8, 0))).lse(&view(strided(1, 8)));
    assert_eq!(argument(between), "output");
    let long = Request::random(&mut random, [1, 5, 30_001], [1, 1, 4]).over(Both::view, Both::i32_view);
    let long_out = gpu().zeros(ElementType::F32, [1, 5, 1, 4]).unwrap();
    assert_eq!(argument(Fused::new(&long, &long_out).schedule(Schedule::Rows)), "k");
    for scale in [f64::NAN, f64::INFINITY] {
        let wrong = Request { scale: Some(scale), ..request.clone() }.over(Both::view, Both::i32_view);
        expect_refused(Fused::new(&wrong, &out).prepare(gpu()), ErrorKind::Setting, "scale");
    }
    let empty = Request::random(&mut random, [1, 0, 4], [4, 2, 8]).over(Both::view, Both::i32_view);
    let none = gpu().zeros(ElementType::F32, [1, 0, 4, 8]).unwrap();
    assert_eq!(Fused::new(&empty, &none).prepare(gpu()).unwrap().dispatches(), 0);
}

/// Log-sum-exps of values that have no channels.
#[test]
fn values_without_channels() {
    let mut random = Random::new(17);
    let request = Request { causal: true, ..Request::random(&mut random, [1, 5, 9], [4, 2, 8]) };
    let request = Request { v: Both::new(Vec::new(), of([1, 9, 2, 0])), ..request };
    assert_agrees(&request, "no channels");
}

/// A bias beyond what doublings can be counted up to hides all smaller ones.
#[test]
fn huge_biases_win() {
    let mut random = Random::new(18);
    let mut request = Request::random(&mut random, [1, 3, 9], [2, 1, 4]);
    let mut bias = Both::random(&mut random, [1, 1, 1, 9], 1.0);
    bias.values[4] = 3e38;
    request.bias = Some(Both::new(bias.values, bias.layout));
    let expected = request.reference().out;
    for schedule in SCHEDULES {
        assert_near(&format!("{schedule:?}"), &request.fused_output(schedule), &expected, TOLERANCE);
    }
}

/// No element, along axes of any length.
#[test]
fn nothing_takes_no_time() {
    let view = |shape| {
        let buffer = gpu().zeros(ElementType::F16, [1, 1, 1, 2]).unwrap();
        View::new(buffer.buffer(), ElementType::F16, Layout::strided(shape, [0; 4], 2).unwrap()).unwrap()
    };
    let far = 1 << 40;
    let [q, k] = [view([0, far, far, 8]), view([0, far, far, 8])];
    let fused = Fused::new(&Attention::new(&q, &k, &k), &q);
    assert_eq!(q.layout().places().count(), 0);
    assert!(fused.scratch_elements(gpu()).is_err() || fused.scratch_elements(gpu()).unwrap() == 0);
    // And no key, at the very end of its buffer.
    let none = view([1, 0, 1, 8]);
    let queries = gpu().upload(&[1.0; 8], [1, 1, 1, 8]).unwrap();
    let out = gpu().upload(&[7.0; 8], [1, 1, 1, 8]).unwrap();
    for schedule in SCHEDULES {
        let fused =
            Fused::new(&Attention::new(&queries, &none, &none), &out).schedule(schedule).prepare(gpu()).unwrap();
        gpu().submit(|pass| fused.record(pass)).unwrap();
        assert_eq!(gpu().read_blocking(&out).unwrap(), [0.0; 8], "{schedule:?}");
    }
}

/// 16,384 tokens in 8 heads of 64 channels, with 64 positions.
#[test]
fn memory_grows_with_the_tokens() {
    let view = |shape| gpu().zeros(ElementType::F32, shape).unwrap();
    let bytes = |tokens: usize, schedule: Option<Schedule>| {
        let [q, k, v, out] = [(); 4].map(|()| view([1, tokens, 8, 64]));
        let attention = Attention::new(&q, &k, &v).causal().cope(ContextualPe::new(&view([1, 64, 1, 64])));
        let fused = Fused::new(&attention, &out);
        let fused = schedule.map_or(fused.clone(), |schedule| fused.schedule(schedule));
        (4 * fused.scratch_elements(gpu()).unwrap(), 4 * 4 * q.layout().elements())
    };
    for schedule in [None, Some(Schedule::Rows), Some(Schedule::Tiles)] {
        if schedule == Some(Schedule::Tiles) && gpu().is_software() {
            // Up to 4,096 keys there.
            continue;
        }
        let ((half, _), (scratch, tensors)) = (bytes(8_192, schedule), bytes(16_384, schedule));
        assert!(scratch + tensors < 4 * tensors, "{schedule:?}: {scratch} beside {tensors}");
        assert!(scratch <= 2 * half, "{schedule:?}: {half}, then {scratch}");
    }
}
