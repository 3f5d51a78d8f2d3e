//! Llama 3's scaling: by wavelength, with a smooth band between the pairs that are kept and those that are divided.
//!
//! ```text
//! lambda_i = 2 pi / w_i                            tokens for one turn; L0 = original_max_position_embeddings
//! w_i                                              if lambda_i < L0 / high_freq_factor
//! w_i / factor                                     if lambda_i > L0 / low_freq_factor
//! w_i * ((1 - g) / factor + g)                     else, g = (L0/lambda_i - low) / (high - low)
//! ```
//!
//! The attention factor is 1. Source: Meta, *The Llama 3 Herd of Models*, arXiv 2407.21783, and the code released with
//! Llama 3.1; transformers' rope type `llama3`.

use std::f64::consts::TAU;

use super::{Frequencies, check, plain};
use crate::shown::Shown;
use crate::{Error, Result};

/// Llama 3's scaling by wavelength.
#[derive(Debug, Clone, PartialEq)]
pub struct Llama3 {
    /// The base of the geometric series (`rope_theta`), above 1.
    pub base: f64,
    /// What slow pairs are divided by, above 0.
    pub factor: f64,
    /// Pairs that turn less often than this within the original context are divided by the factor.
    pub low_freq_factor: f64,
    /// Pairs that turn more often than this within the original context are kept; above `low_freq_factor`.
    pub high_freq_factor: f64,
    /// The context in tokens that the model was trained on before it was extended.
    pub original_max_position_embeddings: u32,
}

impl Llama3 {
    /// Scaling by `factor` with the band that Llama 3 uses: from 1 to 4 turns.
    #[must_use]
    pub fn new(base: f64, factor: f64, original_max_position_embeddings: u32) -> Self {
        Self { base, factor, low_freq_factor: 1.0, high_freq_factor: 4.0, original_max_position_embeddings }
    }

    /// The frequencies of `rotary_dim / 2` pairs.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming the field, also where the band between the two frequency factors is
    /// empty.
    pub fn frequencies(&self, rotary_dim: u32) -> Result<Frequencies> {
        let factor = check::positive("factor", self.factor)?;
        let low = check::positive("low_freq_factor", self.low_freq_factor)?;
        let high = check::positive("high_freq_factor", self.high_freq_factor)?;
        if high <= low {
            let may_be = format!("above low_freq_factor, which is {}", low.shown());
            return Err(Error::setting("high_freq_factor", high, may_be));
        }
        let context = check::tokens("original_max_position_embeddings", self.original_max_position_embeddings)?;
        // How often a pair turns within the context, L0 / lambda, tells the three bands apart in one clamp.
        let scaled = |w: f64| {
            let kept = ((context * w / TAU - low) / (high - low)).clamp(0.0, 1.0);
            w * ((1.0 - kept) / factor + kept)
        };
        Frequencies::new(plain::series(self.base, rotary_dim)?.map(scaled).collect(), 1.0)
    }
}
