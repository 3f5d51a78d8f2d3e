//! A layer of self-attention, over any kind of tensor: its weights, its settings, and whether their shapes go together.

use super::{Attention, ContextualPe, HasLayout, expect};
use crate::{Error, Result};

/// A linear layer: its weight `[1, outputs, 1, inputs]`, a row for each output as checkpoints hold it, and its bias
/// `[1, 1, 1, outputs]`, if it has one.
#[derive(Debug, Clone)]
pub struct Linear<T> {
    /// `[1, outputs, 1, inputs]`.
    pub weight: T,
    /// `[1, 1, 1, outputs]`.
    pub bias: Option<T>,
}

/// The weights of a layer of self-attention.
#[derive(Debug, Clone)]
pub struct SelfAttentionWeights<T> {
    /// `query_proj`: `heads * channels` outputs.
    pub query: Linear<T>,
    /// `key_proj`: `kv heads * channels` outputs.
    pub key: Linear<T>,
    /// `value_proj`: `kv heads * value channels` outputs.
    pub value: Linear<T>,
    /// `output_proj`: `heads * value channels` inputs.
    pub output: Linear<T>,
    /// `cope.position_embeddings`: `[1, channels, 1 or heads, positions]`. Without them there is no contextual position
    /// encoding.
    pub position_embeddings: Option<T>,
}

impl<T> SelfAttentionWeights<T> {
    /// Weights by the names that the article's state dict has for them: `query_proj`, `key_proj`, `value_proj` and
    /// `output_proj` with `.weight` and perhaps `.bias`, and perhaps `cope.position_embeddings`.
    ///
    /// `tensor` finds one, with a matrix `[rows, columns]` as `[1, rows, 1, columns]` and a vector as `[1, 1, 1, n]`.
    ///
    /// ```
    /// use phasor::{Layout, attention::SelfAttentionWeights, reference::Tensor};
    /// # fn read(files: &std::collections::HashMap<String, (Vec<usize>, Vec<f64>)>) -> phasor::Result<()> {
    /// let weights = SelfAttentionWeights::from_state_dict(|name| {
    ///     let (shape, values) = files.get(&format!("layers.0.attention.{name}"))?;
    ///     let columns = *shape.last()?;
    ///     let layout = Layout::contiguous([1, values.len() / columns, 1, columns]).ok()?;
    ///     Tensor::new(values, layout).ok()
    /// })?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Tensor`](crate::ErrorKind::Tensor) that names the first weight which is missing.
    pub fn from_state_dict(mut tensor: impl FnMut(&str) -> Option<T>) -> Result<Self> {
        let mut linear = |layer: &Layer| {
            let weight = layer.weight();
            Ok(Linear {
                weight: tensor(&weight)
                    .ok_or_else(|| Error::tensor(weight, "missing", "in the state dict: [1, outputs, 1, inputs]"))?,
                bias: tensor(&layer.bias()),
            })
        };
        Ok(Self {
            query: linear(&Layer::QUERY)?,
            key: linear(&Layer::KEY)?,
            value: linear(&Layer::VALUE)?,
            output: linear(&Layer::OUTPUT)?,
            position_embeddings: tensor("cope.position_embeddings"),
        })
    }
}

/// What errors and state dicts call a layer, with the dot behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layer(pub &'static str);

impl Layer {
    pub(crate) const QUERY: Self = Self("query_proj.");
    pub(crate) const KEY: Self = Self("key_proj.");
    pub(crate) const VALUE: Self = Self("value_proj.");
    pub(crate) const OUTPUT: Self = Self("output_proj.");

    pub(crate) fn weight(self) -> String {
        format!("{}weight", self.0)
    }

    pub(crate) fn bias(self) -> String {
        format!("{}bias", self.0)
    }
}

/// A layer of self-attention: inputs become queries, keys and values, queries and keys are rotated, queries attend to
/// keys, and what they find becomes outputs.
///
/// `T` is a tensor as in [`Attention`], whose [`rotate`](Attention::rotate) turns queries and keys here, too. On a device
/// [`Module`](super::Module) computes it, which can rotate at other positions as well; in plain f64 loops [`reference::self_attention`](crate::reference::self_attention).
///
/// ```
/// use phasor::attention::{SelfAttention, SelfAttentionWeights};
/// # fn build<T: Clone>(inputs: T, weights: SelfAttentionWeights<T>) {
/// // Nine query heads over three key heads; each token sees itself and what is before it, 4,096 tokens at most.
/// let layer = SelfAttention::new(&inputs, &weights, 9, 3).attend(|attention| attention.causal().window(4096));
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct SelfAttention<T> {
    pub(crate) inputs: T,
    pub(crate) weights: SelfAttentionWeights<T>,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    /// All but queries, keys and values, in whose place are the inputs until there are any.
    settings: Attention<T>,
    pub(crate) contextual_query_is_rotated: bool,
}

impl<T: Clone> SelfAttention<T> {
    /// Inputs `[batch, tokens, any heads, channels]`, whose channels in all heads are those of the weights, and how many
    /// query heads and key heads are made of them. The channels of a head follow from the weights.
    ///
    /// Every token attends to every token, with a scale of `1 / sqrt(channels)`, and with contextual position encoding in
    /// the article's form if there are position embeddings.
    pub fn new(inputs: &T, weights: &SelfAttentionWeights<T>, heads: usize, kv_heads: usize) -> Self {
        let mut settings = Attention::new(inputs, inputs, inputs);
        settings.cope = weights.position_embeddings.as_ref().map(ContextualPe::new);
        Self {
            inputs: inputs.clone(),
            weights: weights.clone(),
            heads,
            kv_heads,
            settings,
            contextual_query_is_rotated: true,
        }
    }

    /// What to attend to and how: masks, bias, scale, and another form of contextual position encoding than the
    /// article's, in the words of [`Attention`]. There are as many keys as there are tokens.
    pub fn attend(mut self, settings: impl FnOnce(Attention<T>) -> Attention<T>) -> Self {
        self.settings = settings(self.settings);
        self
    }

    /// Position embeddings meet queries as they are before the rotation, as in the paper, which has none. In the article
    /// they meet rotated ones.
    pub fn contextual_query_before_rotation(mut self) -> Self {
        self.contextual_query_is_rotated = false;
        self
    }

    /// Whether attention itself turns queries and keys.
    #[cfg(feature = "gpu")]
    pub(crate) fn rotates(&self) -> bool {
        self.settings.rotation.is_some()
    }

    /// Whether position embeddings meet queries as they are before the rotation, and none are given for that.
    pub(crate) fn wants_query_before_rotation(&self) -> bool {
        !self.contextual_query_is_rotated && self.settings.cope.as_ref().is_some_and(|cope| cope.query.is_none())
    }

    /// The attention among these. `contextual_query` is given if it is not `q`.
    pub(crate) fn attention(&self, q: &T, k: &T, v: &T, contextual_query: Option<&T>) -> Attention<T> {
        let mut attention = Attention { q: q.clone(), k: k.clone(), v: v.clone(), ..self.settings.clone() };
        if let (Some(cope), Some(query)) = (&mut attention.cope, contextual_query) {
            cope.query.get_or_insert_with(|| query.clone());
        }
        attention
    }
}

/// The shapes of what lies between a layer's inputs and its outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SelfAttentionShape {
    pub q: [usize; 4],
    pub k: [usize; 4],
    pub v: [usize; 4],
    /// What queries find.
    pub attended: [usize; 4],
    /// Whether queries are needed as they are before the rotation, too.
    pub contextual_query: bool,
}

impl<T: HasLayout + Clone> SelfAttention<T> {
    /// Checks that shapes go together.
    pub(crate) fn shape(&self) -> Result<SelfAttentionShape> {
        let [batch, tokens, input_heads, input_channels] = self.inputs.layout().shape();
        let (heads, kv_heads) = (self.heads, self.kv_heads);
        if heads == 0 || kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            let may_be = "numbers above 0, with kv_heads a divisor of heads";
            return Err(Error::setting("kv_heads", format!("{kv_heads} of {heads} heads"), may_be));
        }
        let inputs = input_heads.saturating_mul(input_channels);
        let weights = &self.weights;
        let (channels, value_channels) = (weights.query.outputs() / heads, weights.value.outputs() / kv_heads);
        weights.query.check(Layer::QUERY, heads * channels, inputs)?;
        weights.key.check(Layer::KEY, kv_heads * channels, inputs)?;
        weights.value.check(Layer::VALUE, kv_heads * value_channels, inputs)?;
        weights.output.check(Layer::OUTPUT, weights.output.outputs(), heads.saturating_mul(value_channels))?;
        Ok(SelfAttentionShape {
            q: [batch, tokens, heads, channels],
            k: [batch, tokens, kv_heads, channels],
            v: [batch, tokens, kv_heads, value_channels],
            attended: [batch, tokens, heads, value_channels],
            contextual_query: self.wants_query_before_rotation(),
        })
    }
}

impl<T: HasLayout> Linear<T> {
    fn outputs(&self) -> usize {
        let [_, outputs, ..] = self.weight.layout().shape();
        outputs
    }

    /// Checks that weight and bias have so many outputs and inputs.
    fn check(&self, layer: Layer, outputs: usize, inputs: usize) -> Result<()> {
        expect(&layer.weight(), &self.weight, [1, outputs, 1, inputs])?;
        self.bias.as_ref().map_or(Ok(()), |bias| expect(&layer.bias(), bias, [1, 1, 1, outputs]))
    }
}
