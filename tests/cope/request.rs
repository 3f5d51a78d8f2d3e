//! A request for attention with all that it may hold, on the host and on the device at once. Each binary uses
//! some of it.

#![allow(dead_code)]

use crate::case::{Both, assert_near, wide};
use crate::common::{Random, gpu};
use phasor::attention::{Attention, ContextualPe, Fused, Gates, MASKED, Rotation, Schedule, Standing, Unfused};
use phasor::reference::{Attended, attention};
use phasor::{ElementType, Layout, Prepared, View};

/// The largest error of a logit that is a sum of products of about this size, and of what it leads to.
///
/// A logit of some tens is rounded a few times to 2^-20; outputs are averages of values of up to 2, and move by at most
/// twice the logits' error times them.
pub const TOLERANCE: f64 = 3e-5;

/// The tensors of a request that may be absent, in one type for the host and the device.
#[derive(Clone)]
pub struct Request {
    pub q: Both,
    pub k: Both,
    pub v: Both,
    pub causal: bool,
    pub window: Option<usize>,
    pub standing: Standing,
    pub scale: Option<f64>,
    pub key_ranges: Option<Both>,
    pub keep: Option<Both>,
    pub bias: Option<Both>,
    pub rotation: Option<Rotation>,
    pub cope: Option<Cope>,
}

#[derive(Clone)]
pub struct Cope {
    pub embeddings: Both,
    pub query: Option<Both>,
    pub gates: Source,
    pub gates_see_bias: bool,
    pub gate_sum: Option<Both>,
    pub bias_scale: f64,
}

#[derive(Clone)]
pub enum Source {
    Logits,
    Keys(Both),
    Values,
}

impl Cope {
    pub fn new(embeddings: Both) -> Self {
        Self { embeddings, query: None, gates: Source::Logits, gates_see_bias: true, gate_sum: None, bias_scale: 1.0 }
    }
}

impl Request {
    pub fn new(q: Both, k: Both, v: Both) -> Self {
        Self {
            q,
            k,
            v,
            causal: false,
            window: None,
            standing: Standing::Last,
            scale: None,
            key_ranges: None,
            keep: None,
            bias: None,
            rotation: None,
            cope: None,
        }
    }

    pub fn random(
        random: &mut Random,
        [batch, tokens, keys]: [usize; 3],
        [heads, kv_heads, channels]: [usize; 3],
    ) -> Self {
        let q = Both::random(random, [batch, tokens, heads, channels], 1.0);
        let [k, v] = [(); 2].map(|()| Both::random(random, [batch, keys, kv_heads, channels], 1.0));
        Self::new(q, k, v)
    }

    /// Requests of which the first row's queries see no key, `[2, 3, 2, 4]`, for each reason that there may be.
    pub fn hidden(random: &mut Random) -> Vec<Self> {
        let of = |shape| Layout::contiguous(shape).unwrap();
        let mut request = Self::random(random, [2, 3, 5], [2, 1, 4]);
        request.cope = Some(Cope::new(Both::random(random, [1, 4, 1, 3], 0.3)));
        let lengths = Both::new(vec![0.0, 5.0], of([2, 1, 1, 1]));
        vec![
            Self { key_ranges: Some(lengths), ..request.clone() },
            Self { keep: Some(Both::filled([1, 1, 1, 5], 0.0)), ..request.clone() },
            Self { bias: Some(Both::filled([1, 1, 1, 5], f32::MIN)), ..request.clone() },
            Self { bias: Some(Both::filled([1, 1, 1, 5], MASKED)), ..request.clone() },
            Self { causal: true, standing: Standing::From(-9), ..request.clone() },
            Self { window: Some(0), causal: true, ..request.clone() },
            Self::random(random, [2, 3, 0], [2, 1, 4]),
        ]
    }

    /// The same request over another kind of tensor.
    pub fn over<'a, T: Clone>(
        &'a self,
        number: impl Fn(&'a Both) -> T,
        integer: impl Fn(&'a Both) -> T,
    ) -> Attention<T> {
        let mut request = Attention::new(&number(&self.q), &number(&self.k), &number(&self.v)).standing(self.standing);
        if self.causal {
            request = request.causal();
        }
        if let Some(window) = self.window {
            request = request.window(window);
        }
        if let Some(scale) = self.scale {
            request = request.scale(scale);
        }
        if let Some(ranges) = &self.key_ranges {
            request = request.key_ranges(&integer(ranges));
        }
        if let Some(keep) = &self.keep {
            request = request.keep(&integer(keep));
        }
        if let Some(bias) = &self.bias {
            request = request.bias(&number(bias));
        }
        if let Some(rotation) = &self.rotation {
            request = request.rotate(rotation.clone());
        }
        let Some(cope) = &self.cope else { return request };
        let mut contextual = ContextualPe::new(&number(&cope.embeddings))
            .gates_see_bias(cope.gates_see_bias)
            .bias_scale(cope.bias_scale)
            .gates(match &cope.gates {
                Source::Logits => Gates::Logits,
                Source::Keys(keys) => Gates::Keys(number(keys)),
                Source::Values => Gates::Values,
            });
        if let Some(query) = &cope.query {
            contextual = contextual.query(&number(query));
        }
        if let Some(sum) = &cope.gate_sum {
            contextual = contextual.gate_sum(&number(sum));
        }
        request.cope(contextual)
    }

    pub fn reference(&self) -> Attended {
        attention(&self.over(Both::tensor, Both::tensor)).unwrap()
    }

    pub fn unfused(&self) -> Attended {
        self.run(|attention, out, lse, sum| {
            let unfused = Unfused::new(attention, out).lse(lse);
            sum.map_or(unfused.clone(), |sum| unfused.gate_sum(sum)).prepare(gpu())
        })
    }

    pub fn fused(&self, schedule: Schedule) -> Attended {
        self.run(|attention, out, lse, sum| {
            let fused = Fused::new(attention, out).schedule(schedule).lse(lse);
            sum.map_or(fused.clone(), |sum| fused.gate_sum(sum)).prepare(gpu())
        })
    }

    /// The output alone.
    pub fn fused_output(&self, schedule: Schedule) -> Vec<f64> {
        self.run(|attention, out, _, _| Fused::new(attention, out).schedule(schedule).prepare(gpu())).out
    }

    /// On the device; gate sums only with contextual position encoding.
    fn run(
        &self,
        prepare: impl FnOnce(&Attention<View>, &View, &View, Option<&View>) -> phasor::Result<Prepared>,
    ) -> Attended {
        let request = self.over(Both::view, Both::i32_view);
        let shape = self.q.layout.shape();
        let zeros = |element, channels| gpu().zeros(element, [shape[0], shape[1], shape[2], channels]).unwrap();
        let out = zeros(self.q.element, self.v.layout.shape()[3]);
        let (lse, sum) = (zeros(ElementType::F32, 1), zeros(ElementType::F32, 2));
        let prepared = prepare(&request, &out, &lse, self.cope.as_ref().map(|_| &sum)).unwrap();
        gpu().submit(|pass| prepared.record(pass)).unwrap();
        let read = |view: &View| wide(&gpu().read_blocking(view).unwrap());
        let gate_sum = if self.cope.is_some() { read(&sum) } else { Vec::new() };
        Attended { out: read(&out), lse: read(&lse), gate_sum }
    }

    /// The device gives what the reference gives.
    #[track_caller]
    pub fn assert_agrees(&self, what: &str, tolerance: f64) {
        assert_same(what, &self.unfused(), &self.reference(), tolerance, self.k.layout.shape()[1]);
    }
}

/// What a sum of this many gates may be off by: each gate by a unit in its last place, and all in one direction if keys
/// are alike.
pub fn gate_error(keys: usize) -> f64 {
    (keys + 8) as f64 * 2f64.powi(-24)
}

#[track_caller]
pub fn assert_same(what: &str, got: &Attended, expected: &Attended, tolerance: f64, keys: usize) {
    assert_near(&format!("{what}: out"), &got.out, &expected.out, tolerance);
    assert_near(&format!("{what}: lse"), &got.lse, &expected.lse, tolerance);
    assert_near(&format!("{what}: gate sum"), &sums(got), &sums(expected), gate_error(keys));
}

/// Wholes and fractions together: a sum just below an integer may be rounded to it.
fn sums(attended: &Attended) -> Vec<f64> {
    attended.gate_sum.chunks(2).map(|pair| pair[0] + pair[1]).collect()
}
