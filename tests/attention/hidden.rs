//! What no query sees may be anything: a cache's padding holds whatever was in memory, numbers or not.

use crate::case::Both;
use crate::common::Random;
use crate::fused::{SCHEDULES, of};
use crate::request::{Cope, Request, Source};
use phasor::attention::{Rotation, Standing};
use phasor::frequencies::Plain;
use phasor::{ElementType, Pairing};

const KEYS: usize = 37;

/// The same request with something else in keys and values from which on no number is.
fn spoiled(request: &Request, hidden: impl Fn(usize, usize) -> bool, by: f32) -> Request {
    let spoil = |both: &Both| {
        let [batch, keys, heads, channels] = both.layout.shape();
        let mut values = both.values.clone();
        for (i, x) in values.iter_mut().enumerate() {
            let token = i / (heads * channels);
            if hidden(token / keys, token % keys) {
                *x = by;
            }
        }
        assert_eq!(values.len(), batch * keys * heads * channels);
        Both { element: both.element, ..Both::new(values, both.layout) }
    };
    let mut spoiled = Request { k: spoil(&request.k), v: spoil(&request.v), ..request.clone() };
    if let Some(Cope { gates: Source::Keys(keys), .. }) = &mut spoiled.cope {
        *keys = spoil(keys);
    }
    spoiled
}

/// To the bit: what is hidden takes part in nothing.
#[track_caller]
fn assert_unchanged(request: &Request, hidden: impl Fn(usize, usize) -> bool + Copy, what: &str) {
    let whole = SCHEDULES.map(|schedule| request.fused(schedule));
    for by in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let spoiled = spoiled(request, hidden, by);
        for (schedule, expected) in SCHEDULES.into_iter().zip(&whole) {
            assert!(expected.out.iter().all(|x| x.is_finite()), "{what}, {schedule:?}");
            assert_eq!(&spoiled.fused(schedule), expected, "{what}, {by}, {schedule:?}");
        }
    }
}

/// Plain, and contextual with a rotation; in words of four, not in such, and in 16 bits. Each pipeline of a software
/// device takes a while, so that there are no more of them than branches.
fn variants() -> [Request; 3] {
    let mut random = Random::new(201);
    let mut request = |channels| Request::random(&mut random, [2, 5, KEYS], [4, 2, channels]);
    let (fours, singles) = (request(8), request(6));
    let halves = |both: &Both| both.stored(ElementType::BF16);
    let halves = Request::new(halves(&fours.q), halves(&fours.k), halves(&fours.v));
    let rotation = Rotation::new(&Plain { base: 100.0 }.frequencies(8).unwrap(), Pairing::HalfSplit);
    let cope = Cope::new(Both::random(&mut random, [1, 8, 1, 6], 0.3));
    let gate_keys = Both::random(&mut random, [2, KEYS, 2, 8], 1.0);
    let cope = Cope { gates: Source::Keys(gate_keys), ..cope };
    [Request { rotation: Some(rotation), cope: Some(cope), ..fours }, singles, halves]
}

#[test]
fn by_a_boolean_mask() {
    for request in variants() {
        let hidden = |_: usize, key: usize| key % 3 == 1 || key > 30;
        let keep = (0..KEYS).map(|key| f32::from(u8::from(!hidden(0, key)))).collect();
        let keep = Both::new(keep, of([1, 1, 1, KEYS]));
        assert_unchanged(&Request { keep: Some(keep), ..request }, hidden, "keep");
    }
}

#[test]
fn by_a_range_of_keys() {
    for request in variants() {
        let ranges = Both::new(vec![0.0, 19.0, 5.0, 37.0], of([2, 1, 1, 2]));
        let hidden = |row: usize, key: usize| if row == 0 { key >= 19 } else { key < 5 };
        for standing in [Standing::Last, Standing::RowLast] {
            let request = Request { key_ranges: Some(ranges.clone()), standing, ..request.clone() };
            assert_unchanged(&request, hidden, "range");
            assert_unchanged(&Request { causal: true, ..request }, hidden, "range and causal");
        }
    }
}

#[test]
fn by_where_queries_stand() {
    for request in variants() {
        let request = Request { causal: true, standing: Standing::From(10), window: Some(9), ..request };
        assert_unchanged(&request, |_, key| !(2..15).contains(&key), "causal window");
    }
}

/// A mask that hides a key from one query alone: the others see what is no number, and this one does not.
#[test]
fn from_some_queries_alone() {
    for request in variants() {
        let mut keep = Both::filled([1, 5, 1, KEYS], 1.0);
        keep.values[2 * KEYS + 7] = 0.0;
        let request = Request { keep: Some(Both::new(keep.values, keep.layout)), ..request };
        let spoiled = spoiled(&request, |_, key| key == 7, f32::NAN);
        for schedule in SCHEDULES {
            let (got, expected) = (spoiled.fused(schedule).out, request.fused(schedule).out);
            let row = got.len() / 2 / 5;
            assert_eq!(got[2 * row..3 * row], expected[2 * row..3 * row], "{schedule:?}");
        }
    }
}
