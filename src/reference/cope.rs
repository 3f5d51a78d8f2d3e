//! Twin of `shaders/cope_positions.wgsl`, `cope_logits.wgsl` and `cope_interpolate.wgsl`.

use super::Tensor;
use super::tensor::dot;
use crate::Result;
use crate::attention::{MASKED, check_position_embeddings, expect};

/// How much a key counts: the sigmoid of its logit, and 0 for one at or below [`MASKED`].
///
/// Split by sign, so that nothing overflows.
#[must_use]
pub fn cope_gate(logit: f64) -> f64 {
    if logit <= f64::from(MASKED) {
        return 0.0;
    }
    let e = (-logit.abs()).exp();
    if logit >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) }
}

/// Where each key stands as its query counts: the sum of the gates from it rightward, itself and those `to_the_right` of
/// all of them included, but `positions - 1` at most.
///
/// ```
/// use phasor::reference::cope_positions;
/// assert_eq!(cope_positions(&[1.0, 0.5, 1.0], 0.0, 3), [2.0, 1.5, 1.0]);
/// ```
#[must_use]
pub fn cope_positions(gates: &[f64], to_the_right: f64, positions: usize) -> Vec<f64> {
    let last = positions.saturating_sub(1) as f64;
    let mut sum = to_the_right;
    let mut from_the_right: Vec<_> = gates
        .iter()
        .rev()
        .map(|gate| {
            sum += gate;
            sum.min(last)
        })
        .collect();
    from_the_right.reverse();
    from_the_right
}

/// What each query makes of each position: `q · E`, `[batch, tokens, heads, positions]`.
///
/// Queries are `[batch, tokens, heads, channels]`, position embeddings `[1, channels, 1 or heads, positions]`.
///
/// # Errors
/// [`ErrorKind::Tensor`](crate::ErrorKind::Tensor) if the two do not go together.
pub fn cope_logits(query: &Tensor<'_>, position_embeddings: &Tensor<'_>) -> Result<Vec<f64>> {
    let [batch, tokens, heads, channels] = query.layout().shape();
    let positions = check_position_embeddings(position_embeddings, heads, channels)?;
    let mut z = Vec::with_capacity(batch * tokens * heads * positions);
    for b in 0..batch {
        for t in 0..tokens {
            for h in 0..heads {
                for p in 0..positions {
                    let column = (0..channels).map(|c| position_embeddings.get_broadcast([0, c, h, p]));
                    z.push(dot(query.row(b, t, h), column));
                }
            }
        }
    }
    Ok(z)
}

/// A query's `q · E` between whole positions: `(1 - w) * z[floor p] + w * z[ceil p]`, with `w` the fraction of `p`.
///
/// 0 if `z` is empty; positions past the last are the last.
///
/// ```
/// assert_eq!(phasor::reference::cope_interpolate(&[0.0, 8.0, 4.0], 1.25), 7.0);
/// ```
#[must_use]
pub fn cope_interpolate(z: &[f64], position: f64) -> f64 {
    let last = z.len().saturating_sub(1);
    let at = |i: usize| z.get(i.min(last)).copied().unwrap_or_default();
    let w = position - position.floor();
    let floor = position as usize;
    (1.0 - w) * at(floor) + w * at(floor + 1)
}

/// The contextual bias, `[batch, tokens, heads, keys]`: gates from the logits, positions from the gates, `q · E`
/// interpolated at the positions.
///
/// Queries are `[batch, tokens, heads, channels]`, logits `[batch, tokens, heads, keys]`, masked ones at or below
/// [`MASKED`], position embeddings `[1, channels, 1 or heads, positions]`.
///
/// # Errors
/// [`ErrorKind::Tensor`](crate::ErrorKind::Tensor) if shapes do not go together.
pub fn cope(query: &Tensor<'_>, logits: &Tensor<'_>, position_embeddings: &Tensor<'_>) -> Result<Vec<f64>> {
    let [batch, tokens, heads, channels] = query.layout().shape();
    let positions = check_position_embeddings(position_embeddings, heads, channels)?;
    let keys = logits.layout().shape()[3];
    expect("logits", logits, [batch, tokens, heads, keys])?;
    let z = cope_logits(query, position_embeddings)?;
    let mut bias = Vec::with_capacity(batch * tokens * heads * keys);
    let mut rows = z.chunks(positions);
    for b in 0..batch {
        for t in 0..tokens {
            for h in 0..heads {
                let gates: Vec<_> = logits.row(b, t, h).map(cope_gate).collect();
                let z = rows.next().unwrap_or_default();
                bias.extend(cope_positions(&gates, 0.0, positions).into_iter().map(|p| cope_interpolate(z, p)));
            }
        }
    }
    Ok(bias)
}
