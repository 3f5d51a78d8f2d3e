//! From the keys of a rope's settings to a [`Law`].

use super::notes::Notes;
use super::object::Object;
use crate::frequencies::{Law, Linear, Magnitude, NtkAware, Plain, Yarn};
use crate::{Error, Result};

/// What a law may need and a rope's own settings may leave out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around {
    /// The base.
    pub base: f64,
}

/// The law that `rope` describes, by its type's canonical name.
pub(super) fn law(rope: &Object, rope_type: &str, around: Around, notes: &mut Notes) -> Result<Law> {
    let base = around.base;
    match rope_type {
        "default" => Ok(Plain::new(base).into()),
        "linear" => Ok(Linear::new(base, required(rope, "factor", notes)?).into()),
        "ntk_alpha" => Ok(NtkAware::new(base, required(rope, "alpha", notes)?).into()),
        "yarn" => Ok(yarn(rope, base, notes)?.into()),
        unknown => {
            let key = if rope.get("rope_type").is_some() { "rope_type" } else { "type" };
            Err(Error::setting(rope.path(key), unknown, "one of default, linear, ntk_alpha, yarn"))
        }
    }
}

fn yarn(rope: &Object, base: f64, notes: &mut Notes) -> Result<Yarn> {
    let original = rope
        .count("original_max_position_embeddings")?
        .ok_or_else(|| rope.missing("original_max_position_embeddings", "the context before it was extended"))?;
    let mut yarn = Yarn::new(base, required(rope, "factor", notes)?, original);
    yarn.magnitude = magnitude(rope, notes)?;
    yarn.beta_fast = nonzero(rope, "beta_fast", notes)?.unwrap_or(yarn.beta_fast);
    yarn.beta_slow = nonzero(rope, "beta_slow", notes)?.unwrap_or(yarn.beta_slow);
    yarn.truncate = rope.flag("truncate")?.unwrap_or(yarn.truncate);
    yarn.extrapolation_factor = rope.number("extrapolation_factor")?.unwrap_or(yarn.extrapolation_factor);
    Ok(yarn)
}

/// An explicit `attention_factor` wins over DeepSeek's pair, which wins over the multiplier.
fn magnitude(rope: &Object, notes: &mut Notes) -> Result<Magnitude> {
    let explicit = optional(rope, "attention_factor", notes)?;
    let multiplier = optional(rope, "attn_factor", notes)?;
    let pair = (nonzero(rope, "mscale", notes)?, nonzero(rope, "mscale_all_dim", notes)?);
    Ok(match (explicit, pair, multiplier) {
        (Some(number), ..) => Magnitude::Explicit(number),
        (None, (Some(mscale), Some(mscale_all_dim)), _) => Magnitude::MscalePair { mscale, mscale_all_dim },
        (None, _, Some(number)) => Magnitude::Multiplier(number),
        (None, _, None) => Magnitude::Default,
    })
}

fn required(rope: &Object, key: &str, notes: &mut Notes) -> Result<f64> {
    optional(rope, key, notes)?.ok_or_else(|| rope.missing(key, "a finite number above 0"))
}

fn optional(rope: &Object, key: &str, notes: &mut Notes) -> Result<Option<f64>> {
    Ok(rope.positive(key)?.map(|number| notes.source(key, number, rope.path(key))))
}

/// A number of which 0 means that the default holds, as transformers reads it.
fn nonzero(rope: &Object, key: &str, notes: &mut Notes) -> Result<Option<f64>> {
    if rope.number(key)? == Some(0.0) {
        notes.warn(format!("{} is 0, which is read as absent", rope.path(key)));
        return Ok(None);
    }
    optional(rope, key, notes)
}
