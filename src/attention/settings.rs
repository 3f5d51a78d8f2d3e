//! What attention is asked for, over any kind of tensor, and whether its shapes go together.

use super::{Mask, Rotation, Standing};
use crate::{Error, Layout, Result};

/// Attention: `out[t] = sum over s of softmax(logits[t])[s] * v[s]`, with
/// `logits[t, s] = scale * q[t]·k[s] + bias[t, s] + contextual[t, s]` over the keys that query `t` sees.
///
/// `T` is a tensor: [`View`](crate::View) on a device, [`Tensor`](crate::reference::Tensor) in the f64 reference. Queries
/// are `[batch, tokens, heads, channels]`, keys and values `[batch, keys, kv heads, channels]`, where each key head serves
/// `heads / kv heads` query heads in a row.
///
/// ```
/// use phasor::attention::Attention;
/// use phasor::{Layout, reference::{Tensor, attention}};
/// let one = Layout::contiguous([1, 2, 1, 2])?;
/// let x = [1.0, 0.0, 0.0, 1.0];
/// let x = Tensor::new(&x, one)?;
/// let attended = attention(&Attention::new(&x, &x, &x).causal())?;
/// assert_eq!(attended.out[..2], [1.0, 0.0], "the first token sees itself alone");
/// # Ok::<(), phasor::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Attention<T> {
    pub(crate) q: T,
    pub(crate) k: T,
    pub(crate) v: T,
    pub(crate) scale: Option<f64>,
    pub(crate) mask: Mask,
    pub(crate) key_ranges: Option<T>,
    pub(crate) keep: Option<T>,
    pub(crate) bias: Option<T>,
    pub(crate) rotation: Option<Rotation>,
    pub(crate) cope: Option<ContextualPe<T>>,
}

/// Contextual position encoding (Golovneva et al., 2024), the CoPE that counts: a key's position is the sum of the
/// gates from it up to the query, and adds `bias_scale * q·E[position]` to its logit.
///
/// Not the clipped RoPE of 2026 that has taken the same short name.
///
/// `p[t, s] = min(sum over u >= s of g[t, u], positions - 1)` with `g = sigmoid(gate logit)`, and 0 for keys that the
/// query does not see; between whole positions `q·E` is interpolated.
#[derive(Debug, Clone)]
#[must_use]
pub struct ContextualPe<T> {
    pub(crate) position_embeddings: T,
    pub(crate) query: Option<T>,
    pub(crate) gates: Gates<T>,
    pub(crate) gates_see_bias: bool,
    pub(crate) gate_sum: Option<T>,
    pub(crate) bias_scale: f64,
}

/// What gates are the sigmoid of.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Gates<T> {
    /// The attention logits `scale * q·k`, as in the paper.
    #[default]
    Logits,
    /// `scale * q·k'` with keys of their own, shaped as `k` is, and rotated as these are ("sep-keys").
    Keys(T),
    /// `scale * q·v`; values have as many channels as queries, and are not rotated ("val-gates").
    Values,
}

impl<T: Clone> Attention<T> {
    /// Every query attends to every key, with a scale of `1 / sqrt(channels)`.
    pub fn new(q: &T, k: &T, v: &T) -> Self {
        Self {
            q: q.clone(),
            k: k.clone(),
            v: v.clone(),
            scale: None,
            mask: Mask::default(),
            key_ranges: None,
            keep: None,
            bias: None,
            rotation: None,
            cope: None,
        }
    }

    /// What `q·k` is multiplied with, instead of `1 / sqrt(channels)`: a finite number.
    pub fn scale(mut self, scale: f64) -> Self {
        self.scale = Some(scale);
        self
    }

    /// Hides keys to the right of a query's place.
    pub fn causal(mut self) -> Self {
        self.mask.causal = true;
        self
    }

    /// A query sees no more than this many keys up to its own place, that one included.
    pub fn window(mut self, keys: usize) -> Self {
        self.mask.window = Some(keys);
        self
    }

    /// Where the queries stand among the keys, instead of the last query at the last key.
    pub fn standing(mut self, standing: Standing) -> Self {
        self.mask.standing = standing;
        self
    }

    /// The keys that each row of the batch has, whole numbers (i32 on a device): `[batch, 1, 1, 1]` holds lengths,
    /// `[batch, 1, 1, 2]` the first key and one past the last. So rows may be padded on the right and on the left.
    pub fn key_ranges(mut self, ranges: &T) -> Self {
        self.key_ranges = Some(ranges.clone());
        self
    }

    /// A boolean mask (i32 on a device): a key is seen where this is not 0. `[batch, tokens, heads, keys]`, with an
    /// extent of 1 for what is the same along batch, tokens or heads.
    pub fn keep(mut self, keep: &T) -> Self {
        self.keep = Some(keep.clone());
        self
    }

    /// Numbers to add to the scaled logits, in the same shapes as [`Attention::keep`]. A sum at or below
    /// [`MASKED`](super::MASKED) hides its key.
    pub fn bias(mut self, bias: &T) -> Self {
        self.bias = Some(bias.clone());
        self
    }

    /// Rotary encoding: queries and keys turn as they are loaded, values never do. In `q` and `k` they are not rotated.
    ///
    /// Queries stand where [`Attention::standing`] puts them: over a cache of which each row has a range of its own, say
    /// [`Standing::RowLast`]. Keys turn each time that they are loaded: a cache that is read for many tokens is cheaper to
    /// read if it holds rotated keys (`Rotate::into_cache`).
    ///
    /// A contextual encoding beside it meets the queries and keys as they are here, rotated, so that the answer is the
    /// one for tensors that were rotated before: gates are made from rotated queries, and from logits or from rotated
    /// [`Gates::Keys`], whose products depend on differences of positions alone. What rotated queries meet unrotated,
    /// [`Gates::Values`] and position embeddings, makes the encoding a matter of where a query stands;
    /// [`ContextualPe::query`] gives the position embeddings the queries of before the rotation.
    pub fn rotate(mut self, rotation: Rotation) -> Self {
        self.rotation = Some(rotation);
        self
    }

    /// Contextual position encoding.
    pub fn cope(mut self, cope: ContextualPe<T>) -> Self {
        self.cope = Some(cope);
        self
    }
}

impl<T: Clone> ContextualPe<T> {
    /// The article's form: gates from the logits, masked and biased; bias scale 1.
    ///
    /// Position embeddings are `[1, channels, 1, positions]` for all heads, or `[1, channels, heads, positions]` for each
    /// its own; a `[channels, positions]` matrix as checkpoints hold it is the former without gaps.
    pub fn new(position_embeddings: &T) -> Self {
        Self {
            position_embeddings: position_embeddings.clone(),
            query: None,
            gates: Gates::Logits,
            gates_see_bias: true,
            gate_sum: None,
            bias_scale: 1.0,
        }
    }

    /// The queries that meet the position embeddings, shaped as `q` is and never rotated: those before a rotation. If this
    /// is not said, queries as they meet the keys: `q` itself, rotated where [`Attention::rotate`] says so.
    pub fn query(mut self, query: &T) -> Self {
        self.query = Some(query.clone());
        self
    }

    /// What gates are made from.
    pub fn gates(mut self, gates: Gates<T>) -> Self {
        self.gates = gates;
        self
    }

    /// Whether [`Attention::bias`] is part of what gates are made from. It is in the article; a bias that is no mask
    /// (ALiBi, say) then changes what is counted.
    pub fn gates_see_bias(mut self, see: bool) -> Self {
        self.gates_see_bias = see;
        self
    }

    /// The sum of the gates of keys to the right of these, from another part of a sequence: `[batch, tokens, heads, 2]`,
    /// its whole part and its fraction.
    pub fn gate_sum(mut self, sum: &T) -> Self {
        self.gate_sum = Some(sum.clone());
        self
    }

    /// What the contextual bias is multiplied with: 1 in the article and the paper, `1 / sqrt(channels)` in the paper's
    /// published code.
    pub fn bias_scale(mut self, scale: f64) -> Self {
        self.bias_scale = scale;
        self
    }
}

/// A tensor whose layout is known. Not nameable outside of this crate: `T` is one of its tensors.
pub trait HasLayout {
    /// Shape, strides and offset.
    fn layout(&self) -> Layout;
}

/// The extents of an attention whose shapes go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttentionShape {
    pub batch: usize,
    pub tokens: usize,
    pub keys: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub channels: usize,
    pub value_channels: usize,
    /// Of the position embeddings; 0 without them.
    pub positions: usize,
}

impl AttentionShape {
    /// Query heads to a key head.
    pub(crate) fn group(&self) -> usize {
        (self.heads / self.kv_heads.max(1)).max(1)
    }
}

impl<T: HasLayout> Attention<T> {
    /// What `q·k` is multiplied with.
    pub(crate) fn scale_or_default(&self) -> f64 {
        self.scale.unwrap_or_else(|| 1.0 / (self.q.layout().shape()[3].max(1) as f64).sqrt())
    }

    /// Checks that shapes go together.
    pub(crate) fn shape(&self) -> Result<AttentionShape> {
        let scales = [("scale", self.scale), ("cope.bias_scale", self.cope.as_ref().map(|cope| cope.bias_scale))];
        for (name, scale) in scales {
            // Kernels count in doublings.
            let fits = |scale: f64| ((scale * std::f64::consts::LOG2_E) as f32).is_finite();
            if let Some(wrong) = scale.filter(|&scale| !fits(scale)) {
                return Err(Error::setting(name, crate::shown::with_exponent(wrong), "a number up to 2e38"));
            }
        }
        let [batch, tokens, heads, channels] = self.q.layout().shape();
        let [_, keys, kv_heads, _] = self.k.layout().shape();
        let value_channels = self.v.layout().shape()[3];
        let divides = kv_heads != 0 && heads.is_multiple_of(kv_heads) || heads == 0;
        if self.k.layout().shape() != [batch, keys, kv_heads, channels] || !divides {
            return refuse("k", &self.k, format!("[{batch}, any number, a divisor of {heads}, {channels}], as q is"));
        }
        expect("v", &self.v, [batch, keys, kv_heads, value_channels])?;
        let broadcast = [batch, tokens, heads];
        for (name, tensor) in [("keep", &self.keep), ("bias", &self.bias)] {
            let Some(tensor) = tensor else { continue };
            let [b, t, h, s] = tensor.layout().shape();
            if s != keys || [b, t, h].iter().zip(broadcast).any(|(&n, all)| n != all && n != 1) {
                let may_be = format!("[{batch}, {tokens}, {heads}, {keys}], or with 1 in place of the first three");
                return refuse(name, tensor, may_be);
            }
        }
        if let Some(ranges) = &self.key_ranges {
            let shape = ranges.layout().shape();
            if ![[batch, 1, 1, 1], [batch, 1, 1, 2]].contains(&shape) {
                return refuse("key_ranges", ranges, format!("[{batch}, 1, 1, 1] or [{batch}, 1, 1, 2]"));
            }
        }
        let mut shape = AttentionShape { batch, tokens, keys, heads, kv_heads, channels, value_channels, positions: 0 };
        if let Some(rotation) = &self.rotation {
            rotation.check(&shape, self.mask.standing, self.key_ranges.is_some())?;
        }
        if let Some(cope) = &self.cope {
            shape.positions = cope.check(&shape)?;
        }
        Ok(shape)
    }
}

impl<T: HasLayout> ContextualPe<T> {
    /// Checks that shapes go with an attention's; the number of positions.
    fn check(&self, shape: &AttentionShape) -> Result<usize> {
        let AttentionShape { batch, tokens, keys, heads, kv_heads, channels, value_channels, .. } = *shape;
        let positions = check_position_embeddings(&self.position_embeddings, heads, channels)?;
        if let Some(query) = &self.query {
            expect("cope.query", query, [batch, tokens, heads, channels])?;
        }
        if let Some(sum) = &self.gate_sum {
            expect("cope.gate_sum", sum, [batch, tokens, heads, 2])?;
        }
        match &self.gates {
            Gates::Keys(gate_keys) => expect("cope.gates", gate_keys, [batch, keys, kv_heads, channels])?,
            Gates::Values if value_channels != channels => {
                return Err(Error::tensor(
                    "v",
                    format!("one of {value_channels} channels"),
                    format!("one of {channels}, as q is, since gates are made from q·v"),
                ));
            }
            Gates::Values | Gates::Logits => {}
        }
        Ok(positions)
    }
}

/// Checks position embeddings against the queries that meet them; the number of positions.
pub(crate) fn check_position_embeddings(embeddings: &impl HasLayout, heads: usize, channels: usize) -> Result<usize> {
    let [one, c, h, positions] = embeddings.layout().shape();
    if one != 1 || c != channels || (h != 1 && h != heads) || positions == 0 {
        let may_be = format!("[1, {channels}, 1 or {heads}, at least 1]");
        return refuse("position_embeddings", embeddings, may_be);
    }
    Ok(positions)
}

/// Refuses a tensor of another shape.
pub(crate) fn expect(argument: &str, tensor: &impl HasLayout, shape: [usize; 4]) -> Result<()> {
    if tensor.layout().shape() == shape { Ok(()) } else { refuse(argument, tensor, format!("{shape:?}")) }
}

fn refuse<R>(argument: &str, tensor: &impl HasLayout, may_be: String) -> Result<R> {
    Err(Error::tensor(argument, format!("{:?}", tensor.layout().shape()), may_be))
}
