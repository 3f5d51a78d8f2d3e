//! Clipped RoPE, also published under the name CoPE: the slowest pairs fade out.
//!
//! ```text
//! w_i *= (1 + cos(pi k / (n - 1))) / 2      for the last n pairs, k = 0 .. n-1: the very last one stops
//! ```
//!
//! Source: Li et al., *CoPE: Clipped RoPE*, arXiv 2602.05258, with `n = 20`; its hard variant stops all `n`. It has
//! nothing to do with Contextual Position Encoding (arXiv 2405.18719), the older bearer of the name.

use std::f64::consts::PI;

use super::{Frequencies, Law};
use crate::{Error, Result};

/// A law whose slowest pairs fade out.
#[derive(Debug, Clone, PartialEq)]
pub struct ClippedRope {
    /// The law that is clipped.
    pub law: Box<Law>,
    /// How many of the last pairs are clipped; 20 in the paper.
    pub pairs: u32,
    /// Whether the clipped pairs stop at once instead of fading out.
    pub hard: bool,
}

impl ClippedRope {
    /// The paper's soft clipping of the last 20 pairs.
    #[must_use]
    pub fn new(law: impl Into<Law>) -> Self {
        Self { law: Box::new(law.into()), pairs: 20, hard: false }
    }

    /// The frequencies of `rotary_dim / 2` pairs for a sequence of `seq_len` tokens in all.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming `pairs` if there are fewer, or what the law beneath refuses.
    pub fn frequencies(&self, rotary_dim: u32, seq_len: u32) -> Result<Frequencies> {
        let whole = self.law.frequencies_at(rotary_dim, seq_len)?;
        let clipped = self.pairs as usize;
        let Some(kept) = whole.pairs().checked_sub(clipped) else {
            return Err(Error::setting("pairs", clipped, format!("at most the {} that turn", whole.pairs())));
        };
        let fade = |k: usize| match k + 1 == clipped || self.hard {
            true => 0.0,
            false => 0.5 * (1.0 + (PI * k as f64 / (clipped - 1) as f64).cos()),
        };
        let scaled = |(i, &w): (usize, &f64)| if i < kept { w } else { w * fade(i - kept) };
        Frequencies::new(whole.inv_freq().iter().enumerate().map(scaled).collect(), whole.attention_factor())
    }
}
