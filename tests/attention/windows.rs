//! Keys that no binding of the device holds, taken in windows.

use crate::case::{Both, assert_near, wide};
use crate::common::refused::expect_refused;
use crate::common::{Random, gpu_with};
use crate::fused::of;
use crate::request::{Cope, Request, Source, TOLERANCE, assert_same};
use phasor::attention::{Fused, Rotation, Standing};
use phasor::frequencies::Plain;
use phasor::reference::Attended;
use phasor::{ElementType, ErrorKind, Gpu, Pairing, View};

const SHAPE: [usize; 4] = [2, 11, 6, 8];
const KEYS: usize = 600;

/// 600 keys of 3 heads of 8 channels are 57,600 bytes: three windows of up to 256 keys.
fn small() -> Gpu {
    gpu_with(|limits| limits.max_storage_buffer_binding_size = 26_000)
}

fn prepare(gpu: &Gpu, request: &Request, element: ElementType) -> (Fused, [View; 3]) {
    let attention = request.over(|both| both.view_on(gpu), |both| both.i32_view_on(gpu));
    let [batch, tokens, heads, channels] = SHAPE;
    let zeros = |element, n| gpu.zeros(element, [batch, tokens, heads, n]).unwrap();
    let results = [zeros(element, channels), zeros(ElementType::F32, 1), zeros(ElementType::F32, 2)];
    (Fused::new(&attention, &results[0]), results)
}

fn run(gpu: &Gpu, request: &Request) -> Attended {
    let (fused, [out, lse, sum]) = prepare(gpu, request, ElementType::F32);
    let fused = fused.lse(&lse);
    let fused = if request.cope.is_some() { fused.gate_sum(&sum) } else { fused };
    let prepared = fused.prepare(gpu).unwrap();
    // Three windows, scored and summed, and merged.
    assert!(prepared.dispatches() > 2 * 3, "{}", prepared.dispatches());
    gpu.submit(|pass| prepared.record(pass)).unwrap();
    let read = |view: &View| wide(&gpu.read_blocking(view).unwrap());
    let gate_sum = if request.cope.is_some() { read(&sum) } else { Vec::new() };
    Attended { out: read(&out), lse: read(&lse), gate_sum }
}

/// Every kind of request.
fn requests() -> Vec<(&'static str, Request)> {
    let mut random = Random::new(41);
    let [batch, tokens, heads, channels] = SHAPE;
    let plain = Request::random(&mut random, [batch, tokens, KEYS], [heads, 3, channels]);
    let causal = Request { causal: true, ..plain.clone() };
    let rotation = Rotation::new(&Plain { base: 100.0 }.frequencies(8).unwrap(), Pairing::HalfSplit).first_key(-7);
    let rotated = Request { rotation: Some(rotation), ..causal.clone() };
    let cope = Cope::new(Both::random(&mut random, [1, channels, 1, 12], 0.3));
    let of_keys = Source::Keys(Both::random(&mut random, [batch, KEYS, 3, channels], 1.0));
    let mut sum = Both::filled([batch, tokens, heads, 2], 0.75);
    sum.values.iter_mut().step_by(2).for_each(|whole| *whole = 3.0);
    let begun = Cope { gate_sum: Some(Both::new(sum.values, sum.layout)), ..cope.clone() };
    let masked = Request {
        keep: Some(Both::whole(&mut random, [batch, 1, 1, KEYS], 3)),
        bias: Some(Both::random(&mut random, [1, tokens, 1, KEYS], 1.0)),
        ..causal.clone()
    };
    let ranges = Both::new(vec![30.0, 590.0, 0.0, 300.0], of([batch, 1, 1, 2]));
    let with = |request: &Request, cope: &Cope| Request { cope: Some(cope.clone()), ..request.clone() };
    vec![
        ("causal", causal.clone()),
        ("ranges", Request { key_ranges: Some(ranges), standing: Standing::RowLast, ..causal.clone() }),
        ("window", Request { window: Some(20), ..causal.clone() }),
        ("from 30", Request { standing: Standing::From(30), ..causal.clone() }),
        ("masked", masked),
        ("rotated", rotated.clone()),
        ("CoPE", with(&causal, &cope)),
        ("CoPE, rotated", with(&rotated, &cope)),
        ("CoPE by keys", with(&causal, &Cope { gates: of_keys, ..cope.clone() })),
        ("CoPE by values", with(&plain, &Cope { gates: Source::Values, ..cope })),
        ("CoPE, begun", with(&causal, &begun)),
    ]
}

#[test]
fn keys_larger_than_a_binding_are_taken_in_windows() {
    let small = small();
    for (what, request) in requests() {
        let got = run(&small, &request);
        assert_same(what, &got, &request.reference(), TOLERANCE, KEYS);
    }
}

/// Without a log-sum-exp of the caller's, with scratch memory of its own, and recorded twice.
#[test]
fn scratch_memory_serves_all_windows() {
    let small = small();
    let (_, request) = requests().swap_remove(6);
    let (fused, [out, ..]) = prepare(&small, &request, ElementType::F32);
    let scratch = small.zeros(ElementType::F32, [1, 1, 1, fused.scratch_elements(&small).unwrap()]).unwrap();
    let prepared = fused.scratch(&scratch).prepare(&small).unwrap();
    small.submit(|pass| (0..2).for_each(|_| prepared.record(pass))).unwrap();
    let got = wide(&small.read_blocking(&out).unwrap());
    assert_near("out", &got, &request.reference().out, TOLERANCE);
}

/// However many windows there are.
#[test]
fn an_output_of_16_bits_is_rounded_once() {
    let small = small();
    let (_, request) = requests().swap_remove(0);
    let (fused, [out, ..]) = prepare(&small, &request, ElementType::F16);
    let prepared = fused.prepare(&small).unwrap();
    small.submit(|pass| prepared.record(pass)).unwrap();
    let got = wide(&small.read_blocking(&out).unwrap());
    // Outputs are averages of values of up to 2.
    assert_near("out", &got, &request.reference().out, TOLERANCE + 2.0 * 2f64.powi(-11));
}

/// Where not even a split of the keys fits.
#[test]
fn what_no_window_helps_is_refused_by_number() {
    let tiny = gpu_with(|limits| limits.max_storage_buffer_binding_size = 4 << 10);
    let (_, request) = requests().swap_remove(0);
    let refused = prepare(&tiny, &request, ElementType::F32).0.prepare(&tiny);
    let error = expect_refused(refused, ErrorKind::Limit, "max_storage_buffer_binding_size");
    assert!(error.may_be().contains("4096"), "{error}");
}
