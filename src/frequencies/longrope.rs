//! LongRoPE: each pair divided by a searched number of its own, with one list for short and one for long sequences.
//!
//! ```text
//! w_i = base^(-2i/d) / short_factor[i]        up to L0 = original_max_position_embeddings tokens
//! w_i = base^(-2i/d) / long_factor[i]         beyond
//! A   = sqrt(1 + ln(factor) / ln(L0))         1 for factor <= 1; the same for both lists
//! ```
//!
//! Source: Ding et al., *LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens*, arXiv 2402.13753, as
//! transformers computes it for Phi-3 (`longrope`, once called `su`).
//!
//! Keys rotated with one list are wrong for the other. transformers drops the cache when a sequence crosses `L0`;
//! vLLM and llama.cpp fix the list for a whole run by the longest sequence they allow; MLX always takes the long one.

use super::{Frequencies, check, plain};
use crate::{Error, Result};

/// LongRoPE with both lists.
#[derive(Debug, Clone, PartialEq)]
pub struct LongRope {
    /// The base of the geometric series (`rope_theta`), above 1.
    pub base: f64,
    /// The divisors of short sequences, one for each pair.
    pub short_factor: Vec<f64>,
    /// The divisors of long sequences, one for each pair.
    pub long_factor: Vec<f64>,
    /// The context in tokens that the model was trained on before it was extended: the longest that counts as short.
    pub original_max_position_embeddings: u32,
    /// The extended context over the original one; it decides the attention factor alone.
    pub factor: f64,
    /// The attention factor, where the config states it.
    pub attention_factor: Option<f64>,
    /// PhiMoE's attention factor for short sequences, instead of all the above.
    pub short_mscale: Option<f64>,
    /// PhiMoE's attention factor for long sequences, instead of all the above.
    pub long_mscale: Option<f64>,
    /// Which list applies.
    pub policy: LongRopePolicy,
}

/// Which of LongRoPE's two lists applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LongRopePolicy {
    /// The long one if the whole sequence, cached tokens included, is longer than the original context. transformers.
    #[default]
    BySequence,
    /// The short one, whatever the length.
    FixedShort,
    /// The long one, whatever the length.
    FixedLong,
}

impl LongRope {
    /// LongRoPE as a config with nothing but the lists and the two contexts gives it.
    #[must_use]
    pub fn new(base: f64, short: Vec<f64>, long: Vec<f64>, original_max_position_embeddings: u32, factor: f64) -> Self {
        Self {
            base,
            short_factor: short,
            long_factor: long,
            original_max_position_embeddings,
            factor,
            attention_factor: None,
            short_mscale: None,
            long_mscale: None,
            policy: LongRopePolicy::BySequence,
        }
    }

    /// Whether a sequence of `seq_len` tokens in all gets the long list. A sequence of exactly the original context is
    /// still short.
    #[must_use]
    pub fn is_long(&self, seq_len: u32) -> bool {
        match self.policy {
            LongRopePolicy::BySequence => seq_len > self.original_max_position_embeddings,
            LongRopePolicy::FixedShort => false,
            LongRopePolicy::FixedLong => true,
        }
    }

    /// The frequencies of `rotary_dim / 2` pairs for a sequence of `seq_len` tokens in all, cached ones included.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming the field: both lists must have one divisor above 0 for each pair.
    pub fn frequencies(&self, rotary_dim: u32, seq_len: u32) -> Result<Frequencies> {
        let pairs = check::pairs(rotary_dim)? as usize;
        check_divisors("short_factor", &self.short_factor, pairs)?;
        check_divisors("long_factor", &self.long_factor, pairs)?;
        let long = self.is_long(seq_len);
        let divisors = if long { &self.long_factor } else { &self.short_factor };
        let inv_freq = plain::series(self.base, rotary_dim)?.zip(divisors).map(|(w, divisor)| w / divisor).collect();
        Frequencies::new(inv_freq, self.attention_factor(long)?)
    }

    fn attention_factor(&self, long: bool) -> Result<f64> {
        let (field, mscale) =
            if long { ("long_mscale", self.long_mscale) } else { ("short_mscale", self.short_mscale) };
        if let Some(mscale) = mscale {
            return check::positive(field, mscale);
        }
        if let Some(factor) = self.attention_factor {
            return check::positive("attention_factor", factor);
        }
        let context = check::tokens("original_max_position_embeddings", self.original_max_position_embeddings)?;
        let factor = check::positive("factor", self.factor)?;
        if factor <= 1.0 {
            return Ok(1.0);
        }
        if context == 1.0 {
            return Err(Error::setting("original_max_position_embeddings", context, "at least 2, for its logarithm"));
        }
        Ok((1.0 + factor.ln() / context.ln()).sqrt())
    }
}

fn check_divisors(field: &str, divisors: &[f64], pairs: usize) -> Result<()> {
    if divisors.len() != pairs {
        let was = format!("a list of {}", divisors.len());
        return Err(Error::setting(field, was, format!("a list of {pairs}, one number for each pair")));
    }
    for (i, &divisor) in divisors.iter().enumerate() {
        check::positive(&format!("{field}[{i}]"), divisor)?;
    }
    Ok(())
}
