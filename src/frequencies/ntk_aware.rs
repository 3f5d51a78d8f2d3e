//! NTK-aware scaling with a fixed `alpha`: plain frequencies of the base `base * alpha^(d/(d-2))`, attention factor 1.
//!
//! The first pair keeps its frequency and the last one is divided by exactly `alpha`; those between are spread
//! geometrically. Source: bloc97, *NTK-Aware Scaled RoPE* (2023), as in `LlamaNTKScaledRotaryEmbedding` of
//! jquesnelle/yarn. HunYuan's checkpoints use it, written `"type": "dynamic"` with an `alpha`; Hugging Face calls that
//! `ntk_alpha`. Two neighbours differ: [`FixedNtk`](super::FixedNtk) scales every pair, and
//! [`DynamicNtk`](super::DynamicNtk) derives its alpha from the sequence length.

use super::{Frequencies, check, plain};
use crate::{Error, Result};

/// A larger base, chosen such that the slowest pair slows down by `alpha`.
#[derive(Debug, Clone, PartialEq)]
pub struct NtkAware {
    /// The base of the geometric series (`rope_theta`) before scaling, above 1.
    pub base: f64,
    /// By how much the slowest pair slows down, above 0.
    pub alpha: f64,
}

impl NtkAware {
    /// NTK-aware scaling by `alpha`.
    #[must_use]
    pub fn new(base: f64, alpha: f64) -> Self {
        Self { base, alpha }
    }

    /// The frequencies of `rotary_dim / 2` pairs.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming `base`, `alpha` or `rotary_dim`, which must be at least 4: the
    /// exponent `d/(d-2)` does not exist for a single pair.
    pub fn frequencies(&self, rotary_dim: u32) -> Result<Frequencies> {
        let alpha = check::positive("alpha", self.alpha)?;
        let base = scaled_base(self.base, alpha, rotary_dim)?;
        if !(base.is_finite() && base > 1.0) {
            return Err(Error::setting("alpha", alpha, "a number that leaves the scaled base finite and above 1"));
        }
        Frequencies::new(plain::series(base, rotary_dim)?.collect(), 1.0)
    }
}

/// `base * alpha^(d/(d-2))`, the base that divides the slowest pair's frequency by `alpha`.
pub(super) fn scaled_base(base: f64, alpha: f64, rotary_dim: u32) -> Result<f64> {
    let base = check::base(base)?;
    if check::pairs(rotary_dim)? == 1 {
        return Err(Error::setting("rotary_dim", rotary_dim, "at least 4 where NTK scaling changes the base"));
    }
    let d = f64::from(rotary_dim);
    Ok(base * alpha.powf(d / (d - 2.0)))
}
