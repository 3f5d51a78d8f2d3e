//! The answer: a rope for every layer.

use super::Source;
use crate::frequencies::{Axes, Frequencies, Law, QueryScale};
use crate::{Error, Pairing, Result, Rotary};

/// All that a model file says about the rope of one layer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LayerRope {
    /// The file's word for the kind of layer (`full_attention`), where it tells kinds apart.
    pub layer_type: Option<String>,
    /// Whether queries and keys of this layer are rotated at all. If not (NoPE), the rest says what the rope would be.
    pub rotates: bool,
    /// The scaling law.
    pub law: Law,
    /// Which channels make a pair, in this kind of file.
    pub pairing: Pairing,
    /// The channels of the tensor that is rotated: a whole head, or with multi-head latent attention the part of it
    /// that models keep apart for rotation.
    pub head_dim: u32,
    /// Which of them turn.
    pub rotary: Rotary,
    /// Which position each pair turns by.
    pub axes: Axes,
    /// What the softmax scale `1 / sqrt(d)` is multiplied by, 1 if nothing else is said: DeepSeek's second correction.
    pub softmax_scale_multiplier: f64,
    /// The factor on queries that grows with the position, where the model has one.
    pub query_scale: Option<QueryScale>,
    /// Where each number came from.
    pub sources: Vec<Source>,
}

impl LayerRope {
    /// The law's name, in the words of Hugging Face's `rope_type`.
    #[must_use]
    pub fn rope_type(&self) -> &'static str {
        self.law.name()
    }

    /// The frequencies and the attention factor for a sequence of `seq_len` tokens in all, cached ones included; 0 for
    /// any sequence within the context that the model was first trained on.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) if the law cannot serve this length.
    pub fn frequencies(&self, seq_len: u32) -> Result<Frequencies> {
        self.law.frequencies_at(self.rotary.dim(), seq_len)
    }
}

/// The ropes of a model, layer by layer.
///
/// ```
/// let config = r#"{"model_type": "llama", "hidden_size": 2048, "num_attention_heads": 32, "num_hidden_layers": 16,
///     "max_position_embeddings": 131072, "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 32.0,
///     "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}}"#;
/// let model = phasor::config::ModelRope::from_hugging_face(config)?;
/// let layer = model.layer(0)?;
/// assert_eq!((layer.rope_type(), layer.head_dim), ("llama3", 64));
/// assert_eq!(layer.frequencies(4096)?.pairs(), 32);
/// # Ok::<(), phasor::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRope {
    pub(super) model_type: String,
    /// Each different rope once, in the order of its first layer.
    pub(super) kinds: Vec<LayerRope>,
    /// The kind of each layer, or of one cycle of layers where the file does not say how many there are.
    pub(super) kind_of_layer: Vec<usize>,
    pub(super) counted: bool,
    pub(super) context: Option<u32>,
    pub(super) warnings: Vec<String>,
}

impl ModelRope {
    /// Puts the ropes of all layers together: `describe` is asked once for each different kind.
    pub(super) fn assemble<K: PartialEq>(
        model_type: &str,
        kinds: Vec<K>,
        counted: bool,
        mut describe: impl FnMut(&K) -> Result<LayerRope>,
    ) -> Result<Self> {
        let mut distinct: Vec<(K, LayerRope)> = Vec::new();
        let mut kind_of_layer = Vec::new();
        for kind in kinds {
            let index = match distinct.iter().position(|(seen, _)| *seen == kind) {
                Some(index) => index,
                None => {
                    let rope = describe(&kind)?;
                    distinct.push((kind, rope));
                    distinct.len() - 1
                }
            };
            kind_of_layer.push(index);
        }
        let kinds = distinct.into_iter().map(|(_, rope)| rope).collect();
        Ok(Self {
            model_type: model_type.to_owned(),
            kinds,
            kind_of_layer,
            counted,
            context: None,
            warnings: Vec::new(),
        })
    }

    /// The file's name for the model's architecture: `model_type`, or `general.architecture`.
    #[must_use]
    pub fn model_type(&self) -> &str {
        &self.model_type
    }

    /// How many layers there are, where the file says so.
    #[must_use]
    pub fn layers(&self) -> Option<usize> {
        self.counted.then_some(self.kind_of_layer.len())
    }

    /// The longest sequence, in tokens, that the file says the model is for.
    #[must_use]
    pub fn context(&self) -> Option<u32> {
        self.context
    }

    /// Each different rope once, in the order of its first layer.
    #[must_use]
    pub fn kinds(&self) -> &[LayerRope] {
        &self.kinds
    }

    /// The layers that have the rope `kinds()[kind]`; those of one cycle where the file does not say how many there are.
    pub fn layers_of(&self, kind: usize) -> impl Iterator<Item = usize> + '_ {
        self.kind_of_layer.iter().enumerate().filter(move |&(_, &of)| of == kind).map(|(layer, _)| layer)
    }

    /// The rope of a layer, counted from 0.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming `layer` if there are fewer.
    pub fn layer(&self, layer: usize) -> Result<&LayerRope> {
        let place = if self.counted { layer } else { layer % self.kind_of_layer.len().max(1) };
        let kind = self.kind_of_layer.get(place);
        kind.and_then(|&kind| self.kinds.get(kind)).ok_or_else(|| {
            Error::setting("layer", layer, format!("below {}, the number of layers", self.kind_of_layer.len()))
        })
    }

    /// The rope of the layers of a type (`full_attention`); of those that rotate, if some do and some do not.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming `layer_type` if there are none, with the types that there are.
    pub fn layer_type(&self, name: &str) -> Result<&LayerRope> {
        let of_type = |rope: &&LayerRope| rope.layer_type.as_deref() == Some(name);
        let rotating = self.kinds.iter().filter(of_type).find(|rope| rope.rotates);
        rotating.or_else(|| self.kinds.iter().find(of_type)).ok_or_else(|| {
            let types: Vec<_> = self.kinds.iter().filter_map(|rope| rope.layer_type.as_deref()).collect();
            let may_be = if types.is_empty() { "left out: all layers are alike".into() } else { types.join(", ") };
            Error::setting("layer_type", name, may_be)
        })
    }

    /// What looked wrong without making the settings impossible.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// More layers than any model has; it keeps a wrong number in a file from asking for gigabytes.
const MAX_LAYERS: u32 = 1 << 16;

/// A number of layers that can be right.
pub(super) fn check_layers(field: String, layers: u32) -> Result<u32> {
    if (1..=MAX_LAYERS).contains(&layers) {
        return Ok(layers);
    }
    Err(Error::setting(field, layers, format!("a number of layers from 1 to {MAX_LAYERS}")))
}
