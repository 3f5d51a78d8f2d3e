//! Rotary encoding of a picture's rows and columns: the first half of the pairs counts one axis, the rest the other.
//!
//! ```text
//! same:         w_i = base^(-4j/d)        j = i for i < d/4, i - d/4 after: both axes have the same frequencies
//! alternating:  w_i = base^(-2k/d)        k = 2j for the first axis, 2j + 1 for the second: they share one series
//! ```
//!
//! `same` is transformers' rope type `axial`, ggml's `VISION`, and what the vision towers of Qwen-VL and Llama 4 do;
//! `alternating` is Pixtral's. Which position a pair turns by is said by [`Axes::axial`](super::Axes::axial). Gemma 4's
//! vision tower is neither: each half of its head is a half-split block of its own, so it takes two plain rotations of
//! half a head, the second with an offset.

use super::{Frequencies, check, plain};
use crate::{Error, Result};

/// Frequencies for positions on two axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Axial {
    /// The base of the geometric series (`rope_theta`), above 1.
    pub base: f64,
    /// How the two axes come by their frequencies.
    pub series: AxialSeries,
}

/// How the two axes of [`Axial`] come by their frequencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AxialSeries {
    /// Both have the same.
    #[default]
    Same,
    /// The first has the even members of one series, the second the odd ones.
    Alternating,
}

impl Axial {
    /// Both axes with the same frequencies.
    #[must_use]
    pub fn new(base: f64) -> Self {
        Self { base, series: AxialSeries::Same }
    }

    /// The frequencies of `rotary_dim / 2` pairs.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming `base`, or `rotary_dim`, which must be a multiple of 4.
    pub fn frequencies(&self, rotary_dim: u32) -> Result<Frequencies> {
        if !check::pairs(rotary_dim)?.is_multiple_of(2) {
            return Err(Error::setting("rotary_dim", rotary_dim, "a multiple of 4, half of it for each axis"));
        }
        let series: Vec<f64> = plain::series(self.base, rotary_dim)?.collect();
        let every_other = |from: usize| series.iter().copied().skip(from).step_by(2);
        let second = match self.series {
            AxialSeries::Same => 0,
            AxialSeries::Alternating => 1,
        };
        Frequencies::new(every_other(0).chain(every_other(second)).collect(), 1.0)
    }
}
