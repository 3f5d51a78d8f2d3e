//! The rotation that queries and keys take on their way into attention.

use super::{AttentionShape, Standing};
use crate::frequencies::Frequencies;
use crate::{Error, Pairing, Result};

/// Rotary encoding of queries and keys while attention loads them: in memory both are not rotated, and nothing writes
/// rotated keys anywhere.
///
/// Key `s` of a row stands at position `s`, and queries where [`Standing`] puts them among the keys, so that no positions
/// are given: logits depend on their differences alone. The channels that turn are the first
/// [`Frequencies::rotary_dim`] of each head, and the attention factor multiplies both queries and keys.
///
/// Where tokens stand otherwise (several sequences packed into a row, positions with several axes as pictures have them),
/// rotate before, with `Rope`, and leave this out.
///
/// ```
/// use phasor::attention::{Attention, Rotation};
/// use phasor::frequencies::Plain;
/// use phasor::{Layout, Pairing, reference::{Tensor, attention}};
/// let rotation = Rotation::new(&Plain { base: 10_000.0 }.frequencies(2)?, Pairing::HalfSplit);
/// let x = [1.0, 0.0, 1.0, 0.0];
/// let x = Tensor::new(&x, Layout::contiguous([1, 2, 1, 2])?)?;
/// let attended = attention(&Attention::new(&x, &x, &x).scale(1.0).causal().rotate(rotation))?;
/// // Token 1 sees itself with a logit of 1, and its neighbour one radian away.
/// assert!((attended.lse[1] - (1f64.exp() + 1f64.cos().exp()).ln()).abs() < 1e-12);
/// # Ok::<(), phasor::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Rotation {
    pub(crate) frequencies: Frequencies,
    pub(crate) pairing: Pairing,
    pub(crate) first_channel: usize,
    pub(crate) first_key: i32,
}

impl Rotation {
    /// Positions up to here, standings of queries, and numbers of queries and of keys: sums of some of them stay within
    /// 32 bits, and within what masks reckon with.
    const FAR: i64 = 1 << 28;

    /// The first `frequencies.rotary_dim()` channels of each head turn.
    pub fn new(frequencies: &Frequencies, pairing: Pairing) -> Self {
        Self { frequencies: frequencies.clone(), pairing, first_channel: 0, first_key: 0 }
    }

    /// The rotation of one layer of a model, for sequences of `seq_len` tokens in all; `None` for a layer that does not
    /// rotate (NoPE). Tokens are text: the same position on all axes, where there are several.
    ///
    /// ```
    /// # fn engine(config: &str) -> phasor::Result<()> {
    /// use phasor::{attention::Rotation, config::ModelRope};
    /// let rotation = Rotation::for_layer(ModelRope::from_hugging_face(config)?.layer(0)?, 8192)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`LayerRope::frequencies`](crate::config::LayerRope::frequencies).
    #[cfg(feature = "config")]
    pub fn for_layer(layer: &crate::config::LayerRope, seq_len: u32) -> Result<Option<Self>> {
        if !layer.rotates {
            return Ok(None);
        }
        let rotation = Self::new(&layer.frequencies(seq_len)?, layer.pairing);
        Ok(Some(rotation.from_channel(layer.rotary.offset() as usize)))
    }

    /// The channels that turn begin at this one.
    pub fn from_channel(mut self, first: usize) -> Self {
        self.first_channel = first;
        self
    }

    /// Key 0 stands at this position, and all others and the queries as much further: where the keys are a part of a
    /// sequence, or a cache that has dropped its oldest.
    ///
    /// Logits do not change by it. It is a matter of what meets rotated queries without being rotated itself: the
    /// position embeddings of contextual encoding, and values that gates are made from.
    pub fn first_key(mut self, position: i32) -> Self {
        self.first_key = position;
        self
    }

    /// Which channels make a pair.
    #[must_use]
    pub fn pairing(&self) -> Pairing {
        self.pairing
    }

    /// Refuses heads that are too small, positions that are too far, and queries at the end of a cache whose rows end before
    /// it.
    pub(super) fn check(&self, shape: &AttentionShape, standing: Standing, has_ranges: bool) -> Result<()> {
        let refuse = |was: String, may_be: String| Err(Error::tensor("rotation", was, may_be));
        let rotary = self.frequencies.rotary_dim();
        if self.first_channel.checked_add(rotary).is_none_or(|end| end > shape.channels) {
            let was = format!("one of {rotary} channels from {} on", self.first_channel);
            return refuse(was, format!("one within the {} channels of a head", shape.channels));
        }
        let far = |position: i64| position.unsigned_abs() > Self::FAR.unsigned_abs();
        if far(self.first_key.into()) {
            return refuse(format!("one of keys from position {} on", self.first_key), "from -2^28 to 2^28".into());
        }
        if far(i64::try_from(shape.tokens.max(shape.keys)).unwrap_or(i64::MAX)) {
            return refuse(format!("one of {} queries over {} keys", shape.tokens, shape.keys), "up to 2^28".into());
        }
        match standing {
            Standing::Last if has_ranges && shape.tokens != shape.keys => Err(Error::tensor(
                "standing",
                format!("the last of {} keys, of which each row has its own range", shape.keys),
                "RowLast, where the last query stands at its row's last key; or From a key",
            )),
            Standing::From(place) if far(place) => {
                refuse(format!("one of queries that stand at {place}"), "from -2^28 to 2^28".into())
            }
            Standing::From(_) | Standing::Last | Standing::RowLast => Ok(()),
        }
    }
}
