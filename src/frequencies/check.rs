//! The checks that the laws share: each an error that names the field, in the words of Hugging Face's configs.

use crate::{Error, Result};

/// More channels than any head has; it keeps a wrong number in a file from asking for gigabytes.
const MAX_ROTARY_DIM: u32 = 1 << 16;

/// How many pairs `rotary_dim` channels make.
pub(crate) fn pairs(rotary_dim: u32) -> Result<u32> {
    if rotary_dim == 0 || !rotary_dim.is_multiple_of(2) || rotary_dim > MAX_ROTARY_DIM {
        return Err(Error::setting("rotary_dim", rotary_dim, format!("an even number from 2 to {MAX_ROTARY_DIM}")));
    }
    Ok(rotary_dim / 2)
}

/// A base of which the powers fall: finite and above 1.
pub(super) fn base(base: f64) -> Result<f64> {
    if base.is_finite() && base > 1.0 {
        return Ok(base);
    }
    Err(Error::setting("base", base, "a finite number above 1"))
}

/// A number that divides or scales: finite and above 0.
pub(super) fn positive(field: &str, value: f64) -> Result<f64> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(Error::setting(field, value, "a finite number above 0"))
}

/// A context length in tokens: at least 1.
pub(super) fn tokens(field: &str, value: u32) -> Result<f64> {
    if value > 0 {
        return Ok(f64::from(value));
    }
    Err(Error::setting(field, value, "a number of tokens, at least 1"))
}
