//! The numbers of result files, checked once, where they are read: what they are drawn and told by need not ask again.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::ops::RangeInclusive;

/// What times in seconds, ratios and rates in billions may be: wider than any device gives, and narrow enough that a
/// logarithmic scale over all of it has some hundred marks.
const PLAUSIBLE: RangeInclusive<f64> = 1e-12..=1e15;

/// No work grows with such a power of its length.
const LARGEST_POWER: f64 = 100.0;

/// A time, ratio or rate; `None` for 0, which a coarse clock gives for what is shorter than its step, and for null, which is
/// how JSON has what is divided by that.
pub fn amount<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    match Option::deserialize(from)? {
        None | Some(0.0) => Ok(None),
        Some(x) if PLAUSIBLE.contains(&x) => Ok(Some(x)),
        Some(x) => {
            let (least, most) = (PLAUSIBLE.start(), PLAUSIBLE.end());
            Err(D::Error::custom(format!("was {x:?}, may be from {least:e} to {most:e}, 0 or null")))
        }
    }
}

/// A power of a length; `None` for null, which is how JSON has what could not be fitted.
pub fn power<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    match Option::<f64>::deserialize(from)? {
        Some(x) if x.abs() > LARGEST_POWER => {
            Err(D::Error::custom(format!("was {x:?}, may be from -{LARGEST_POWER} to {LARGEST_POWER}, or null")))
        }
        power => Ok(power),
    }
}
