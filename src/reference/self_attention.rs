//! Twin of the attention module: a layer of self-attention.

use super::{Tensor, attention, projection};
use crate::attention::SelfAttention;
use crate::{Layout, Result};

/// The layer's outputs, `[batch, tokens, outputs]` without gaps. `rotate` turns queries and then keys in place, whose
/// layouts have no gaps: [`rope_rotate`](super::rope_rotate), or nothing.
///
/// ```
/// use phasor::attention::{Linear, SelfAttention, SelfAttentionWeights};
/// use phasor::{Layout, reference::{Tensor, self_attention}};
/// let identity = Tensor::new(&[1.0, 0.0, 0.0, 1.0], Layout::contiguous([1, 2, 1, 2])?)?;
/// let linear = || Linear { weight: identity, bias: None };
/// let weights = SelfAttentionWeights {
///     query: linear(),
///     key: linear(),
///     value: linear(),
///     output: linear(),
///     position_embeddings: None,
/// };
/// let inputs = Tensor::new(&[3.0, 4.0], Layout::contiguous([1, 1, 1, 2])?)?;
/// let layer = SelfAttention::new(&inputs, &weights, 1, 1);
/// assert_eq!(self_attention(&layer, |_, _| Ok(()))?, [3.0, 4.0], "a token alone sees itself");
/// # Ok::<(), phasor::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Tensor`](crate::ErrorKind::Tensor) if shapes do not go together,
/// [`ErrorKind::Setting`](crate::ErrorKind::Setting) for numbers of heads that do not; what `rotate` gives.
pub fn self_attention(
    layer: &SelfAttention<Tensor<'_>>,
    mut rotate: impl FnMut(&mut [f64], Layout) -> Result<()>,
) -> Result<Vec<f64>> {
    let shape = layer.shape()?;
    let weights = &layer.weights;
    let [q_layout, k_layout, v_layout] = [shape.q, shape.k, shape.v].map(Layout::contiguous);
    let (q_layout, k_layout, v_layout) = (q_layout?, k_layout?, v_layout?);
    let mut q = projection(&layer.inputs, &weights.query.weight, weights.query.bias.as_ref())?;
    let mut k = projection(&layer.inputs, &weights.key.weight, weights.key.bias.as_ref())?;
    let v = projection(&layer.inputs, &weights.value.weight, weights.value.bias.as_ref())?;
    let contextual_query = q.clone();
    rotate(&mut q, q_layout)?;
    rotate(&mut k, k_layout)?;
    let contextual_query = Tensor::new(&contextual_query, q_layout)?;
    let attended = attention(&layer.attention(
        &Tensor::new(&q, q_layout)?,
        &Tensor::new(&k, k_layout)?,
        &Tensor::new(&v, v_layout)?,
        shape.contextual_query.then_some(&contextual_query),
    ))?;
    let attended = Tensor::new(&attended.out, Layout::contiguous(shape.attended)?)?;
    projection(&attended, &weights.output.weight, weights.output.bias.as_ref())
}
