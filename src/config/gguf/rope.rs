//! The rope of one kind of layer.

use super::File;
use super::architectures::{self, Rotation};
use super::kinds::Kind;
use crate::config::LayerRope;
use crate::config::notes::Notes;
use crate::frequencies::{Axes, Divided, Law, Linear, LongRope, Magnitude, NtkAware, Plain, QueryScale, Yarn, mscale};
use crate::{Error, Pairing, Result, Rotary};

/// The base where a file has none.
const BASE: f64 = 10_000.0;

/// How the frequencies of a kind of layer are scaled.
#[derive(Debug, Clone, Copy)]
struct Scaling {
    base: f64,
    factor: f64,
    yarn: bool,
    attention_factor: f64,
}

impl File<'_> {
    /// The rope of a kind of layer.
    pub(super) fn layer(&self, kind: Kind, notes: &mut Notes) -> Result<LayerRope> {
        notes.source("rotates", kind.rotates, "llama.cpp's code for the architecture");
        let (head_dim, rotary) = self.rotary(kind, notes)?;
        let scaling = self.scaling(kind, notes)?;
        let law = self.law(kind, scaling, rotary, notes)?;
        law.frequencies(rotary.dim()).map_err(|error| self.locate(error))?;
        let window = |window| if window { "sliding_attention" } else { "full_attention" };
        Ok(LayerRope {
            layer_type: kind.window.map(window).map(str::to_owned),
            rotates: kind.rotates,
            pairing: self.pairing(notes)?,
            head_dim,
            rotary,
            axes: self.axes(rotary, notes)?,
            softmax_scale_multiplier: self.softmax_scale_multiplier(scaling, notes)?,
            query_scale: self.query_scale(kind, notes)?,
            law,
            sources: std::mem::take(&mut notes.sources),
        })
    }

    /// An error that a law gave, its field named by the file's key.
    fn locate(&self, error: Error) -> Error {
        error.about(|field| match field {
            "alpha" => self.keys.path("rope.scaling.alpha"),
            "attention_factor" => self.keys.path("rope.scaling.attn_factor"),
            "beta_fast" => self.keys.path("rope.scaling.yarn_beta_fast"),
            "beta_slow" => self.keys.path("rope.scaling.yarn_beta_slow"),
            "extrapolation_factor" => self.keys.path("rope.scaling.yarn_ext_factor"),
            "original_max_position_embeddings" => self.keys.path("rope.scaling.original_context_length"),
            _ => field.into(),
        })
    }

    /// The channels of the tensor that is rotated, and which of them turn.
    fn rotary(&self, kind: Kind, notes: &mut Notes) -> Result<(u32, Rotary)> {
        let keys = self.keys;
        let (whole, from) = match self.count_for(kind, "attention.key_length_swa", "attention.key_length")? {
            Some((length, key)) => (length, keys.path(key)),
            None => {
                let (width, heads) = (keys.required_count("embedding_length")?, self.heads()?);
                (width / heads, "embedding_length / attention.head_count".to_owned())
            }
        };
        let dim = match self.count_for(kind, "rope.dimension_count_swa", "rope.dimension_count")? {
            Some((dim, key)) => notes.source("rotary_dim", dim, keys.path(key)),
            None => notes.source("rotary_dim", whole, "head_dim"),
        };
        let head_dim = if architectures::is_deepseek(self.architecture()) {
            notes.source("head_dim", dim, "rotary_dim: what turns with latent attention is a tensor of its own")
        } else {
            notes.source("head_dim", whole, from)
        };
        let offset = if self.architecture() == "deepseek4" { head_dim.saturating_sub(dim) } else { 0 };
        Ok((head_dim, Rotary::new(head_dim, dim, offset)?))
    }

    /// The number that layers with a sliding window have for themselves, or else the one of all; and its key.
    fn count_for(&self, kind: Kind, own: &'static str, shared: &'static str) -> Result<Option<(u32, &'static str)>> {
        if kind.has_window()
            && let Some(count) = self.keys.count(own)?
        {
            return Ok(Some((count, own)));
        }
        Ok(self.keys.count(shared)?.map(|count| (count, shared)))
    }

    /// The heads of the first layer: files may list one number for each.
    fn heads(&self) -> Result<u32> {
        const KEY: &str = "attention.head_count";
        let first = self.keys.list(KEY)?.and_then(|heads| heads.first().copied()).map(|heads| heads as u32);
        let heads = match first {
            Some(heads) => heads,
            None => self.keys.required_count(KEY)?,
        };
        if heads == 0 { Err(Error::setting(self.keys.path(KEY), heads, "at least 1")) } else { Ok(heads) }
    }

    fn scaling(&self, kind: Kind, notes: &mut Notes) -> Result<Scaling> {
        let base = self.base(kind, notes)?;
        if kind.has_window() && !architectures::windows_share_scale(self.architecture()) {
            notes.source("factor", 1.0, "layers with a sliding window are not scaled");
            return Ok(Scaling { base, factor: 1.0, yarn: false, attention_factor: 1.0 });
        }
        const TYPE: &str = "rope.scaling.type";
        let given = self.keys.word(TYPE)?;
        let from = if given.is_some() { self.keys.path(TYPE) } else { "the default".to_owned() };
        let name = notes.source("rope_type", given.unwrap_or_else(|| "linear".to_owned()), from);
        if !matches!(name.as_str(), "none" | "linear" | "longrope" | "yarn") {
            return Err(Error::setting(self.keys.path(TYPE), format!("{name:?}"), "none, linear, yarn or longrope"));
        }
        let factor = if name == "none" { notes.source("factor", 1.0, "a type of none") } else { self.factor(notes)? };
        let yarn = name == "yarn";
        Ok(Scaling { base, factor, yarn, attention_factor: self.attention_factor(yarn, factor, notes)? })
    }

    fn base(&self, kind: Kind, notes: &mut Notes) -> Result<f64> {
        const OWN: &str = "rope.freq_base_swa";
        const SHARED: &str = "rope.freq_base";
        let own = self.keys.number(OWN)?.filter(|_| kind.has_window()).map(|base| (base, OWN));
        let shared = self.keys.number(SHARED)?.map(|base| (base, SHARED));
        let shares = !kind.has_window() || architectures::windows_share_base(self.architecture());
        match own.or(shared.filter(|_| shares)) {
            Some((base, key)) if base > 1.0 => Ok(notes.source("rope_theta", base, self.keys.path(key))),
            Some((base, key)) => Err(Error::setting(self.keys.path(key), base, "a finite number above 1")),
            None => Ok(notes.source("rope_theta", BASE, "the default")),
        }
    }

    /// The factor, under its new or its old name. 0 means that there is none.
    fn factor(&self, notes: &mut Notes) -> Result<f64> {
        const NEW: &str = "rope.scaling.factor";
        const OLD: &str = "rope.scale_linear";
        let new = self.keys.number(NEW)?.map(|factor| (factor, NEW));
        let given = new.or(self.keys.number(OLD)?.map(|factor| (factor, OLD)));
        match given.filter(|&(factor, _)| factor != 0.0) {
            Some((factor, key)) if factor > 0.0 => Ok(notes.source("factor", factor, self.keys.path(key))),
            Some((factor, key)) => Err(Error::setting(self.keys.path(key), factor, "a number above 0, or 0 for none")),
            None => Ok(notes.source("factor", 1.0, "the default")),
        }
    }

    /// What is left of llama.cpp's `yarn_attn_factor` once its kernel has multiplied by YaRN's magnitude again.
    fn attention_factor(&self, yarn: bool, factor: f64, notes: &mut Notes) -> Result<f64> {
        let multiplier = self.keys.number("rope.scaling.attn_factor")?.unwrap_or(1.0);
        let own = match (yarn, self.log_multiplier()?) {
            (false, _) => 1.0,
            (true, 0.0) => mscale(factor, 1.0),
            // DeepSeek V2's two weights are equal, and only one of them is in the file.
            (true, weight) if self.architecture() == "deepseek2" && weight != 1.0 => 1.0,
            (true, weight) => mscale(factor, 1.0) / mscale(factor, weight),
        };
        Ok(notes.source("attention_factor", own * multiplier, "YaRN's magnitude and rope.scaling.attn_factor"))
    }

    /// DeepSeek's `mscale_all_dim`; 0 where the file has none.
    fn log_multiplier(&self) -> Result<f64> {
        let Some(unit) = architectures::log_multiplier_unit(self.architecture()) else { return Ok(0.0) };
        Ok(self.keys.number("rope.scaling.yarn_log_multiplier")?.unwrap_or(0.0) / unit)
    }

    fn law(&self, kind: Kind, scaling: Scaling, rotary: Rotary, notes: &mut Notes) -> Result<Law> {
        let pairs = rotary.pairs() as usize;
        let spared = kind.has_window() && architectures::divisors_spare_windows(self.architecture());
        if let Some(divisors) = self.tensors.freqs.filter(|_| !spared) {
            notes.source("divisors", format!("a list of {}", divisors.len()), "rope_freqs.weight");
            return Ok(Divided::new(self.scaled(scaling, notes)?, first(divisors, pairs)).into());
        }
        match (self.tensors.factors_short, self.tensors.factors_long) {
            (Some(short), Some(long)) if !scaling.yarn => self.longrope(scaling, short, long, pairs, notes),
            (None, None) => self.scaled(scaling, notes),
            (Some(_), Some(_)) => {
                let may_be = "longrope or linear beside rope_factors_short and rope_factors_long";
                Err(Error::setting(self.keys.path("rope.scaling.type"), "yarn", may_be))
            }
            (Some(_), None) => Err(Error::setting("rope_factors_long.weight", "missing", "there, like its short twin")),
            (None, Some(_)) => Err(Error::setting("rope_factors_short.weight", "missing", "there, like its long twin")),
        }
    }

    fn scaled(&self, scaling: Scaling, notes: &mut Notes) -> Result<Law> {
        let Scaling { base, factor, yarn, attention_factor } = scaling;
        if yarn {
            let mut law = Yarn::new(base, factor, self.original_context(notes)?);
            law.magnitude = Magnitude::Explicit(attention_factor);
            let mut given = |setting: &str, key: &str, least: f64| -> Result<Option<f64>> {
                let number = self.keys.number(key)?.filter(|&number| number >= least);
                Ok(number.map(|number| notes.source(setting, number, self.keys.path(key))))
            };
            if architectures::reads_betas(self.architecture()) {
                let any = f64::NEG_INFINITY;
                law.beta_fast = given("beta_fast", "rope.scaling.yarn_beta_fast", any)?.unwrap_or(law.beta_fast);
                law.beta_slow = given("beta_slow", "rope.scaling.yarn_beta_slow", any)?.unwrap_or(law.beta_slow);
            }
            if self.architecture() == "grok" {
                let share = given("extrapolation_factor", "rope.scaling.yarn_ext_factor", 0.0)?;
                law.extrapolation_factor = share.unwrap_or(law.extrapolation_factor);
            }
            return Ok(law.into());
        }
        if attention_factor != 1.0 {
            let may_be = "1 where neither YaRN nor LongRoPE is in use";
            return Err(Error::setting(self.keys.path("rope.scaling.attn_factor"), attention_factor, may_be));
        }
        let alpha = self.keys.number("rope.scaling.alpha")?.filter(|&alpha| alpha > 0.0);
        Ok(match alpha.filter(|_| self.architecture() == "hunyuan_vl") {
            Some(alpha) => {
                NtkAware::new(base, notes.source("alpha", alpha, self.keys.path("rope.scaling.alpha"))).into()
            }
            None if factor == 1.0 => Plain::new(base).into(),
            None => Linear::new(base, factor).into(),
        })
    }

    fn longrope(&self, scaling: Scaling, short: &[f32], long: &[f32], pairs: usize, notes: &mut Notes) -> Result<Law> {
        notes.source("short_factor", format!("a list of {}", short.len()), "rope_factors_short.weight");
        notes.source("long_factor", format!("a list of {}", long.len()), "rope_factors_long.weight");
        // Linear scaling would come on top; files with these lists have a factor of 1.
        let scaled = |divisors| first(divisors, pairs).into_iter().map(|divisor| divisor * scaling.factor).collect();
        let mut law = LongRope::new(scaling.base, scaled(short), scaled(long), self.original_context(notes)?, 1.0);
        law.attention_factor = Some(scaling.attention_factor);
        Ok(law.into())
    }

    fn original_context(&self, notes: &mut Notes) -> Result<u32> {
        const OWN: &str = "rope.scaling.original_context_length";
        const SHARED: &str = "context_length";
        let (context, key) = match self.keys.count(OWN)? {
            Some(context) => (context, OWN),
            None => (self.keys.required_count(SHARED)?, SHARED),
        };
        Ok(notes.source("original_max_position_embeddings", context, self.keys.path(key)))
    }

    fn sections(&self) -> Result<Option<Vec<u32>>> {
        const KEY: &str = "rope.dimension_sections";
        let Some(listed) = self.keys.list(KEY)? else { return Ok(None) };
        if let Some(bad) = listed.iter().find(|&&n| n.fract() != 0.0 || !(0.0..65_536.0).contains(&n)) {
            return Err(Error::setting(self.keys.path(KEY), bad, "whole numbers of pairs"));
        }
        Ok(Some(listed.into_iter().map(|n| n as u32).collect()).filter(|list: &Vec<u32>| list.iter().any(|&n| n > 0)))
    }

    fn pairing(&self, notes: &mut Notes) -> Result<Pairing> {
        let pairing = match self.rotation {
            Rotation::Interleaved => Pairing::Interleaved,
            Rotation::SectionsOrInterleaved if self.sections()?.is_none() => Pairing::Interleaved,
            _ => Pairing::HalfSplit,
        };
        Ok(notes.source("pairing", pairing, "llama.cpp's table of architectures"))
    }

    fn axes(&self, rotary: Rotary, notes: &mut Notes) -> Result<Axes> {
        let pairs = rotary.pairs() as usize;
        let by_turns = match self.rotation {
            Rotation::None | Rotation::Interleaved | Rotation::HalfSplit => return Ok(Axes::one(pairs)),
            Rotation::InterleavedSections => true,
            Rotation::Sections | Rotation::SectionsOrInterleaved | Rotation::SectionsOrHalfSplit => false,
        };
        let Some(sections) = self.sections()? else { return Ok(Axes::one(pairs)) };
        notes.source("axes", format!("{sections:?}"), self.keys.path("rope.dimension_sections"));
        if by_turns { Axes::interleaved_ggml(&sections, pairs) } else { Axes::sections(&sections, pairs) }
    }

    fn softmax_scale_multiplier(&self, scaling: Scaling, notes: &mut Notes) -> Result<f64> {
        let weight = self.log_multiplier()?;
        if !architectures::is_deepseek(self.architecture()) || weight == 0.0 {
            return Ok(1.0);
        }
        let multiplier = mscale(scaling.factor, weight).powi(2);
        if !(multiplier.is_finite() && multiplier > 0.0) {
            let may_be = "a number that leaves the softmax scale finite and above 0";
            return Err(Error::setting(self.keys.path("rope.scaling.yarn_log_multiplier"), weight, may_be));
        }
        Ok(notes.source("softmax_scale_multiplier", multiplier, "mscale(factor, yarn_log_multiplier) squared"))
    }

    fn query_scale(&self, kind: Kind, notes: &mut Notes) -> Result<Option<QueryScale>> {
        if self.architecture() == "llama4" {
            return Ok((!kind.rotates).then_some(QueryScale { scale: 0.1, window: 8192, shift: 1 }));
        }
        let Some(scale) = self.keys.number("attention.temperature_scale")?.filter(|&scale| scale != 0.0) else {
            return Ok(None);
        };
        notes.source("query_scale", scale, self.keys.path("attention.temperature_scale"));
        let window = match self.keys.count("attention.temperature_length")? {
            Some(window) if architectures::is_deepseek(self.architecture()) => window,
            _ => self.original_context(notes)?,
        };
        Ok(Some(QueryScale { scale, window, shift: 0 }))
    }
}

/// The divisors of the pairs that turn; a tensor may have more, for layers where more turn.
fn first(divisors: &[f32], pairs: usize) -> Vec<f64> {
    divisors.iter().take(pairs).map(|&divisor| f64::from(divisor)).collect()
}
