//! Every kind of request, small, so that kernels compile quickly.

use crate::case::{Both, assert_near};
use crate::common::Random;
use crate::request::{Cope, Request, Source, TOLERANCE, assert_same};
use phasor::Layout;
use phasor::attention::{Schedule, Standing};

/// Each way of cutting the work gives what the reference gives.
#[track_caller]
fn assert_agrees(request: &Request, what: &str) {
    let expected = request.reference();
    let keys = request.k.layout.shape()[1];
    for schedule in [Schedule::Rows, Schedule::Tiles, Schedule::Split] {
        let what = format!("{what}, {schedule:?}");
        assert_same(&what, &request.fused(schedule), &expected, TOLERANCE, keys);
        // Nobody asks for sums: counting may stop at the last position.
        assert_near(&what, &request.fused_output(schedule), &expected.out, TOLERANCE);
    }
}

#[test]
fn plain_attention_with_every_kind_of_mask() {
    let mut random = Random::new(1);
    for heads in [[4, 4, 8], [6, 2, 20], [3, 3, 1]] {
        for (tokens, keys) in [(9, 9), (1, 130), (70, 70), (11, 3)] {
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
}

#[test]
fn masks_and_biases_from_buffers() {
    let mut random = Random::new(2);
    let (batch, tokens, keys) = (2, 6, 13);
    for heads in [[4, 4, 8], [6, 2, 6]] {
        let plain = Request::random(&mut random, [batch, tokens, keys], heads);
        for shape in [[batch, tokens, heads[0], keys], [1, tokens, 1, keys], [batch, 1, 1, keys]] {
            let mut keep = Both::filled(shape, 0.0);
            keep.values.iter_mut().for_each(|keep| *keep = f32::from(random.value() > -0.7));
            let keep = Both::new(keep.values, keep.layout);
            let bias = Both::random(&mut random, shape, 2.0);
            assert_agrees(&Request { keep: Some(keep.clone()), ..plain.clone() }, "keep");
            let both = Request { keep: Some(keep), bias: Some(bias), causal: true, ..plain.clone() };
            assert_agrees(&both, "keep and bias");
        }
        let at = |shape| Layout::contiguous(shape).unwrap();
        let lengths = Both::new(vec![5.0, 13.0], at([batch, 1, 1, 1]));
        let ranges = Both::new(vec![3.0, 9.0, 0.0, 99.0], at([batch, 1, 1, 2]));
        for key_ranges in [lengths, ranges] {
            for standing in [Standing::Last, Standing::RowLast, Standing::From(0)] {
                let padded = Request { key_ranges: Some(key_ranges.clone()), standing, ..plain.clone() };
                assert_agrees(&padded, "padded");
                assert_agrees(&Request { causal: true, window: Some(4), ..padded }, "padded and causal");
            }
        }
    }
}

#[test]
fn contextual_attention_in_every_variant() {
    let mut random = Random::new(3);
    for (heads, positions) in [[4, 4, 8], [6, 2, 6], [3, 3, 1]].into_iter().zip([1, 7, 300]) {
        let [n_heads, kv_heads, channels] = heads;
        let (batch, tokens, keys) = (2, 37, 90);
        let plain = Request { causal: true, ..Request::random(&mut random, [batch, tokens, keys], heads) };
        let cope = Cope::new(Both::random(&mut random, [1, channels, 1, positions], 0.3));
        let with = |cope: Cope| Request { cope: Some(cope), ..plain.clone() };
        assert_agrees(&with(cope.clone()), "shared");
        let per_head = Both::random(&mut random, [1, channels, n_heads, positions], 0.3);
        assert_agrees(&with(Cope { embeddings: per_head, ..cope.clone() }), "per head");
        assert_agrees(&with(Cope { bias_scale: 0.125, ..cope.clone() }), "bias scale");
        let query = Both::random(&mut random, [batch, tokens, n_heads, channels], 1.0);
        assert_agrees(&with(Cope { query: Some(query), ..cope.clone() }), "query");
        let gate_keys = Both::random(&mut random, [batch, keys, kv_heads, channels], 1.0);
        assert_agrees(&with(Cope { gates: Source::Keys(gate_keys), ..cope.clone() }), "separate keys");
        assert_agrees(&with(Cope { gates: Source::Values, ..cope.clone() }), "values");
        let mut sum = Both::filled([batch, tokens, n_heads, 2], 0.75);
        sum.values.iter_mut().step_by(2).for_each(|whole| *whole = 3.0);
        let sum = Both::new(sum.values, sum.layout);
        assert_agrees(&with(Cope { gate_sum: Some(sum), ..cope.clone() }), "gate sum");
        for gates_see_bias in [false, true] {
            let mut bias = Both::random(&mut random, [1, tokens, 1, keys], 1.0);
            for hidden in bias.values.iter_mut().step_by(5) {
                *hidden = f32::MIN;
            }
            let bias = Both::new(bias.values, bias.layout);
            let cope = Cope { gates_see_bias, ..cope.clone() };
            assert_agrees(&Request { bias: Some(bias), ..with(cope) }, "bias");
        }
    }
}

#[test]
fn few_queries_over_many_keys() {
    let mut random = Random::new(4);
    for ([heads, kv_heads, channels], tokens) in [([2, 2, 8], 1), ([6, 2, 8], 1), ([4, 4, 6], 3), ([3, 1, 20], 4)] {
        let (batch, keys) = (2, 2300);
        let plain = Request::random(&mut random, [batch, tokens, keys], [heads, kv_heads, channels]);
        let causal = Request { causal: true, ..plain.clone() };
        let at = |shape| Layout::contiguous(shape).unwrap();
        let ranges = Both::new(vec![3.0, 900.0, 0.0, 2299.0], at([batch, 1, 1, 2]));
        let padded = Request { key_ranges: Some(ranges), standing: Standing::RowLast, ..causal.clone() };
        let windowed = Request { window: Some(1500), ..padded.clone() };
        let cope = Cope::new(Both::random(&mut random, [1, channels, 1, 70], 0.3));
        let gate_keys = Both::random(&mut random, [batch, keys, kv_heads, channels], 1.0);
        for request in [plain, causal, padded, windowed] {
            assert_agrees(&request, "plain");
            let contextual = |cope: Cope| Request { cope: Some(cope), ..request.clone() };
            assert_agrees(&contextual(cope.clone()), "contextual");
            assert_agrees(&contextual(Cope { gates: Source::Values, ..cope.clone() }), "values");
            assert_agrees(&contextual(Cope { gates: Source::Keys(gate_keys.clone()), ..cope.clone() }), "keys");
        }
    }
}
