//! What a scaling law does to each pair, measured against the same base without scaling.

use super::law;
use phasor::Result;
use phasor::frequencies::{Frequencies, Law, Plain};
use serde::Serialize;
use std::f64::consts::TAU;

/// How far two numbers may be apart that are the same but for rounding: some ulps of the powers they come from.
const ROUNDING: f64 = 1e-12;

/// What becomes of some pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// As fast as without scaling.
    Unchanged,
    /// Divided by something between 1 and what the law divides the slowest pairs by.
    Between,
    /// Divided by all of that.
    Divided,
    /// Not turning at all.
    Still,
}

/// Pairs of one fate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Band {
    /// What becomes of them.
    pub fate: Fate,
    /// The pairs, counted from 0.
    pub pairs: Vec<usize>,
    /// The least and the greatest number that a frequency is divided by; none if the pairs stand still.
    pub divided_by: Option<[f64; 2]>,
}

/// A law at one length of the sequence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scaling {
    /// Where this holds, in words.
    pub holds: String,
    /// The length of the sequence, in tokens.
    pub seq_len: u32,
    /// The pairs by what becomes of them.
    pub bands: Vec<Band>,
    /// The factor on cosine and sine.
    pub attention_factor: f64,
    /// In how many tokens the slowest pair that turns makes a turn.
    pub longest_wavelength: Option<f64>,
    /// The same without scaling.
    pub longest_wavelength_unscaled: Option<f64>,
}

impl Scaling {
    /// What the law does for a sequence of so many tokens.
    ///
    /// # Errors
    /// Those of the law.
    pub fn of(law: &Law, rotary_dim: u32, seq_len: u32, holds: String) -> Result<Self> {
        let scaled = law.frequencies_at(rotary_dim, seq_len)?;
        let plain = match law::base(law) {
            Some(base) => Plain::new(base).frequencies(rotary_dim)?,
            None => scaled.clone(),
        };
        let divisors: Vec<_> = plain.inv_freq().iter().zip(scaled.inv_freq()).map(|(p, w)| p / w).collect();
        Ok(Self {
            holds,
            seq_len,
            bands: bands(&divisors, law::divisor(law, seq_len)),
            attention_factor: scaled.attention_factor(),
            longest_wavelength: longest(&scaled),
            longest_wavelength_unscaled: longest(&plain),
        })
    }

    /// Whether every pair is as without scaling.
    #[must_use]
    pub fn changes_nothing(&self) -> bool {
        self.bands.iter().all(|band| band.fate == Fate::Unchanged)
    }
}

fn longest(frequencies: &Frequencies) -> Option<f64> {
    let turning = frequencies.inv_freq().iter().map(|w| w.abs()).filter(|&w| w > 0.0);
    turning.reduce(f64::min).map(|slowest| TAU / slowest)
}

fn bands(divisors: &[f64], most: Option<f64>) -> Vec<Band> {
    let near = |a: f64, b: f64| (a / b - 1.0).abs() <= ROUNDING;
    let fate = |divisor: f64| match most {
        _ if !divisor.is_finite() => Fate::Still,
        _ if near(divisor, 1.0) => Fate::Unchanged,
        Some(most) if near(divisor, most) => Fate::Divided,
        _ => Fate::Between,
    };
    [Fate::Unchanged, Fate::Between, Fate::Divided, Fate::Still]
        .into_iter()
        .filter_map(|of| {
            let pairs: Vec<_> = (0..divisors.len()).filter(|&i| fate(divisors[i]) == of).collect();
            let range = pairs.iter().map(|&i| [divisors[i], divisors[i]]);
            let range = range.reduce(|[a, b], [c, d]| [a.min(c), b.max(d)])?;
            Some(Band { fate: of, pairs, divided_by: (of != Fate::Still).then_some(range) })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use phasor::frequencies::{Linear, Llama3, NtkAware, Proportional};

    fn counts(law: impl Into<Law>) -> Vec<(Fate, usize)> {
        let scaling = Scaling::of(&law.into(), 128, 0, String::new()).unwrap();
        scaling.bands.iter().map(|band| (band.fate, band.pairs.len())).collect()
    }

    #[test]
    fn each_pair_has_its_fate() {
        assert_eq!(counts(Plain::new(1e4)), [(Fate::Unchanged, 64)]);
        assert_eq!(counts(Linear::new(1e4, 8.0)), [(Fate::Divided, 64)]);
        assert_eq!(counts(Linear::new(1e4, 1.0)), [(Fate::Unchanged, 64)]);
        // The first pair of the NTK series is 1 whatever the base, the last is divided by alpha.
        assert_eq!(counts(NtkAware::new(1e4, 16.0)), [(Fate::Unchanged, 1), (Fate::Between, 62), (Fate::Divided, 1)]);
        assert_eq!(counts(Proportional::new(1e6, 0.25)), [(Fate::Unchanged, 16), (Fate::Still, 48)]);
        // 2 pi 5e5^(i/64) lies below 8192 / 4 up to i = 28 and above 8192 from i = 35 on.
        let llama = counts(Llama3::new(5e5, 8.0, 8192));
        assert_eq!(llama, [(Fate::Unchanged, 29), (Fate::Between, 6), (Fate::Divided, 29)]);
    }

    #[test]
    fn the_longest_wavelength_is_that_of_the_last_pair() {
        let scaling = Scaling::of(&Linear::new(1e4, 8.0).into(), 128, 0, String::new()).unwrap();
        let plain = TAU * 1e4f64.powf(126.0 / 128.0);
        assert!((scaling.longest_wavelength_unscaled.unwrap() / plain - 1.0).abs() < ROUNDING);
        assert!((scaling.longest_wavelength.unwrap() / plain - 8.0).abs() < 8.0 * ROUNDING);
    }
}
