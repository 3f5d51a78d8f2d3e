//! Fixed NTK scaling: like NTK-aware scaling, but every pair slows down, the first one too.
//!
//! ```text
//! w_i = base^(-2i/d) * exp(-a (i + 1)^b)     with a = ln(factor) / (d/2)^b
//! ```
//!
//! With `b = 1` the second part is `factor^(-2(i+1)/d)`. The last pair is divided by exactly `factor`. Source: Su
//! Jianlin, kexue.fm/archives/9706 (2023), as vLLM's rope type `ntk` computes it. transformers does not have it.

use super::{Frequencies, check, plain};
use crate::Result;

/// Every pair slowed down, from a little at the first to `factor` at the last.
#[derive(Debug, Clone, PartialEq)]
pub struct FixedNtk {
    /// The base of the geometric series (`rope_theta`), above 1.
    pub base: f64,
    /// By how much the slowest pair slows down, above 0.
    pub factor: f64,
    /// The exponent that spreads the slowing over the pairs, above 0: 1 by default, vLLM's `mixed_b`.
    pub mixed_b: f64,
}

impl FixedNtk {
    /// Fixed NTK scaling by `factor`, spread evenly.
    #[must_use]
    pub fn new(base: f64, factor: f64) -> Self {
        Self { base, factor, mixed_b: 1.0 }
    }

    /// The frequencies of `rotary_dim / 2` pairs.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming `base`, `factor`, `mixed_b` or `rotary_dim`.
    pub fn frequencies(&self, rotary_dim: u32) -> Result<Frequencies> {
        let spread = check::positive("mixed_b", self.mixed_b)?;
        let slowing = check::positive("factor", self.factor)?.ln();
        let pairs = f64::from(check::pairs(rotary_dim)?);
        // ((i + 1) / pairs)^b runs up to exactly 1, so the powers cannot overflow.
        let scaled = |(i, w): (u32, f64)| w * (-slowing * (f64::from(i + 1) / pairs).powf(spread)).exp();
        Frequencies::new((0..).zip(plain::series(self.base, rotary_dim)?).map(scaled).collect(), 1.0)
    }
}
