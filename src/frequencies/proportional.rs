//! Proportional rotary encoding: the whole head is paired, but only the fastest pairs turn.
//!
//! ```text
//! n   = floor(partial_rotary_factor * D / 2)
//! w_i = base^(-2i/D) / factor      for i < n
//! w_i = 0                          for n <= i < D/2
//! ```
//!
//! It is not partial rotary encoding, which it resembles: the exponent's denominator is the whole head's `D`, and where
//! pairs are half-split they reach across the whole head. Source: transformers' rope type `proportional`, for the
//! full-attention layers of Gemma 4; after Barbero et al., *Round and Round We Go!*, arXiv 2410.06205 (p-RoPE).

use super::{Frequencies, check, plain};
use crate::{Error, Result};

/// A head of which only the fastest pairs turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Proportional {
    /// The base of the geometric series (`rope_theta`), above 1.
    pub base: f64,
    /// The share of pairs that turn, from 0 to 1.
    pub partial_rotary_factor: f64,
    /// What every frequency is divided by, above 0; 1 by default.
    pub factor: f64,
}

impl Proportional {
    /// Proportional rotary encoding with this share of turning pairs.
    #[must_use]
    pub fn new(base: f64, partial_rotary_factor: f64) -> Self {
        Self { base, partial_rotary_factor, factor: 1.0 }
    }

    /// The frequencies of `rotary_dim / 2` pairs, where `rotary_dim` is the whole head.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming `base`, `partial_rotary_factor`, `factor` or `rotary_dim`.
    pub fn frequencies(&self, rotary_dim: u32) -> Result<Frequencies> {
        let factor = check::positive("factor", self.factor)?;
        let share = self.partial_rotary_factor;
        if !(0.0..=1.0).contains(&share) {
            return Err(Error::setting("partial_rotary_factor", share, "a number from 0 to 1"));
        }
        let turning = (share * f64::from(rotary_dim) / 2.0).floor() as usize;
        let series = plain::series(self.base, rotary_dim)?.enumerate();
        Frequencies::new(series.map(|(i, w)| if i < turning { w / factor } else { 0.0 }).collect(), 1.0)
    }
}
