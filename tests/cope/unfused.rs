//! The unfused pipeline against the f64 reference: masks, variants, layouts, device limits, and a sequence in parts.

use crate::case::{Both, assert_near, wide};
use crate::common::refused::expect_refused;
use crate::common::{Golden, Random, gpu, gpu_with};
use crate::request::{Cope, Request, Source, TOLERANCE, assert_same};
use phasor::attention::{Attention, ContextualPe, Standing, Unfused};
use phasor::reference::{Attended, attention_merge};
use phasor::{ContextualBias, ElementType, ErrorKind, Layout, View, reference};

#[test]
fn smollm2s_attention() {
    let golden = Golden::smollm2();
    for layer in ["layer0", "layer15"] {
        let get = |name: &str, heads| Both::shaped(&golden, &format!("{layer}.{name}"), [1, 49, heads, 64]);
        let request = Request { causal: true, ..Request::new(get("q_rotated", 9), get("k_rotated", 3), get("v", 3)) };
        let got = request.unfused();
        // The logits of layer 15 reach some hundreds, and the expected numbers were rounded to f32 on the way themselves.
        assert_near(layer, &got.out, &get("attention", 9).wide, 1e-4);
        assert_same(layer, &got, &request.reference(), 1e-4, 49);
    }
}

/// Heads, key heads and channels that differ in every way that matters.
const HEADS: [[usize; 3]; 4] = [[4, 4, 8], [6, 2, 20], [4, 1, 64], [3, 3, 1]];

#[test]
fn plain_attention_with_every_kind_of_mask() {
    let mut random = Random::new(1);
    for heads in HEADS {
        for (tokens, keys) in [(9, 9), (1, 130), (5, 70), (11, 3)] {
            let plain = Request::random(&mut random, [2, tokens, keys], heads);
            plain.assert_agrees("plain", TOLERANCE);
            let causal = Request { causal: true, ..plain.clone() };
            causal.assert_agrees("causal", TOLERANCE);
            Request { window: Some(3), ..causal.clone() }.assert_agrees("causal window", TOLERANCE);
            Request { window: Some(2), ..plain.clone() }.assert_agrees("window", TOLERANCE);
            Request { standing: Standing::From(1), ..causal.clone() }.assert_agrees("from 1", TOLERANCE);
            Request { standing: Standing::From(-4), ..causal.clone() }.assert_agrees("from -4", TOLERANCE);
            Request { scale: Some(-0.3), ..causal }.assert_agrees("scale", TOLERANCE);
        }
    }
}

#[test]
fn masks_and_biases_from_buffers() {
    let mut random = Random::new(2);
    let (batch, tokens, keys) = (2, 6, 13);
    for heads in HEADS {
        let plain = Request::random(&mut random, [batch, tokens, keys], heads);
        for shape in [[batch, tokens, heads[0], keys], [1, tokens, 1, keys], [batch, 1, 1, keys]] {
            let keep = Both::whole(&mut random, shape, 3);
            let bias = Both::random(&mut random, shape, 2.0);
            Request { keep: Some(keep.clone()), ..plain.clone() }.assert_agrees("keep", TOLERANCE);
            Request { keep: Some(keep), bias: Some(bias), causal: true, ..plain.clone() }
                .assert_agrees("keep and bias", TOLERANCE);
        }
        let at = |shape| Layout::contiguous(shape).unwrap();
        let lengths = Both::new(vec![5.0, 13.0], at([batch, 1, 1, 1]));
        let ranges = Both::new(vec![3.0, 9.0, 0.0, 99.0], at([batch, 1, 1, 2]));
        for key_ranges in [lengths, ranges] {
            for standing in [Standing::Last, Standing::RowLast, Standing::From(0)] {
                let padded = Request { key_ranges: Some(key_ranges.clone()), standing, ..plain.clone() };
                padded.assert_agrees("padded", TOLERANCE);
                Request { causal: true, window: Some(4), ..padded }.assert_agrees("padded and causal", TOLERANCE);
            }
        }
    }
}

#[test]
fn contextual_attention_in_every_variant() {
    let mut random = Random::new(3);
    for (heads, positions) in HEADS.into_iter().zip([1, 2, 7, 300]) {
        let [n_heads, kv_heads, channels] = heads;
        let (batch, tokens, keys) = (2, 6, 270);
        let plain = Request { causal: true, ..Request::random(&mut random, [batch, tokens, keys], heads) };
        let shared = Both::random(&mut random, [1, channels, 1, positions], 0.3);
        let cope = Cope::new(shared);
        let with = |cope: Cope| Request { cope: Some(cope), ..plain.clone() };
        with(cope.clone()).assert_agrees("shared", TOLERANCE);
        let per_head = Both::random(&mut random, [1, channels, n_heads, positions], 0.3);
        with(Cope { embeddings: per_head, ..cope.clone() }).assert_agrees("per head", TOLERANCE);
        with(Cope { bias_scale: 0.125, ..cope.clone() }).assert_agrees("bias scale", TOLERANCE);
        let query = Both::random(&mut random, [batch, tokens, n_heads, channels], 1.0);
        with(Cope { query: Some(query), ..cope.clone() }).assert_agrees("query", TOLERANCE);
        let keys_of_gates = Both::random(&mut random, [batch, keys, kv_heads, channels], 1.0);
        with(Cope { gates: Source::Keys(keys_of_gates), ..cope.clone() }).assert_agrees("separate keys", TOLERANCE);
        with(Cope { gates: Source::Values, ..cope.clone() }).assert_agrees("values", TOLERANCE);
        let mut sum = Both::filled([batch, tokens, n_heads, 2], 0.75);
        sum.values.iter_mut().step_by(2).for_each(|whole| *whole = 3.0);
        let sum = Both::new(sum.values, sum.layout);
        with(Cope { gate_sum: Some(sum), ..cope.clone() }).assert_agrees("gate sum", TOLERANCE);
        for gates_see_bias in [false, true] {
            let mut bias = Both::random(&mut random, [1, tokens, 1, keys], 1.0);
            for hidden in bias.values.iter_mut().step_by(5) {
                *hidden = f32::MIN;
            }
            let bias = Both::new(bias.values, bias.layout);
            let cope = Cope { gates_see_bias, ..cope.clone() };
            Request { bias: Some(bias), ..with(cope) }.assert_agrees("bias", TOLERANCE);
        }
    }
}

/// Tensors in 16 bits: the answer for the rounded numbers, itself rounded.
#[test]
fn tensors_stored_in_halves() {
    let mut random = Random::new(9);
    // Outputs are averages of values of up to 2, and f16 keeps 11 bits of a number, bf16 8.
    for (element, unit) in [(ElementType::F16, 2f64.powi(-11)), (ElementType::BF16, 2f64.powi(-8))] {
        let Request { q, k, v, .. } = Request::random(&mut random, [2, 7, 9], [4, 2, 5]);
        let mut request = Request::new(q.stored(element), k.stored(element), v.stored(element));
        request.bias = Some(Both::random(&mut random, [1, 7, 4, 9], 1.0).stored(element));
        request.cope = Some(Cope::new(Both::random(&mut random, [1, 5, 1, 4], 0.3).stored(element)));
        let (got, expected) = (request.unfused(), request.reference());
        assert_near("out", &got.out, &expected.out, 2.0 * unit + TOLERANCE);
        assert_near("lse", &got.lse, &expected.lse, TOLERANCE);

        let logits = Both::random(&mut random, [1, 3, 2, 9], 2.0).stored(element);
        let query = Both::random(&mut random, [1, 3, 2, 5], 1.0).stored(element);
        let embeddings = Both::random(&mut random, [1, 5, 2, 4], 0.3).stored(element);
        let output = gpu().zeros(element, [1, 3, 2, 9]).unwrap();
        let bias = ContextualBias::new(&query.view(), &logits.view(), &embeddings.view(), &output);
        let prepared = bias.prepare(gpu()).unwrap();
        gpu().submit(|pass| prepared.record(pass)).unwrap();
        let exact = reference::cope(&query.tensor(), &logits.tensor(), &embeddings.tensor()).unwrap();
        let largest = exact.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        assert_near("bias", &wide(&gpu().read_blocking(&output).unwrap()), &exact, largest * unit + TOLERANCE);
    }
}

#[test]
fn zero_embeddings_are_plain_attention() {
    let mut random = Random::new(4);
    let plain = Request { causal: true, ..Request::random(&mut random, [1, 20, 33], [4, 2, 16]) };
    let cope = Cope::new(Both::filled([1, 16, 1, 9], 0.0));
    let contextual = Request { cope: Some(cope), ..plain.clone() }.unfused();
    assert_eq!(contextual.out, plain.unfused().out);
}

#[test]
fn any_layout_and_a_callers_scratch() {
    let mut random = Random::new(5);
    let mut request = Request::random(&mut random, [2, 5, 9], [4, 2, 8]);
    request.q.layout = Layout::heads_first([2, 5, 4, 8]).unwrap();
    request.k.layout = Layout::heads_first([2, 9, 2, 8]).unwrap();
    // Channels four apart.
    request.v = Both::new(random.values(1200), Layout::strided([2, 9, 2, 8], [600, 4 * 16, 2, 4], 3).unwrap());
    request.cope =
        Some(Cope::new(Both::new(random.values(100), Layout::strided([1, 8, 1, 5], [0, 1, 0, 8], 7).unwrap())));
    // Keys four apart.
    let keys_apart = Layout::strided([1, 5, 4, 9], [0, 36, 1, 4], 2).unwrap();
    request.bias = Some(Both::new(random.values(190), keys_apart));
    request.keep = Some(Both { layout: keys_apart, ..Both::whole(&mut random, [1, 1, 1, 190], 4) });
    request.assert_agrees("strided", TOLERANCE);

    let attention = request.over(Both::view, Both::i32_view);
    let out = gpu().zeros(ElementType::F32, [1, 1, 1, 1000]).unwrap();
    let out =
        View::new(out.buffer(), ElementType::F32, Layout::heads_first([2, 5, 4, 8]).unwrap().offset_by(5).unwrap());
    let unfused = Unfused::new(&attention, &out.clone().unwrap());
    let elements = unfused.scratch_elements(gpu()).unwrap();
    let scratch = gpu().zeros(ElementType::F32, [1, 1, 1, elements + 17]).unwrap();
    let layout = Layout::contiguous([1, 1, 1, elements]).unwrap().offset_by(17).unwrap();
    let scratch = View::new(scratch.buffer(), ElementType::F32, layout).unwrap();
    let prepared = unfused.clone().scratch(&scratch).prepare(gpu()).unwrap();
    // Twice, as a step that is recorded again.
    gpu()
        .submit(|pass| {
            prepared.record(pass);
            prepared.record(pass)
        })
        .unwrap();
    assert_near("out", &wide(&gpu().read_blocking(&out.unwrap()).unwrap()), &request.reference().out, TOLERANCE);

    let small = View::new(scratch.buffer(), ElementType::F32, Layout::contiguous([1, 1, 1, elements / 2]).unwrap());
    let refused = unfused.scratch(&small.unwrap()).prepare(gpu());
    expect_refused(refused, ErrorKind::Tensor, "scratch");
}

/// Limits so small that work is cut along rows, heads and tokens.
#[test]
fn small_limits_change_nothing() {
    let mut random = Random::new(6);
    let mut request = Request { causal: true, ..Request::random(&mut random, [2, 11, 40], [6, 3, 8]) };
    request.cope = Some(Cope::new(Both::random(&mut random, [1, 8, 6, 12], 0.3)));
    let lengths = Both::new(vec![30.0, 40.0], Layout::contiguous([2, 1, 1, 1]).unwrap());
    request.key_ranges = Some(lengths);
    let expected = request.reference();
    // Three heads fit into a binding, half of them with the second head of a key head first; or four tokens into a grid.
    for small in [
        gpu_with(|limits| limits.max_storage_buffer_binding_size = 8 << 10),
        gpu_with(|limits| limits.max_compute_workgroups_per_dimension = 5),
    ] {
        let attention = request.over(|both| both.view_on(&small), |both| both.i32_view_on(&small));
        let out = small.zeros(ElementType::F32, [2, 11, 6, 8]).unwrap();
        let lse = small.zeros(ElementType::F32, [2, 11, 6, 1]).unwrap();
        let prepared = Unfused::new(&attention, &out).lse(&lse).prepare(&small).unwrap();
        assert!(prepared.dispatches() > 12, "{}", prepared.dispatches());
        small.submit(|pass| prepared.record(pass)).unwrap();
        assert_near("out", &wide(&small.read_blocking(&out).unwrap()), &expected.out, TOLERANCE);
        assert_near("lse", &wide(&small.read_blocking(&lse).unwrap()), &expected.lse, TOLERANCE);
    }
}

/// Keys in three parts, from right to left, each with the gate sum of those to its right; then merged.
#[test]
fn a_sequence_in_parts_is_the_whole_sequence() {
    let mut random = Random::new(7);
    let (tokens, keys) = (6, 50);
    let mut whole = Request { causal: true, ..Request::random(&mut random, [1, tokens, keys], [4, 2, 8]) };
    let cope = Cope::new(Both::random(&mut random, [1, 8, 1, 20], 0.3));
    whole.cope = Some(cope.clone());
    for compute in [Request::unfused, Request::reference] {
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
            let attended = compute(&part);
            sum = Both::new(attended.gate_sum.iter().map(|&x| x as f32).collect(), sum.layout);
            parts.insert(0, attended);
        }
        assert_same("merged", &attention_merge(&parts).unwrap(), &whole.reference(), TOLERANCE, keys);
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let mut random = Random::new(8);
    let request = Request::random(&mut random, [1, 3, 4], [4, 2, 8]);
    let attention = request.over(Both::view, Both::i32_view);
    let out = gpu().zeros(ElementType::F32, [1, 3, 4, 8]).unwrap();
    let argument = |result: phasor::Result<phasor::Prepared>| match result {
        Err(error) if matches!(error.kind(), ErrorKind::Tensor | ErrorKind::Overlap) => error.argument().to_owned(),
        other => panic!("should have been refused: {other:?}"),
    };
    let prepare = |attention: &Attention<View>| Unfused::new(attention, &out).prepare(gpu());
    let embeddings = |shape| ContextualPe::new(&gpu().zeros(ElementType::F32, shape).unwrap());
    assert_eq!(argument(prepare(&Attention::new(&out, &request.k.view(), &request.v.view()))), "output");
    assert_eq!(argument(prepare(&attention.clone().cope(embeddings([1, 7, 1, 3])))), "position_embeddings");
    assert_eq!(argument(prepare(&attention.clone().cope(embeddings([1, 8, 1, 0])))), "position_embeddings");
    assert_eq!(argument(prepare(&attention.clone().keep(&request.q.view()))), "keep");
    let floats = Both::filled([1, 3, 4, 4], 1.0).view();
    assert_eq!(argument(prepare(&attention.clone().keep(&floats))), "keep");
    let three = Both::random(&mut random, [1, 4, 3, 8], 1.0).view();
    assert_eq!(argument(prepare(&Attention::new(&request.q.view(), &three, &three))), "k");
    assert_eq!(argument(Unfused::new(&attention, &request.k.view()).prepare(gpu())), "output");
    assert_eq!(argument(Unfused::new(&attention, &out).gate_sum(&request.q.view()).prepare(gpu())), "gate_sum");
    let empty = Request::random(&mut random, [1, 0, 4], [4, 2, 8]).over(Both::view, Both::i32_view);
    let none = gpu().zeros(ElementType::F32, [1, 0, 4, 8]).unwrap();
    assert_eq!(Unfused::new(&empty, &none).prepare(gpu()).unwrap().dispatches(), 0);
}
