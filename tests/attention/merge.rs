//! Keys in parts: over several calls, and over several devices.

use crate::case::{Both, assert_near, wide};
use crate::common::{Random, gpu, gpu_with};
use crate::request::{Cope, Request, TOLERANCE, assert_same};
use phasor::attention::{Fused, MASKED, Merge, Schedule, Standing};
use phasor::reference::{Attended, attention_merge};
use phasor::{ElementType, ErrorKind, Gpu, Layout, View};
use std::ops::Range;

/// What attention writes, on a device.
struct Results {
    out: View,
    lse: View,
    gate_sum: View,
}

impl Results {
    fn new(gpu: &Gpu, element: ElementType, [batch, tokens, heads, channels]: [usize; 4]) -> Self {
        let zeros = |element, channels| gpu.zeros(element, [batch, tokens, heads, channels]).unwrap();
        Self { out: zeros(element, channels), lse: zeros(ElementType::F32, 1), gate_sum: zeros(ElementType::F32, 2) }
    }

    /// On another device, by way of the host, as an engine on several devices would send them.
    fn sent(&self, from: &Gpu, to: &Gpu) -> Self {
        let send = |view: &View| to.upload(&from.read_blocking(view).unwrap(), view.shape()).unwrap();
        Self { out: send(&self.out), lse: send(&self.lse), gate_sum: send(&self.gate_sum) }
    }

    fn take_in(&self, gpu: &Gpu, part: &Self) {
        let merge = Merge::new(&self.out, &self.lse, &part.out, &part.lse).prepare(gpu).unwrap();
        gpu.submit(|pass| merge.record(pass)).unwrap();
    }

    fn read(&self, gpu: &Gpu) -> Attended {
        let read = |view: &View| wide(&gpu.read_blocking(view).unwrap());
        Attended { out: read(&self.out), lse: read(&self.lse), gate_sum: read(&self.gate_sum) }
    }
}

/// The same queries over some of the keys, with the gate sum of those to the right.
fn part_of(whole: &Request, range: &Range<usize>, gate_sum: &Both) -> Request {
    let part = |both: &Both| Both { layout: both.layout.tokens(range.clone()).unwrap(), ..both.clone() };
    let (tokens, keys) = (whole.q.layout.shape()[1], whole.k.layout.shape()[1]);
    Request {
        k: part(&whole.k),
        v: part(&whole.v),
        standing: Standing::From((keys - tokens) as i64 - range.start as i64),
        cope: whole.cope.clone().map(|cope| Cope { gate_sum: Some(gate_sum.clone()), ..cope }),
        ..whole.clone()
    }
}

/// Attention over a part on a device that has this part's keys and values in buffers of its own.
fn attend(gpu: &Gpu, part: &Request, schedule: Schedule) -> Results {
    let attention = part.over(|both| both.view_on(gpu), |_| unreachable!("no masks here"));
    let results = Results::new(gpu, ElementType::F32, part.q.layout.shape());
    let fused = Fused::new(&attention, &results.out).schedule(schedule).lse(&results.lse);
    let prepared = fused.gate_sum(&results.gate_sum).prepare(gpu).unwrap();
    gpu.submit(|pass| prepared.record(pass)).unwrap();
    results
}

fn contextual(random: &mut Random, [tokens, keys]: [usize; 2]) -> Request {
    let mut whole = Request { causal: true, ..Request::random(random, [2, tokens, keys], [4, 2, 8]) };
    whole.cope = Some(Cope::new(Both::random(random, [1, 8, 1, 20], 0.3)));
    whole
}

/// One problem over the buffers of two devices: each has half of the keys, and what they find is merged on the first.
#[test]
fn two_devices_give_what_one_gives() {
    let mut random = Random::new(1);
    let (tokens, keys) = (6, 50);
    let whole = contextual(&mut random, [tokens, keys]);
    let (left, right) = (gpu_with(|_| {}), gpu_with(|_| {}));
    for schedule in [Schedule::Rows, Schedule::Tiles, Schedule::Split] {
        // The gates to the right are counted first.
        let nothing = Both::filled([2, tokens, 4, 2], 0.0);
        let there = attend(&right, &part_of(&whole, &(25..keys), &nothing), schedule).sent(&right, &left);
        let sum = Both::new(left.read_blocking(&there.gate_sum).unwrap(), nothing.layout);
        let here = attend(&left, &part_of(&whole, &(0..25), &sum), schedule);
        here.take_in(&left, &there);
        let what = format!("two devices, {schedule:?}");
        assert_same(&what, &here.read(&left), &whole.reference(), TOLERANCE, keys);
        // To f32's rounding what one device gives: a logarithm and two exponentials of numbers below 16 more.
        assert_near(&what, &here.read(&left).out, &whole.fused(schedule).out, 1e-5);
    }
}

/// In any number of parts, some of which a query does not see, and in any order of the merges.
#[test]
fn parts_merge_in_any_order() {
    let mut random = Random::new(2);
    let whole = contextual(&mut random, [9, 40]);
    let whole = Request { window: Some(12), ..whole };
    let mut sum = Both::filled([2, 9, 4, 2], 0.0);
    let mut parts = Vec::new();
    for range in [33..40, 32..33, 20..32, 0..20] {
        let part = attend(gpu(), &part_of(&whole, &range, &sum), Schedule::Split);
        sum = Both::new(gpu().read_blocking(&part.gate_sum).unwrap(), sum.layout);
        parts.push(part);
    }
    let expected = whole.reference();
    for order in [[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]] {
        let merged = Results::new(gpu(), ElementType::F32, whole.q.layout.shape());
        // What has seen nothing yet, over memory that nobody has filled.
        let merged = Results {
            out: Both::filled([2, 9, 4, 8], f32::NAN).view(),
            lse: Both::filled([2, 9, 4, 1], MASKED).view(),
            ..merged
        };
        order.iter().for_each(|&part| merged.take_in(gpu(), &parts[part]));
        let got = merged.read(gpu());
        assert_near("out", &got.out, &expected.out, TOLERANCE);
        assert_near("lse", &got.lse, &expected.lse, TOLERANCE);
    }
}

/// Numbers as attention gives them, of every element type, with odd strides, against the f64 twin.
#[test]
fn any_numbers_and_layouts() {
    let mut random = Random::new(3);
    let (shape, rows) = ([2, 3, 5, 70], 30);
    // Some rows of each saw nothing, some are far larger than the others.
    let lse = |random: &mut Random, i: usize| {
        let values = (0..rows).map(|row| match (row + i) % 7 {
            0 => MASKED,
            1 => 1e4 * random.value(),
            _ => 4.0 * random.value(),
        });
        Both::new(values.collect(), Layout::contiguous([2, 3, 5, 1]).unwrap())
    };
    // Values of up to 2 are rounded to half a unit, one way or the other.
    let elements = [(ElementType::F32, 1e-6), (ElementType::F16, 2f64.powi(-9)), (ElementType::BF16, 2f64.powi(-7))];
    for (element, unit) in elements {
        for (part_element, _) in elements {
            let out = Both::random(&mut random, shape, 1.0).stored(element);
            let strided = Layout::strided(shape, [1200, 397, 73, 1], 5).unwrap();
            let part = Both::new(random.values(3000), strided).stored(part_element);
            let (own, other) = (lse(&mut random, 0), lse(&mut random, 3));
            let seen = |both: &Both, lse: &Both| {
                let rows = both.in_order();
                let rows = rows.chunks(70).zip(&lse.wide);
                rows.flat_map(|(row, lse)| row.iter().map(move |&x| if *lse > f64::from(MASKED) { x } else { 0.0 }))
                    .collect()
            };
            let attended =
                |both, lse: &Both| Attended { out: seen(both, lse), lse: lse.wide.clone(), gate_sum: Vec::new() };
            let expected = attention_merge(&[attended(&out, &own), attended(&part, &other)]).unwrap();
            let views = (out.view(), own.view(), part.view(), other.view());
            // As attention leaves them: 0 where nothing was seen.
            let out_view = gpu().upload_as(element, &seen_f32(&seen(&out, &own)), shape).unwrap();
            let merge = Merge::new(&out_view, &views.1, &views.2, &views.3).prepare(gpu()).unwrap();
            gpu().submit(|pass| merge.record(pass)).unwrap();
            let what = format!("{element} and {part_element}");
            let read = |view| wide(&gpu().read_blocking(view).unwrap());
            // WGSL's exp(x) is good to 3 + 2 |x| units in the last place, at most 5 * 2^-24 for what it then comes to.
            assert_near(&what, &read(&out_view), &expected.out, unit + 3e-6);
            // Numbers of up to 2e4 are rounded to 2^-10.
            assert_near(&what, &read(&views.1), &expected.lse, 1e-3);
        }
    }
}

fn seen_f32(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&x| x as f32).collect()
}

#[test]
fn what_does_not_go_together_is_refused() {
    let zeros = |shape| gpu().zeros(ElementType::F32, shape).unwrap();
    let [out, part] = [(); 2].map(|()| zeros([1, 3, 4, 8]));
    let [lse, part_lse] = [(); 2].map(|()| zeros([1, 3, 4, 1]));
    let argument = |merge: Merge| match merge.prepare(gpu()) {
        Err(error) if matches!(error.kind(), ErrorKind::Tensor | ErrorKind::Overlap) => error.argument().to_owned(),
        other => panic!("should have been refused: {other:?}"),
    };
    assert_eq!(Merge::new(&out, &lse, &part, &part_lse).prepare(gpu()).unwrap().dispatches(), 1);
    assert_eq!(argument(Merge::new(&out, &lse, &zeros([1, 3, 4, 7]), &part_lse)), "part");
    assert_eq!(argument(Merge::new(&out, &lse, &part, &zeros([1, 3, 3, 1]))), "part_lse");
    assert_eq!(argument(Merge::new(&out, &lse, &out, &part_lse)), "output");
    assert_eq!(argument(Merge::new(&out, &lse, &part, &lse)), "lse");
    let halves = gpu().zeros(ElementType::F16, [1, 3, 4, 1]).unwrap();
    assert_eq!(argument(Merge::new(&out, &halves, &part, &part_lse)), "lse");
    // A log-sum-exp behind each head's channels.
    let arena = zeros([1, 3, 4, 9]);
    let at = |channels, offset| {
        let layout = Layout::strided([1, 3, 4, channels], [0, 36, 9, 1], offset).unwrap();
        View::new(arena.buffer(), ElementType::F32, layout).unwrap()
    };
    assert_eq!(argument(Merge::new(&at(8, 0), &at(1, 8), &part, &part_lse)), "output");
    let none = Merge::new(&zeros([1, 0, 4, 8]), &zeros([1, 0, 4, 1]), &zeros([1, 0, 4, 8]), &zeros([1, 0, 4, 1]));
    assert_eq!(none.prepare(gpu()).unwrap().dispatches(), 0);
}
