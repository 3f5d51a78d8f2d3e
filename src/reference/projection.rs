//! A linear layer, as attention's projections are.

use super::Tensor;
use super::tensor::dot;
use crate::Result;
use crate::attention::expect;

/// `y = x Wᵀ + bias` for each token: `[batch, tokens, outputs]` without gaps.
///
/// The inputs of a token are its heads' channels one after the other: `x` is `[batch, tokens, heads, channels]`. The
/// weight is `[1, outputs, 1, heads * channels]`, a row for each output as checkpoints hold it, the bias
/// `[1, 1, 1, outputs]`.
///
/// ```
/// use phasor::{Layout, reference::{Tensor, projection}};
/// let (x, weight, bias) = ([1.0, 2.0], [3.0, 4.0, 5.0, 6.0], [0.5, 0.0]);
/// let x = Tensor::new(&x, Layout::contiguous([1, 1, 1, 2])?)?;
/// let weight = Tensor::new(&weight, Layout::contiguous([1, 2, 1, 2])?)?;
/// let bias = Tensor::new(&bias, Layout::contiguous([1, 1, 1, 2])?)?;
/// assert_eq!(projection(&x, &weight, Some(&bias))?, [11.5, 17.0]);
/// # Ok::<(), phasor::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Tensor`](crate::ErrorKind::Tensor) if shapes do not go together.
pub fn projection(x: &Tensor<'_>, weight: &Tensor<'_>, bias: Option<&Tensor<'_>>) -> Result<Vec<f64>> {
    let [batch, tokens, heads, channels] = x.layout().shape();
    let outputs = weight.layout().shape()[1];
    expect("weight", weight, [1, outputs, 1, heads.saturating_mul(channels)])?;
    if let Some(bias) = bias {
        expect("bias", bias, [1, 1, 1, outputs])?;
    }
    let mut y = Vec::with_capacity(batch * tokens * outputs);
    for b in 0..batch {
        for t in 0..tokens {
            let inputs = (0..heads).flat_map(|h| x.row(b, t, h));
            for o in 0..outputs {
                let bias = bias.map_or(0.0, |bias| bias.get([0, 0, 0, o]));
                y.push(dot(inputs.clone(), weight.row(0, o, 0)) + bias);
            }
        }
    }
    Ok(y)
}
