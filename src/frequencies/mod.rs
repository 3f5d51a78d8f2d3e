//! From a scaling law's settings to the frequencies of its pairs: numbers only, in f64, no GPU.
//!
//! One file and one type for each law, with the formula and its source; [`Law`] is any of them. [`Turn`] is what a
//! frequency becomes for the shaders; [`Axes`] says which position a pair turns by; [`QueryScale`] belongs to some
//! models' settings without being rotary.

mod axes;
mod axial;
mod check;
mod clipped;
mod divided;
mod dynamic_ntk;
mod fixed_ntk;
mod law;
mod linear;
mod llama3;
mod longrope;
mod ntk_aware;
mod plain;
mod proportional;
mod query_scale;
mod turn;
mod yarn;

pub use axes::Axes;
pub use axial::{Axial, AxialSeries};
pub use clipped::ClippedRope;
pub use divided::Divided;
pub use dynamic_ntk::DynamicNtk;
pub use fixed_ntk::FixedNtk;
pub use law::Law;
pub use linear::Linear;
pub use llama3::Llama3;
pub use longrope::{LongRope, LongRopePolicy};
pub use ntk_aware::NtkAware;
pub use plain::Plain;
pub use proportional::Proportional;
pub use query_scale::QueryScale;
pub use turn::Turn;
pub(crate) use turn::rounded_away;
pub use yarn::{Magnitude, Yarn, mscale};

use crate::shown::with_exponent;
use crate::{Error, Result};

/// What a scaling law comes to: one inverse frequency for each pair of channels, and the factor on cosine and sine.
///
/// Pair `i` of a token at position `m` turns by `m * inv_freq[i]` radians; cosine and sine are multiplied by
/// `attention_factor`, so that logits grow by its square.
#[derive(Debug, Clone, PartialEq)]
pub struct Frequencies {
    inv_freq: Vec<f64>,
    attention_factor: f64,
}

/// Beyond about 1e31 a frequency, as exact as f64 holds it, has no fraction of a turn that [`Turn`] could see.
const MOST_RADIANS: f64 = 1e30;

/// Attention factors that f32 can multiply by, divide by, and divide by twice. Real ones are near 1.
const ATTENTION_FACTORS: std::ops::RangeInclusive<f64> = 1e-18..=1e18;

impl Frequencies {
    /// A caller's own frequencies, in radians per token, from -1e30 to 1e30; zero for a pair that does not turn.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) if there is no frequency, or one is beyond that or no number, or the
    /// attention factor is not within 1e-18 to 1e18, beyond which f32 could not undo it.
    pub fn new(inv_freq: Vec<f64>, attention_factor: f64) -> Result<Self> {
        if inv_freq.is_empty() {
            return Err(Error::setting("inv_freq", "empty", "one number or more: a rotation of nothing is none"));
        }
        if let Some((i, w)) = inv_freq.iter().enumerate().find(|(_, w)| !(-MOST_RADIANS..=MOST_RADIANS).contains(w)) {
            return Err(Error::setting(
                format!("inv_freq[{i}]"),
                w,
                "a number of radians per token from -1e30 to 1e30",
            ));
        }
        if !ATTENTION_FACTORS.contains(&attention_factor) {
            let may_be = format!(
                "from {} to {}",
                with_exponent(*ATTENTION_FACTORS.start()),
                with_exponent(*ATTENTION_FACTORS.end())
            );
            return Err(Error::setting("attention_factor", with_exponent(attention_factor), may_be));
        }
        Ok(Self { inv_freq, attention_factor })
    }

    /// Radians per token, one number for each pair: `[pairs]`.
    #[must_use]
    pub fn inv_freq(&self) -> &[f64] {
        &self.inv_freq
    }

    /// How far each pair turns per token, for the shaders: `[pairs]`.
    #[must_use]
    pub fn turns(&self) -> Vec<Turn> {
        self.inv_freq.iter().map(|&w| Turn::from_radians(w)).collect()
    }

    /// The factor on cosine and sine.
    #[must_use]
    pub fn attention_factor(&self) -> f64 {
        self.attention_factor
    }

    /// How many pairs of channels turn.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.inv_freq.len()
    }

    /// How many channels turn: twice the pairs.
    #[must_use]
    pub fn rotary_dim(&self) -> usize {
        2 * self.inv_freq.len()
    }
}
