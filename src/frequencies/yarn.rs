//! YaRN: fast pairs keep their frequency, slow pairs are divided by `factor`, a ramp over the pair index between.
//!
//! ```text
//! corr(beta) = d * ln(L0 / (2 pi beta)) / (2 ln base)        the pair that turns beta times within L0 tokens
//! low  = max(floor(corr(beta_fast)), 0)                      no floor and ceil if truncate is false
//! high = min(ceil(corr(beta_slow)), d - 1)                   + 0.001 if equal to low
//! r_i  = clamp((i - low) / (high - low), 0, 1)
//! mix  = (1 - r_i) * extrapolation_factor
//! w_i  = base^(-2i/d) * (mix + (1 - mix) / factor)
//! ```
//!
//! Source: Peng et al., *YaRN: Efficient Context Window Extension of Large Language Models*, arXiv 2309.00071, as
//! computed by jquesnelle/yarn and by transformers: the upper bound is clamped to `d - 1` although `i` ends at
//! `d/2 - 1`, and where `low` equals `high` transformers' 0.001 keeps the ramp from dividing by zero.
//!
//! The attention factor has four spellings in the wild, one variant of [`Magnitude`] each.

use std::f64::consts::TAU;

use super::{Frequencies, check, plain};
use crate::shown::Shown;
use crate::{Error, Result};

/// YaRN and all of its settings.
///
/// ```
/// use phasor::frequencies::{Magnitude, Yarn};
/// let rope = Yarn::new(10_000.0, 16.0, 2048).frequencies(64)?;
/// assert!((rope.attention_factor() - 1.277_258_872).abs() < 1e-9);
///
/// // Some code multiplies YaRN's own magnitude by a number of its own.
/// let damped = Yarn { magnitude: Magnitude::Multiplier(0.707), ..Yarn::new(10_000.0, 16.0, 2048) };
/// assert!((damped.frequencies(64)?.attention_factor() - 0.903_022_023).abs() < 1e-9);
/// # Ok::<(), phasor::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Yarn {
    /// The base of the geometric series (`rope_theta`), above 1.
    pub base: f64,
    /// The extended context over the original one, above 0.
    pub factor: f64,
    /// The context in tokens that the model was trained on before it was extended.
    pub original_max_position_embeddings: u32,
    /// Pairs that turn more often than this within the original context keep their frequency; 32 by default.
    pub beta_fast: f64,
    /// Pairs that turn less often than this within the original context are divided by the factor; 1 by default.
    pub beta_slow: f64,
    /// Whether the ramp's ends are rounded outwards to whole pairs; true by default, false in gpt-oss.
    pub truncate: bool,
    /// How much of the ramp is used, 0 to 1: 1 by default, 0 makes every pair linear. ggml's `ext_factor`.
    pub extrapolation_factor: f64,
    /// Where the attention factor comes from.
    pub magnitude: Magnitude,
}

/// Where YaRN's attention factor comes from. `mscale(s, k)` is `0.1 k ln s + 1` for `s > 1`, else 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Magnitude {
    /// `mscale(factor, 1)`, the paper's.
    #[default]
    Default,
    /// This very number: `attention_factor` in a Hugging Face config.
    Explicit(f64),
    /// `mscale(factor, 1)` times this number: `attn_factor` in vLLM and jquesnelle/yarn.
    ///
    /// Code that computes `m * (0.1 ln s + 1)` without a clamp agrees with this for every `s >= 1`. For a factor below
    /// 1, where YaRN shrinks the context, it does not: state the number with [`Magnitude::Explicit`] there.
    Multiplier(f64),
    /// `mscale(factor, mscale) / mscale(factor, mscale_all_dim)`, DeepSeek's: exactly 1 where the two are equal.
    ///
    /// DeepSeek corrects the softmax scale as well: it multiplies it by `mscale(factor, mscale_all_dim)` squared.
    MscalePair {
        /// The weight of `ln s` in the numerator.
        mscale: f64,
        /// The weight of `ln s` in the denominator.
        mscale_all_dim: f64,
    },
}

impl Yarn {
    /// YaRN with the paper's settings for all that a config usually leaves out.
    #[must_use]
    pub fn new(base: f64, factor: f64, original_max_position_embeddings: u32) -> Self {
        Self {
            base,
            factor,
            original_max_position_embeddings,
            beta_fast: 32.0,
            beta_slow: 1.0,
            truncate: true,
            extrapolation_factor: 1.0,
            magnitude: Magnitude::Default,
        }
    }

    /// The frequencies of `rotary_dim / 2` pairs.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming the field; also for a ramp that would run backwards, which happens
    /// where the original context is shorter than about one turn of the fastest pair and on which implementations
    /// disagree.
    pub fn frequencies(&self, rotary_dim: u32) -> Result<Frequencies> {
        let (low, high) = self.ramp(rotary_dim)?;
        let factor = check::positive("factor", self.factor)?;
        if !(0.0..=1.0).contains(&self.extrapolation_factor) {
            return Err(Error::setting("extrapolation_factor", self.extrapolation_factor, "a number from 0 to 1"));
        }
        let blend = |(i, w): (u32, f64)| {
            let ramp = ((f64::from(i) - low) / (high - low)).clamp(0.0, 1.0);
            let kept = (1.0 - ramp) * self.extrapolation_factor;
            w / factor * (1.0 - kept) + w * kept
        };
        let inv_freq = (0..).zip(plain::series(self.base, rotary_dim)?).map(blend).collect();
        Frequencies::new(inv_freq, self.attention_factor()?)
    }

    /// The factor on cosine and sine.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) if a number of [`Magnitude`] is impossible.
    pub fn attention_factor(&self) -> Result<f64> {
        let factor = check::positive("factor", self.factor)?;
        match self.magnitude {
            Magnitude::Default => Ok(mscale(factor, 1.0)),
            Magnitude::Explicit(number) => check::positive("attention_factor", number),
            Magnitude::Multiplier(number) => Ok(check::positive("attn_factor", number)? * mscale(factor, 1.0)),
            Magnitude::MscalePair { mscale: over, mscale_all_dim: under } => {
                let over = mscale(factor, check::positive("mscale", over)?);
                Ok(over / mscale(factor, check::positive("mscale_all_dim", under)?))
            }
        }
    }

    /// The pair indices, not necessarily whole, at which the ramp begins and ends; the end lies above the beginning.
    fn ramp(&self, rotary_dim: u32) -> Result<(f64, f64)> {
        let last = f64::from(2 * check::pairs(rotary_dim)? - 1);
        let fast = check::positive("beta_fast", self.beta_fast)?;
        let slow = check::positive("beta_slow", self.beta_slow)?;
        if fast < slow {
            return Err(Error::setting("beta_fast", fast, format!("at least beta_slow, which is {}", slow.shown())));
        }
        let (low, high) = (self.pair_turning(fast, rotary_dim)?, self.pair_turning(slow, rotary_dim)?);
        let (low, high) = if self.truncate { (low.floor(), high.ceil()) } else { (low, high) };
        let (low, high) = (low.max(0.0), high.min(last));
        if high < low {
            let may_be = format!(
                "long enough that YaRN's ramp does not run backwards, here from pair {} to pair {}",
                low.shown(),
                high.shown()
            );
            let context = self.original_max_position_embeddings;
            return Err(Error::setting("original_max_position_embeddings", context, may_be));
        }
        // transformers adds this where the two meet, so that the ramp is a step and not 0/0.
        Ok((low, if low == high { high + 0.001 } else { high }))
    }

    /// The pair, as a real number, that turns `turns` times within the original context.
    fn pair_turning(&self, turns: f64, rotary_dim: u32) -> Result<f64> {
        let base = check::base(self.base)?;
        let context = check::tokens("original_max_position_embeddings", self.original_max_position_embeddings)?;
        Ok(f64::from(rotary_dim) * (context / (TAU * turns)).ln() / (2.0 * base.ln()))
    }
}

/// YaRN's magnitude for a context extended `factor` times: `0.1 weight ln factor + 1`, or 1 where nothing is extended.
///
/// DeepSeek multiplies the softmax scale, over rotated and other channels alike, by the square of
/// `mscale(factor, mscale_all_dim)`.
///
/// ```
/// let multiplier = phasor::frequencies::mscale(40.0, 1.0).powi(2);
/// assert!((multiplier - 1.873_85).abs() < 1e-5);
/// ```
#[must_use]
pub fn mscale(factor: f64, weight: f64) -> f64 {
    if factor <= 1.0 { 1.0 } else { 0.1 * weight * factor.ln() + 1.0 }
}
