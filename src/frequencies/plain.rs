//! Plain rotary encoding: `w_i = base^(-2i/d)` for the pairs `i` of `d` channels, attention factor 1.
//!
//! Source: Su et al., *RoFormer: Enhanced Transformer with Rotary Position Embedding*, arXiv 2104.09864, section 3.3.
//! Hugging Face calls it `default`.

use super::{Frequencies, check};
use crate::Result;

/// Rotary encoding without any scaling.
///
/// ```
/// let rope = phasor::frequencies::Plain::new(10_000.0).frequencies(8)?;
/// assert!((rope.inv_freq()[1] - 0.1).abs() < 1e-15);
/// # Ok::<(), phasor::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Plain {
    /// The base of the geometric series (`rope_theta`), above 1; 10,000 in the paper.
    pub base: f64,
}

impl Plain {
    /// Plain rotary encoding with this base.
    #[must_use]
    pub fn new(base: f64) -> Self {
        Self { base }
    }

    /// The frequencies of `rotary_dim / 2` pairs.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) for a base that is not finite and above 1, or a `rotary_dim` that is
    /// zero, odd or absurd.
    pub fn frequencies(&self, rotary_dim: u32) -> Result<Frequencies> {
        Frequencies::new(series(self.base, rotary_dim)?.collect(), 1.0)
    }
}

/// `base^(-2i/d)` for every pair `i`: what each law starts from.
pub(super) fn series(base: f64, rotary_dim: u32) -> Result<impl Iterator<Item = f64>> {
    let base = check::base(base)?;
    let pairs = check::pairs(rotary_dim)?;
    Ok((0..pairs).map(move |i| base.powf(-f64::from(2 * i) / f64::from(rotary_dim))))
}
