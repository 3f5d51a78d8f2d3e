//! Linear scaling, also called position interpolation: `w_i = base^(-2i/d) / factor`, attention factor 1.
//!
//! Source: Chen et al., *Extending Context Window of Large Language Models via Positional Interpolation*,
//! arXiv 2306.15595. Dividing each frequency is the same as dividing each position.

use super::{Frequencies, check, plain};
use crate::Result;

/// Every frequency divided by one factor. A factor of 1 is [`Plain`](super::Plain).
#[derive(Debug, Clone, PartialEq)]
pub struct Linear {
    /// The base of the geometric series (`rope_theta`), above 1.
    pub base: f64,
    /// The extended context over the original one, above 0.
    pub factor: f64,
}

impl Linear {
    /// Linear scaling by `factor`.
    #[must_use]
    pub fn new(base: f64, factor: f64) -> Self {
        Self { base, factor }
    }

    /// The frequencies of `rotary_dim / 2` pairs.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming `base`, `factor` or `rotary_dim`.
    pub fn frequencies(&self, rotary_dim: u32) -> Result<Frequencies> {
        let factor = check::positive("factor", self.factor)?;
        Frequencies::new(plain::series(self.base, rotary_dim)?.map(|w| w / factor).collect(), 1.0)
    }
}
