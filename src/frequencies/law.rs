//! Any scaling law, as one type.

use super::{
    Axial, ClippedRope, Divided, DynamicNtk, FixedNtk, Frequencies, Linear, Llama3, LongRope, NtkAware, Plain,
    Proportional, Yarn,
};
use crate::Result;

/// A scaling law with its settings, where the law is only known at run time.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Law {
    /// No scaling.
    Plain(Plain),
    /// Every frequency divided by one factor.
    Linear(Linear),
    /// A larger base.
    NtkAware(NtkAware),
    /// A larger base that slows every pair.
    FixedNtk(FixedNtk),
    /// A base that grows with the sequence.
    DynamicNtk(DynamicNtk),
    /// Slow pairs scaled, fast pairs kept, by pair index.
    Yarn(Yarn),
    /// A divisor for each pair, by two lists.
    LongRope(LongRope),
    /// Slow pairs scaled, fast pairs kept, by wavelength.
    Llama3(Llama3),
    /// Only the fastest pairs turn.
    Proportional(Proportional),
    /// Two axes.
    Axial(Axial),
    /// Another law, divided pair by pair.
    Divided(Divided),
    /// Another law, its slowest pairs faded out.
    ClippedRope(ClippedRope),
}

impl Law {
    /// The law's name, in the words of Hugging Face's `rope_type` (vLLM's `ntk` for [`FixedNtk`]). What lies on top of
    /// another law has that law's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Plain(_) => "default",
            Self::Linear(_) => "linear",
            Self::NtkAware(_) => "ntk_alpha",
            Self::FixedNtk(_) => "ntk",
            Self::DynamicNtk(_) => "dynamic",
            Self::Yarn(_) => "yarn",
            Self::LongRope(_) => "longrope",
            Self::Llama3(_) => "llama3",
            Self::Proportional(_) => "proportional",
            Self::Axial(_) => "axial",
            Self::Divided(divided) => divided.law.name(),
            Self::ClippedRope(clipped) => clipped.law.name(),
        }
    }

    /// Whether the frequencies depend on how long the sequence is.
    #[must_use]
    pub fn depends_on_length(&self) -> bool {
        match self {
            Self::DynamicNtk(_) | Self::LongRope(_) => true,
            Self::Divided(divided) => divided.law.depends_on_length(),
            Self::ClippedRope(clipped) => clipped.law.depends_on_length(),
            _ => false,
        }
    }

    /// The frequencies of `rotary_dim / 2` pairs, for sequences within the context that the model was first trained on.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming the field that is impossible.
    pub fn frequencies(&self, rotary_dim: u32) -> Result<Frequencies> {
        self.frequencies_at(rotary_dim, 0)
    }

    /// The frequencies of `rotary_dim / 2` pairs for a sequence of `seq_len` tokens in all, cached ones included: the
    /// same for every length except where [`Law::depends_on_length`].
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming the field that is impossible.
    pub fn frequencies_at(&self, rotary_dim: u32, seq_len: u32) -> Result<Frequencies> {
        match self {
            Self::Plain(law) => law.frequencies(rotary_dim),
            Self::Linear(law) => law.frequencies(rotary_dim),
            Self::NtkAware(law) => law.frequencies(rotary_dim),
            Self::FixedNtk(law) => law.frequencies(rotary_dim),
            Self::DynamicNtk(law) => law.frequencies(rotary_dim, seq_len),
            Self::Yarn(law) => law.frequencies(rotary_dim),
            Self::LongRope(law) => law.frequencies(rotary_dim, seq_len),
            Self::Llama3(law) => law.frequencies(rotary_dim),
            Self::Proportional(law) => law.frequencies(rotary_dim),
            Self::Axial(law) => law.frequencies(rotary_dim),
            Self::Divided(law) => law.frequencies(rotary_dim, seq_len),
            Self::ClippedRope(law) => law.frequencies(rotary_dim, seq_len),
        }
    }
}

/// One `From` for each law, so that a constructor's result can be passed where any law is taken.
macro_rules! from_laws {
    ($($law:ident),* $(,)?) => {$(
        impl From<$law> for Law {
            fn from(law: $law) -> Self {
                Self::$law(law)
            }
        }
    )*};
}

from_laws!(
    Plain,
    Linear,
    NtkAware,
    FixedNtk,
    DynamicNtk,
    Yarn,
    LongRope,
    Llama3,
    Proportional,
    Axial,
    Divided,
    ClippedRope,
);
