//! Twin of the attention kernels, fused and not.

use super::tensor::dot;
use super::{Tensor, cope_gate, cope_interpolate, cope_logits, cope_positions, rope_rotate};
use crate::attention::{Attention, AttentionShape, ContextualPe, Gates, MASKED, Rotation};
use crate::{Direction, Layout, Result};
use std::ops::Range;

/// What attention gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Attended {
    /// `[batch, tokens, heads, value channels]` without gaps; 0 for a query that sees no key.
    pub out: Vec<f64>,
    /// The natural logarithm of the sum of the exponentials of a query's logits, `[batch, tokens, heads]`; [`MASKED`]
    /// for a query that sees no key.
    pub lse: Vec<f64>,
    /// The sum of a query's gates and of those to the right of them, as its whole part and its fraction:
    /// `[batch, tokens, heads, 2]`. Empty without contextual position encoding.
    pub gate_sum: Vec<f64>,
}

/// Attention in plain loops, over all pairs of a query and a key.
///
/// # Errors
/// [`ErrorKind::Tensor`](crate::ErrorKind::Tensor) if shapes do not go together.
pub fn attention(request: &Attention<Tensor<'_>>) -> Result<Attended> {
    let shape = request.shape()?;
    match &request.rotation {
        Some(rotation) => rotated(request, shape, rotation),
        None => as_given(request, shape),
    }
}

/// Rotates queries, keys and keys for gates, and then attends.
fn rotated(request: &Attention<Tensor<'_>>, shape: AttentionShape, rotation: &Rotation) -> Result<Attended> {
    let first_key = i64::from(rotation.first_key);
    let of_query = |b, t| {
        let place = request.mask.first_place(shape.tokens, shape.keys, key_range(request, shape, b).end);
        (place as i64 + t as i64 + first_key) as i32
    };
    let of_key = |_, s| (s as i64 + first_key) as i32;
    let q = turned(&request.q, rotation, of_query)?;
    let k = turned(&request.k, rotation, of_key)?;
    let gate_keys = match request.cope.as_ref().map(|cope| &cope.gates) {
        Some(Gates::Keys(keys)) => Some(turned(keys, rotation, of_key)?),
        _ => None,
    };
    let mut turned = Attention {
        q: Tensor::new(&q, Layout::contiguous(request.q.layout().shape())?)?,
        k: Tensor::new(&k, Layout::contiguous(request.k.layout().shape())?)?,
        rotation: None,
        ..request.clone()
    };
    if let (Some(cope), Some(keys)) = (&mut turned.cope, &gate_keys) {
        cope.gates = Gates::Keys(Tensor::new(keys, turned.k.layout())?);
    }
    as_given(&turned, shape)
}

/// A tensor's numbers in the order of its axes, turned to where its tokens stand.
fn turned(tensor: &Tensor<'_>, rotation: &Rotation, position: impl Fn(usize, usize) -> i32) -> Result<Vec<f64>> {
    let layout = Layout::contiguous(tensor.layout().shape())?;
    let mut x = tensor.in_order();
    let Rotation { frequencies, pairing, first_channel, .. } = rotation;
    rope_rotate(&mut x, layout, frequencies, *pairing, *first_channel, Direction::Forward, position)?;
    Ok(x)
}

/// The keys that a row of the batch has.
fn key_range(request: &Attention<Tensor<'_>>, shape: AttentionShape, b: usize) -> Range<usize> {
    match &request.key_ranges {
        None => 0..shape.keys,
        Some(ranges) if ranges.layout().shape()[3] == 1 => 0..ranges.get([b, 0, 0, 0]) as usize,
        Some(ranges) => ranges.get([b, 0, 0, 0]) as usize..ranges.get([b, 0, 0, 1]) as usize,
    }
}

/// Attention without a rotation.
fn as_given(request: &Attention<Tensor<'_>>, shape: AttentionShape) -> Result<Attended> {
    let z = match &request.cope {
        Some(cope) => cope_logits(cope.query.as_ref().unwrap_or(&request.q), &cope.position_embeddings)?,
        None => Vec::new(),
    };
    let mut z_rows = z.chunks(shape.positions.max(1));
    let mut attended = Attended { out: Vec::new(), lse: Vec::new(), gate_sum: Vec::new() };
    for b in 0..shape.batch {
        for t in 0..shape.tokens {
            for h in 0..shape.heads {
                let row = Row { request, shape, b, t, h };
                let mut logits = row.logits();
                if let Some(cope) = &request.cope {
                    let sum = row.add_contextual_bias(cope, z_rows.next().unwrap_or_default(), &mut logits);
                    attended.gate_sum.extend([sum.floor(), sum - sum.floor()]);
                }
                let lse = softmax(&mut logits);
                attended.lse.push(lse);
                attended.out.extend(row.weighted_values(&logits));
            }
        }
    }
    Ok(attended)
}

/// One query of one head.
struct Row<'a> {
    request: &'a Attention<Tensor<'a>>,
    shape: AttentionShape,
    b: usize,
    t: usize,
    h: usize,
}

impl Row<'_> {
    fn kv_head(&self) -> usize {
        self.h / self.shape.group()
    }

    /// `scale * q·key`, and [`MASKED`] for keys that the query does not see.
    fn products(&self, keys: &Tensor<'_>) -> Vec<f64> {
        let scale = self.request.scale_or_default();
        let visible = self.visible();
        let product =
            |s: usize| dot(self.request.q.row(self.b, self.t, self.h), keys.row(self.b, s, self.kv_head())) * scale;
        (0..self.shape.keys)
            .map(|s| if visible.contains(&s) && self.keeps(s) { product(s) } else { MASKED.into() })
            .collect()
    }

    fn keeps(&self, s: usize) -> bool {
        self.request.keep.is_none_or(|keep| keep.get_broadcast([self.b, self.t, self.h, s]) != 0.0)
    }

    /// The keys that are seen by where they stand.
    fn visible(&self) -> Range<usize> {
        let row = key_range(self.request, self.shape, self.b);
        self.request.mask.visible(self.t, self.shape.tokens, self.shape.keys, row)
    }

    fn biased(&self, mut logits: Vec<f64>) -> Vec<f64> {
        if let Some(bias) = &self.request.bias {
            for (s, logit) in logits.iter_mut().enumerate().filter(|(_, logit)| **logit > MASKED.into()) {
                *logit += bias.get_broadcast([self.b, self.t, self.h, s]);
            }
        }
        logits
    }

    fn logits(&self) -> Vec<f64> {
        self.biased(self.products(&self.request.k))
    }

    /// Adds the contextual bias; the sum of all gates.
    fn add_contextual_bias(&self, cope: &ContextualPe<Tensor<'_>>, z: &[f64], logits: &mut [f64]) -> f64 {
        let products = match &cope.gates {
            Gates::Logits => self.products(&self.request.k),
            Gates::Keys(keys) => self.products(keys),
            Gates::Values => self.products(&self.request.v),
        };
        let gate_logits = if cope.gates_see_bias { self.biased(products) } else { products };
        // Whatever gates are made from, a key that is not seen is not counted.
        let gates: Vec<_> = gate_logits
            .into_iter()
            .zip(&*logits)
            .map(|(gate, &logit)| if logit > MASKED.into() { cope_gate(gate) } else { 0.0 })
            .collect();
        let to_the_right = cope.gate_sum.map_or(0.0, |sum| sum.row(self.b, self.t, self.h).sum());
        let positions = cope_positions(&gates, to_the_right, self.shape.positions);
        for (logit, position) in logits.iter_mut().zip(positions).filter(|(logit, _)| **logit > MASKED.into()) {
            *logit += cope.bias_scale * cope_interpolate(z, position);
        }
        to_the_right + gates.iter().sum::<f64>()
    }

    fn weighted_values(&self, weights: &[f64]) -> impl Iterator<Item = f64> {
        (0..self.shape.value_channels).map(move |c| {
            let values = (0..self.shape.keys).map(|s| self.request.v.get([self.b, s, self.kv_head(), c]));
            // A value that nobody weighs may be anything, even no number.
            values.zip(weights).filter(|&(_, &weight)| weight != 0.0).map(|(value, weight)| value * weight).sum()
        })
    }
}

/// Logits to weights, in place; their log-sum-exp.
fn softmax(logits: &mut [f64]) -> f64 {
    let largest = logits.iter().copied().fold(f64::from(MASKED), f64::max);
    if largest <= MASKED.into() {
        logits.fill(0.0);
        return MASKED.into();
    }
    for logit in logits.iter_mut() {
        *logit = if *logit <= MASKED.into() { 0.0 } else { (*logit - largest).exp() };
    }
    let sum: f64 = logits.iter().sum();
    logits.iter_mut().for_each(|weight| *weight /= sum);
    largest + sum.ln()
}
