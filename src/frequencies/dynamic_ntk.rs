//! Dynamic NTK scaling: NTK-aware scaling whose alpha grows with the sequence.
//!
//! ```text
//! n     = max(seq_len, M)                     M = max_position_embeddings
//! alpha = factor * n / M - (factor - 1)       1 up to M tokens
//! w_i   = plain frequencies of base * alpha^(d/(d-2))
//! ```
//!
//! Source: emozilla, *Dynamically Scaled RoPE* (2023), as transformers' rope type `dynamic` computes it. transformers
//! takes `seq_len` from each forward pass, so that a growing cache mixes bases; vLLM and SGLang fix it at `factor * M`.
//! phasor leaves the choice to the caller: one `seq_len` gives one set of frequencies, and cached keys can be rotated
//! from one set to another.

use super::{Frequencies, NtkAware, check};
use crate::{Error, Result};

/// NTK-aware scaling that depends on how long the sequence is.
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicNtk {
    /// The base of the geometric series (`rope_theta`) before scaling, above 1.
    pub base: f64,
    /// How fast the scaling grows with the sequence, above 0.
    pub factor: f64,
    /// The context in tokens up to which nothing is scaled.
    pub max_position_embeddings: u32,
}

impl DynamicNtk {
    /// Dynamic scaling by `factor` beyond `max_position_embeddings` tokens.
    #[must_use]
    pub fn new(base: f64, factor: f64, max_position_embeddings: u32) -> Self {
        Self { base, factor, max_position_embeddings }
    }

    /// The frequencies of `rotary_dim / 2` pairs for a sequence of `seq_len` tokens in all, cached ones included.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming the field; also for a `rotary_dim` of 2, which NTK scaling cannot
    /// serve.
    pub fn frequencies(&self, rotary_dim: u32, seq_len: u32) -> Result<Frequencies> {
        let factor = check::positive("factor", self.factor)?;
        let trained = check::tokens("max_position_embeddings", self.max_position_embeddings)?;
        let length = f64::from(seq_len).max(trained);
        let alpha = factor * length / trained - (factor - 1.0);
        NtkAware::new(self.base, alpha).frequencies(rotary_dim).map_err(|error| match error.argument() {
            "alpha" => {
                let may_be = format!("such that alpha, here {}, is {}", error.was(), error.may_be());
                Error::setting("factor", factor, may_be)
            }
            _ => error,
        })
    }
}
