//! Cases that have a right answer and are easily got wrong.

use crate::case::{Both, assert_near, wide};
use crate::common::{Random, gpu};
use crate::request::{Cope, Request, TOLERANCE, gate_error};
use phasor::attention::MASKED;
use phasor::{ContextualBias, ElementType, Layout, reference};

/// The contextual bias of these logits, `[1, tokens, heads, keys]`, on the device and in f64.
fn bias_of(random: &mut Random, logits: &Both, positions: usize) -> (Vec<f64>, Vec<f64>) {
    let [batch, tokens, heads, _] = logits.layout.shape();
    let query = Both::random(random, [batch, tokens, heads, 4], 1.0);
    let embeddings = Both::random(random, [1, 4, 1, positions], 0.3);
    let output = gpu().zeros(ElementType::F32, logits.layout.shape()).unwrap();
    let bias = ContextualBias::new(&query.view(), &logits.view(), &embeddings.view(), &output);
    let prepared = bias.prepare(gpu()).unwrap();
    gpu().submit(|pass| prepared.record(pass)).unwrap();
    let exact = reference::cope(&query.tensor(), &logits.tensor(), &embeddings.tensor()).unwrap();
    (wide(&gpu().read_blocking(&output).unwrap()), exact)
}

#[test]
fn logits_of_any_size_and_any_number_of_positions() {
    let mut random = Random::new(11);
    for size in [1e-6, 1.0, 30.0, 1e4, 1e30, f32::MAX] {
        for positions in [1, 2, 5, 300] {
            let mut logits = Both::random(&mut random, [1, 3, 2, 270], 1.0);
            logits = Both::new(logits.values.iter().map(|x| x / 2.0 * size).collect(), logits.layout);
            let (got, exact) = bias_of(&mut random, &logits, positions);
            assert_near(&format!("{size} {positions}"), &got, &exact, TOLERANCE);
        }
    }
}

/// All gates alike: near 0, so that no position is ever reached; near 1, so that the last one is reached at once.
#[test]
fn gates_that_never_or_always_count() {
    let mut random = Random::new(12);
    for logit in [MASKED, f32::MIN, -1e4, -30.0, -10.0, 0.0, 10.0, 30.0, 1e4] {
        for (keys, positions) in [(600, 4), (600, 64), (600, 601), (600, 1000), (1, 2), (255, 9), (257, 9)] {
            let logits = Both::filled([1, 1, 2, keys], logit);
            let (got, exact) = bias_of(&mut random, &logits, positions);
            // Four products of numbers up to 2 and 0.6 make q · E, which so changes by less than 10 a position.
            let tolerance = TOLERANCE + 10.0 * gate_error(keys);
            assert_near(&format!("{logit}: {keys} keys, {positions} positions"), &got, &exact, tolerance);
        }
    }
}

/// Sums of gates stay right however long they get: a running f32 sum would be off by 1e-3 and more here.
#[test]
fn long_sums() {
    let mut random = Random::new(13);
    for keys in [32_768, 70_000] {
        let logits = Both::random(&mut random, [1, 1, 1, keys], 1.0);
        // So that a position's error is seen whole: q · E grows by 1 from position to position, but starts anew every
        // 8, since f32 holds no more than 24 bits of it.
        let query = Both::filled([1, 1, 1, 1], 1.0);
        let embeddings =
            Both::new((0..keys).map(|p| (p % 8) as f32).collect(), Layout::contiguous([1, 1, 1, keys]).unwrap());
        let output = gpu().zeros(ElementType::F32, [1, 1, 1, keys]).unwrap();
        let bias = ContextualBias::new(&query.view(), &logits.view(), &embeddings.view(), &output);
        let prepared = bias.prepare(gpu()).unwrap();
        gpu().submit(|pass| prepared.record(pass)).unwrap();
        let got = wide(&gpu().read_blocking(&output).unwrap());
        let exact = reference::cope(&query.tensor(), &logits.tensor(), &embeddings.tensor()).unwrap();
        // The fraction of a sum is rounded to 2^-25 seven times in a tile's scan and once for each tile; a gate is off by
        // some 2^-24; a position keeps at least 15 bits of fraction. Between 7 and 0 a step is worth seven.
        let position = 2f64.powi(-25) * (7.0 + keys as f64 / 256.0 + 4.0 * (keys as f64).sqrt()) + 2f64.powi(-15);
        assert_near(&format!("{keys} keys"), &got, &exact, 7.0 * position);
    }
}

#[test]
fn long_rows_of_attention() {
    let mut random = Random::new(14);
    let mut request = Request { causal: true, ..Request::random(&mut random, [1, 2, 40_000], [1, 1, 4]) };
    request.cope = Some(Cope::new(Both::random(&mut random, [1, 4, 1, 64], 0.3)));
    request.assert_agrees("40,000 keys", TOLERANCE);
    request.k = Both::filled([1, 70_000, 1, 4], 0.25);
    request.v = Both::random(&mut random, [1, 70_000, 1, 4], 1.0);
    request.assert_agrees("70,000 keys", TOLERANCE);
}

#[test]
fn queries_that_see_nothing_are_zero() {
    let mut random = Random::new(15);
    let hidden = Request::hidden(&mut random);
    for (i, request) in hidden.iter().enumerate() {
        request.assert_agrees(&format!("hidden {i}"), TOLERANCE);
        let got = request.unfused();
        let first_row = &got.out[..3 * 2 * 4];
        assert!(first_row.iter().all(|&x| x == 0.0), "{i}: {first_row:?}");
        assert!(got.lse[..3 * 2].iter().all(|&x| x == f64::from(MASKED)), "{i}: {:?}", got.lse);
    }
}

#[test]
fn values_that_nobody_sees_may_be_anything() {
    let mut random = Random::new(16);
    let mut request = Request::random(&mut random, [1, 3, 5], [2, 1, 4]);
    request.key_ranges = Some(Both::filled([1, 1, 1, 1], 3.0));
    for hidden in &mut request.v.values[3 * 4..] {
        *hidden = f32::NAN;
    }
    request.v = Both::new(request.v.values, request.v.layout);
    request.assert_agrees("padding that is no number", TOLERANCE);
}

/// Logits of ±1e4 and masks of f32's lowest value, together.
#[test]
fn huge_logits_give_numbers() {
    let mut random = Random::new(17);
    let mut request = Request { scale: Some(1e4), ..Request::random(&mut random, [1, 4, 9], [2, 2, 4]) };
    request.q = Both::filled([1, 4, 2, 4], 0.5);
    request.k = Both::new((0..72).map(|i| [0.5, -0.5, 0.25][i / 4 % 3]).collect(), request.k.layout);
    let mut bias = Both::filled([1, 4, 1, 9], 0.0);
    bias.values.iter_mut().step_by(2).for_each(|bias| *bias = f32::MIN);
    request.bias = Some(Both::new(bias.values, bias.layout));
    request.cope = Some(Cope::new(Both::random(&mut random, [1, 4, 1, 3], 0.3)));
    let (got, expected) = (request.unfused(), request.reference());
    assert!(expected.lse.iter().any(|lse| lse.abs() > 4e3), "{:?}", expected.lse);
    // A logit of 1e4 is rounded to 2^-11; equal logits are rounded alike, but for what the contextual bias adds.
    assert_near("out", &got.out, &expected.out, 4e-3);
    assert_near("lse", &got.lse, &expected.lse, 2e-3);
}
