//! Attention over parts of the keys, put together.

use super::Attended;
use crate::attention::MASKED;
use crate::{Error, Result};

/// Merges what attention gave over parts of the keys into what it gives over all of them:
/// `lse = log sum of exp(lse_i)` and `out = sum of exp(lse_i - lse) * out_i`. Exact, in any order of the parts.
///
/// The gate sums are those of the first part, which must be the leftmost: it was made with the others' to its right.
///
/// # Errors
/// [`ErrorKind::Tensor`](crate::ErrorKind::Tensor) if the parts are of different shapes, or there is none.
pub fn attention_merge(parts: &[Attended]) -> Result<Attended> {
    let Some((first, rest)) = parts.split_first() else {
        return Err(Error::tensor("parts", "none", "at least one"));
    };
    let sizes = |part: &Attended| (part.out.len(), part.lse.len());
    if let Some(other) = rest.iter().find(|part| sizes(part) != sizes(first)) {
        return Err(Error::tensor(
            "parts",
            format!("{:?} outputs and log-sum-exps beside {:?}", sizes(other), sizes(first)),
            "of one shape",
        ));
    }
    let channels = first.out.len().checked_div(first.lse.len()).unwrap_or_default();
    let mut merged = Attended { out: vec![0.0; first.out.len()], ..first.clone() };
    for (row, lse) in merged.lse.iter_mut().enumerate() {
        let largest = parts.iter().map(|part| part.lse[row]).fold(f64::from(MASKED), f64::max);
        if largest <= MASKED.into() {
            continue;
        }
        let sum: f64 = parts.iter().map(|part| (part.lse[row] - largest).exp()).sum();
        *lse = largest + sum.ln();
        for part in parts {
            let weight = (part.lse[row] - *lse).exp();
            let channels = row * channels..(row + 1) * channels;
            for (out, value) in merged.out[channels.clone()].iter_mut().zip(&part.out[channels]) {
                *out += weight * value;
            }
        }
    }
    Ok(merged)
}
