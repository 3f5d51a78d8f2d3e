//! From the keys of a rope's settings to a [`Law`].

use super::notes::Notes;
use super::object::Object;
use crate::frequencies::{
    Axial, DynamicNtk, FixedNtk, Law, Linear, Llama3, LongRope, Magnitude, NtkAware, Plain, Proportional, Yarn,
};
use crate::shown::Shown;
use crate::{Error, Result};

/// The types that can be read, for the error about any other.
const KNOWN: &str = "one of default, linear, dynamic, yarn, longrope, llama3, proportional, axial, ntk, ntk_alpha";

/// What a law may need from outside of the rope's own settings.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Around {
    /// The base.
    pub base: f64,
    /// The share of channels that turn, for the laws that leave the others standing within the rotation.
    pub partial_rotary_factor: f64,
    /// The longest sequence that the model allows.
    pub max_position_embeddings: Option<u32>,
    /// The original context, where the file has it beside the rope's settings; it wins over the one within.
    pub original_max_position_embeddings: Option<u32>,
    /// Whether `yarn` means LongRoPE.
    pub calls_longrope_yarn: bool,
}

/// The law that `rope` describes.
pub(super) fn law(rope: &Object, around: Around, notes: &mut Notes) -> Result<Law> {
    let base = around.base;
    // Written by tools for people; no law depends on them.
    rope.pass_over(&["finetuned", "max_position_embeddings"]);
    let rope_type = rope_type(rope, around, notes)?;
    if !matches!(rope_type, "yarn" | "longrope" | "llama3") {
        rope.pass_over(&["original_max_position_embeddings"]);
    }
    match rope_type {
        "default" => Ok(Plain::new(base).into()),
        "axial" => Ok(Axial::new(base).into()),
        "linear" => Ok(Linear::new(base, required(rope, "factor", notes)?).into()),
        "ntk_alpha" => {
            // HunYuan's files carry YaRN's keys along.
            rope.pass_over(&["factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"]);
            Ok(NtkAware::new(base, required(rope, "alpha", notes)?).into())
        }
        "ntk" => fixed_ntk(rope, base, notes),
        "dynamic" => dynamic_ntk(rope, around, notes),
        "yarn" => yarn(rope, around, notes),
        "longrope" => longrope(rope, around, notes),
        "llama3" => llama3(rope, around, notes),
        "proportional" => proportional(rope, around, notes),
        unknown => {
            let key = if rope.get("rope_type").is_some() { "rope_type" } else { "type" };
            Err(Error::setting(rope.path(key), format!("\"{unknown}\""), KNOWN))
        }
    }
}

/// The type under its canonical name. Both keys at once are common, and `rope_type` wins.
fn rope_type<'a>(rope: &Object<'a>, around: Around, notes: &mut Notes) -> Result<&'a str> {
    let (new, legacy) = (rope.word("rope_type")?, rope.word("type")?);
    let given = match new.or(legacy) {
        Some(given) => notes.source("rope_type", given, rope.path(if new.is_some() { "rope_type" } else { "type" })),
        None => notes.source("rope_type", "default", "the default"),
    };
    let differs = |legacy| canonical(given, rope, around) != canonical(legacy, rope, around);
    if let Some(legacy) = legacy.filter(|&legacy| differs(legacy)) {
        notes.warn(format!("{} is \"{legacy}\", but \"{given}\" holds", rope.path("type")));
    }
    Ok(canonical(given, rope, around))
}

fn canonical<'a>(name: &'a str, rope: &Object, around: Around) -> &'a str {
    match name {
        "mrope" => "default",
        "su" => "longrope",
        "yarn" if around.calls_longrope_yarn => "longrope",
        "deepseek_yarn" | "deepseek_llama_scaling" | "telechat3-yarn" => "yarn",
        "dynamic" if !matches!(rope.number("alpha"), Ok(None | Some(0.0))) => "ntk_alpha",
        other => other,
    }
}

fn fixed_ntk(rope: &Object, base: f64, notes: &mut Notes) -> Result<Law> {
    let mut law = FixedNtk::new(base, required(rope, "factor", notes)?);
    law.mixed_b = optional(rope, "mixed_b", notes)?.unwrap_or(law.mixed_b);
    Ok(law.into())
}

fn dynamic_ntk(rope: &Object, around: Around, notes: &mut Notes) -> Result<Law> {
    let context = around
        .max_position_embeddings
        .ok_or_else(|| rope.missing("max_position_embeddings", "the context up to which nothing is scaled"))?;
    Ok(DynamicNtk::new(around.base, required(rope, "factor", notes)?, context).into())
}

fn yarn(rope: &Object, around: Around, notes: &mut Notes) -> Result<Law> {
    let original = original_context(rope, around, notes)?;
    let mut yarn = Yarn::new(around.base, factor_or_ratio(rope, around, original, notes)?, original);
    yarn.magnitude = magnitude(rope, notes)?;
    yarn.beta_fast = nonzero(rope, "beta_fast", notes)?.unwrap_or(yarn.beta_fast);
    yarn.beta_slow = nonzero(rope, "beta_slow", notes)?.unwrap_or(yarn.beta_slow);
    if let Some(truncate) = rope.flag("truncate")? {
        yarn.truncate = notes.source("truncate", truncate, rope.path("truncate"));
    }
    if let Some(share) = rope.share("extrapolation_factor")? {
        yarn.extrapolation_factor = notes.source("extrapolation_factor", share, rope.path("extrapolation_factor"));
    }
    Ok(yarn.into())
}

/// An explicit `attention_factor` wins over DeepSeek's pair, which wins over the multiplier.
fn magnitude(rope: &Object, notes: &mut Notes) -> Result<Magnitude> {
    let explicit = optional(rope, "attention_factor", notes)?;
    let multiplier = optional(rope, "attn_factor", notes)?;
    let pair = (nonzero(rope, "mscale", notes)?, nonzero(rope, "mscale_all_dim", notes)?);
    for key in ["apply_yarn_scaling", "apply_scale"] {
        if rope.flag(key)? == Some(false) {
            notes.source("attention_factor", 1.0, format!("{} is false", rope.path(key)));
            return Ok(Magnitude::Explicit(1.0));
        }
    }
    Ok(match (explicit, pair, multiplier) {
        (Some(number), ..) => Magnitude::Explicit(number),
        (None, (Some(mscale), Some(mscale_all_dim)), _) => Magnitude::MscalePair { mscale, mscale_all_dim },
        (None, _, Some(number)) => Magnitude::Multiplier(number),
        (None, _, None) => Magnitude::Default,
    })
}

fn longrope(rope: &Object, around: Around, notes: &mut Notes) -> Result<Law> {
    let original = original_context(rope, around, notes)?;
    let mut list = |key| {
        let list = rope.positives(key)?.ok_or_else(|| rope.missing(key, "a list of one divisor for each pair"))?;
        notes.source(key, format!("a list of {}", list.len()), rope.path(key));
        Ok(list)
    };
    let (short, long) = (list("short_factor")?, list("long_factor")?);
    let factor = match optional(rope, "factor", notes)? {
        Some(factor) => factor,
        None => context_ratio(rope, around, original, notes)?,
    };
    let mut law = LongRope::new(around.base, short, long, original, factor);
    law.attention_factor = optional(rope, "attention_factor", notes)?;
    law.short_mscale = optional(rope, "short_mscale", notes)?;
    law.long_mscale = optional(rope, "long_mscale", notes)?;
    Ok(law.into())
}

fn llama3(rope: &Object, around: Around, notes: &mut Notes) -> Result<Law> {
    let law = Llama3 {
        base: around.base,
        factor: required(rope, "factor", notes)?,
        low_freq_factor: required(rope, "low_freq_factor", notes)?,
        high_freq_factor: required(rope, "high_freq_factor", notes)?,
        original_max_position_embeddings: original_context(rope, around, notes)?,
    };
    Ok(law.into())
}

fn proportional(rope: &Object, around: Around, notes: &mut Notes) -> Result<Law> {
    let mut law = Proportional::new(around.base, around.partial_rotary_factor);
    law.factor = optional(rope, "factor", notes)?.unwrap_or(law.factor);
    Ok(law.into())
}

/// The context before it was extended: beside the rope's settings, within them, or else the longest sequence.
fn original_context(rope: &Object, around: Around, notes: &mut Notes) -> Result<u32> {
    const KEY: &str = "original_max_position_embeddings";
    let within = rope.count(KEY)?;
    if let Some(beside) = around.original_max_position_embeddings {
        if within.is_some_and(|within| within != beside) {
            notes.warn(format!("{} differs from {KEY} beside it, {beside}, which holds", rope.path(KEY)));
        }
        return Ok(notes.source(KEY, beside, KEY));
    }
    if let Some(within) = within {
        return Ok(notes.source(KEY, within, rope.path(KEY)));
    }
    let longest =
        around.max_position_embeddings.ok_or_else(|| rope.missing(KEY, "the context before it was extended"))?;
    notes.warn(format!("{} is missing: max_position_embeddings, {longest}, is taken for it", rope.path(KEY)));
    Ok(notes.source(KEY, longest, "max_position_embeddings"))
}

/// The factor; where the file says `null`, the contexts' ratio. A factor that is there wins over the ratio.
fn factor_or_ratio(rope: &Object, around: Around, original: u32, notes: &mut Notes) -> Result<f64> {
    if rope.is_null("factor") {
        rope.pass_over(&["factor"]);
        return context_ratio(rope, around, original, notes);
    }
    let factor = required(rope, "factor", notes)?;
    if let Some(longest) = around.max_position_embeddings {
        let ratio = f64::from(longest) / f64::from(original);
        if ratio != factor && ratio != 1.0 {
            notes.warn(format!(
                "{} is {}, but {longest} tokens over {original} are {}: the factor holds",
                rope.path("factor"),
                factor.shown(),
                ratio.shown()
            ));
        }
    }
    Ok(factor)
}

fn context_ratio(rope: &Object, around: Around, original: u32, notes: &mut Notes) -> Result<f64> {
    let longest =
        around.max_position_embeddings.ok_or_else(|| rope.missing("factor", "a number, or max_position_embeddings"))?;
    let ratio = f64::from(longest) / f64::from(original);
    Ok(notes.source("factor", ratio, "max_position_embeddings / original_max_position_embeddings"))
}

/// How many channels turn, given the share of them. Proportional rotation pairs the whole head and leaves pairs standing.
pub(super) fn rotary_dim(law: &Law, head_dim: u32, share: f64) -> u32 {
    match law {
        Law::Proportional(_) => head_dim,
        _ => (f64::from(head_dim) * share) as u32,
    }
}

fn required(rope: &Object, key: &str, notes: &mut Notes) -> Result<f64> {
    optional(rope, key, notes)?.ok_or_else(|| rope.missing(key, "a finite number above 0"))
}

fn optional(rope: &Object, key: &str, notes: &mut Notes) -> Result<Option<f64>> {
    Ok(rope.positive(key)?.map(|number| notes.source(key, number, rope.path(key))))
}

/// A number of which 0 means that the default holds, as transformers reads it.
pub(super) fn nonzero(rope: &Object, key: &str, notes: &mut Notes) -> Result<Option<f64>> {
    if rope.number(key)? == Some(0.0) {
        notes.warn(format!("{} is 0, which is read as absent", rope.path(key)));
        return Ok(None);
    }
    optional(rope, key, notes)
}
