//! Which channels of a head turn, which two make a pair, and which way they turn.
//!
//! A pair `(x0, x1)` at angle `t` becomes `(x0 cos t - x1 sin t, x0 sin t + x1 cos t)`. These settings say nothing about
//! how fast a pair turns: that is a scaling law's part (see [`frequencies`](crate::frequencies)).

use std::fmt;
use std::ops::Range;

use crate::{Error, Result};

/// Which two channels make a pair.
///
/// The checkpoint decides, not the model: rotation in one pairing of weights stored for the other gives fluent nonsense.
/// The same Llama is half-split in Hugging Face's files and interleaved in Meta's and in GGUF files, because the rows
/// of its query and key projections were permuted on the way. For an architecture of which the rows were not permuted,
/// GGUF keeps the pairing of the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pairing {
    /// Neighbours: channels `2i` and `2i + 1`. Also called GPT-J, normal, traditional.
    Interleaved,
    /// One channel from each half: `i` and `i + pairs`. Also called NeoX, `rotate_half`; the default of Hugging Face.
    HalfSplit,
}

impl Pairing {
    /// The name: `interleaved` or `half-split`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interleaved => "interleaved",
            Self::HalfSplit => "half-split",
        }
    }

    /// The two channels of pair `i` of `pairs`, counted from the first channel that turns.
    #[must_use]
    pub fn channels(self, i: u32, pairs: u32) -> (u32, u32) {
        match self {
            Self::Interleaved => (2 * i, 2 * i + 1),
            Self::HalfSplit => (i, i + pairs),
        }
    }
}

impl fmt::Display for Pairing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which way the pairs turn. `A` is the attention factor of the law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// The encoding itself: by `t`, times `A`.
    #[default]
    Forward,
    /// What undoes it: by `-t`, times `1/A`.
    Inverse,
    /// The transposed matrix, as a backward pass needs it: by `-t`, times `A`. The same as the inverse where `A` is 1.
    Adjoint,
}

impl Direction {
    /// The sign of the sine: 1 forward, -1 backward.
    #[must_use]
    pub fn sign(self) -> f64 {
        match self {
            Self::Forward => 1.0,
            Self::Inverse | Self::Adjoint => -1.0,
        }
    }

    /// The factor on cosine and sine, given the law's attention factor.
    #[must_use]
    pub fn magnitude(self, attention_factor: f64) -> f64 {
        match self {
            Self::Forward | Self::Adjoint => attention_factor,
            Self::Inverse => attention_factor.recip(),
        }
    }
}

/// Which channels of a head turn; the others pass through unchanged.
///
/// Most models turn all, or the first quarter or half (GPT-NeoX, GLM-4); DeepSeek-V4 turns the last 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rotary {
    dim: u32,
    offset: u32,
}

impl Rotary {
    /// `dim` channels from `offset` on, in heads of `head_dim` channels.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming `rotary_dim` if it is zero, odd or larger than the head, or
    /// `rotary_offset` if the channels would reach past the head's end.
    pub fn new(head_dim: u32, dim: u32, offset: u32) -> Result<Self> {
        if dim == 0 || !dim.is_multiple_of(2) || dim > head_dim {
            return Err(Error::setting("rotary_dim", dim, format!("an even number from 2 to head_dim, {head_dim}")));
        }
        if offset > head_dim - dim {
            let most = head_dim - dim;
            return Err(Error::setting("rotary_offset", offset, format!("at most head_dim - rotary_dim, {most}")));
        }
        Ok(Self { dim, offset })
    }

    /// Every channel of the head.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) if `head_dim` is zero or odd.
    pub fn whole(head_dim: u32) -> Result<Self> {
        Self::new(head_dim, head_dim, 0)
    }

    /// How many channels turn: even, at least 2.
    #[must_use]
    pub fn dim(self) -> u32 {
        self.dim
    }

    /// The first channel that turns.
    #[must_use]
    pub fn offset(self) -> u32 {
        self.offset
    }

    /// How many pairs turn.
    #[must_use]
    pub fn pairs(self) -> u32 {
        self.dim / 2
    }

    /// The channels that turn.
    #[must_use]
    pub fn channels(self) -> Range<u32> {
        self.offset..self.offset + self.dim
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn every_channel_is_in_one_pair() {
        for pairing in [Pairing::Interleaved, Pairing::HalfSplit] {
            for pairs in [1, 2, 5, 64] {
                let mut seen: Vec<_> =
                    (0..pairs).map(|i| pairing.channels(i, pairs)).flat_map(|(a, b)| [a, b]).collect();
                seen.sort_unstable();
                assert_eq!(seen, (0..2 * pairs).collect::<Vec<_>>(), "{pairing:?}, {pairs} pairs");
            }
        }
    }

    #[test]
    fn the_inverse_undoes_and_the_adjoint_keeps_the_magnitude() {
        assert_eq!(Direction::Inverse.magnitude(4.0) * Direction::Forward.magnitude(4.0), 1.0);
        assert_eq!(Direction::Adjoint.magnitude(4.0), 4.0);
        assert_eq!(Direction::Inverse.sign(), Direction::Adjoint.sign());
        assert_eq!(Direction::Forward.sign(), 1.0);
    }

    #[test]
    fn channels_stay_within_the_head() {
        assert_eq!(Rotary::new(128, 64, 64).unwrap().channels(), 64..128);
        assert_eq!(Rotary::whole(80).unwrap().pairs(), 40);
        for (head_dim, dim, offset, field) in [
            (128, 0, 0, "rotary_dim"),
            (128, 63, 0, "rotary_dim"),
            (128, 130, 0, "rotary_dim"),
            (0, 2, 0, "rotary_dim"),
            (128, 64, 65, "rotary_offset"),
            (128, 128, u32::MAX, "rotary_offset"),
        ] {
            let error = Rotary::new(head_dim, dim, offset).unwrap_err();
            assert!(error.kind() == ErrorKind::Setting && error.argument() == field, "{error}");
        }
    }
}
