//! Any law with a divisor for each pair on top: `w_i / divisors[i]`, the attention factor unchanged.
//!
//! GGUF files carry such divisors as the tensor `rope_freqs.weight`: Llama 3's scaling comes that way, and Gemma 4's
//! pairs that do not turn have the divisor 1e30. ggml divides by them (`rope.cpp`); to multiply is a known mistake.

use super::{Frequencies, Law, check};
use crate::{Error, Result};

/// From here on a divisor means that the pair does not turn: files say 1e30, other code infinity.
const STANDSTILL: f64 = 1e29;

/// A law whose frequencies are divided once more.
#[derive(Debug, Clone, PartialEq)]
pub struct Divided {
    /// The law that is divided.
    pub law: Box<Law>,
    /// One number above 0 for each pair; 1e29 or more, or infinity, for a pair that does not turn.
    pub divisors: Vec<f64>,
}

impl Divided {
    /// `law` with a divisor for each pair.
    #[must_use]
    pub fn new(law: impl Into<Law>, divisors: Vec<f64>) -> Self {
        Self { law: Box::new(law.into()), divisors }
    }

    /// The frequencies of `rotary_dim / 2` pairs for a sequence of `seq_len` tokens in all.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming `divisors`, or what the law beneath refuses.
    pub fn frequencies(&self, rotary_dim: u32, seq_len: u32) -> Result<Frequencies> {
        let (pairs, given) = (check::pairs(rotary_dim)? as usize, self.divisors.len());
        if given != pairs {
            return Err(Error::setting("divisors", format!("a list of {given}"), format!("a list of {pairs}")));
        }
        let whole = self.law.frequencies_at(rotary_dim, seq_len)?;
        let divide = |(i, (w, &divisor)): (usize, (&f64, &f64))| match divisor {
            still if still >= STANDSTILL => Ok(0.0),
            divisor => Ok(w / check::positive(&format!("divisors[{i}]"), divisor)?),
        };
        let inv_freq: Result<Vec<f64>> = whole.inv_freq().iter().zip(&self.divisors).enumerate().map(divide).collect();
        Frequencies::new(inv_freq?, whole.attention_factor())
    }
}
