//! Any scaling law, as one type.

use super::{Frequencies, Linear, NtkAware, Plain, Yarn};
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
    /// Slow pairs scaled, fast pairs kept.
    Yarn(Yarn),
}

impl Law {
    /// The law's name, in the words of Hugging Face's `rope_type`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Plain(_) => "default",
            Self::Linear(_) => "linear",
            Self::NtkAware(_) => "ntk_alpha",
            Self::Yarn(_) => "yarn",
        }
    }

    /// The frequencies of `rotary_dim / 2` pairs.
    ///
    /// # Errors
    /// [`Error::Setting`](crate::Error::Setting) naming the field that is impossible.
    pub fn frequencies(&self, rotary_dim: u32) -> Result<Frequencies> {
        match self {
            Self::Plain(law) => law.frequencies(rotary_dim),
            Self::Linear(law) => law.frequencies(rotary_dim),
            Self::NtkAware(law) => law.frequencies(rotary_dim),
            Self::Yarn(law) => law.frequencies(rotary_dim),
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

from_laws!(Plain, Linear, NtkAware, Yarn);
