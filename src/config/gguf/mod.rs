//! GGUF metadata: a rope for each layer, with the meaning that llama.cpp gives the keys at run time.
//!
//! Differences to the same model's `config.json` are the format's own: llama.cpp rounds YaRN's ramp to whole pairs, has
//! no dynamic scaling, and finds Llama 3's and LongRoPE's numbers in tensors instead of keys. Where llama.cpp decides
//! by the context size it was started with, phasor decides by the sequence length that is asked for.

mod architectures;
mod metadata;

use self::architectures::Rotation;
use self::metadata::Keys;
pub use self::metadata::{Metadata, MetadataValue};
use super::layer::{LayerRope, ModelRope, check_layers};
use super::notes::Notes;
use crate::frequencies::{Axes, Divided, Law, Linear, LongRope, Magnitude, NtkAware, Plain, QueryScale, Yarn, mscale};
use crate::{Error, Pairing, Result, Rotary};

/// The base where a file has none.
const BASE: f64 = 10_000.0;

/// The tensors that belong to a rope, as f32, where the file has them (also under `blk.N.`).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RopeTensors<'a> {
    /// `rope_freqs.weight`: a divisor for each pair. It wins over the other two.
    pub freqs: Option<&'a [f32]>,
    /// `rope_factors_long.weight`: a divisor for each pair, for sequences beyond the original context.
    pub factors_long: Option<&'a [f32]>,
    /// `rope_factors_short.weight`: a divisor for each pair, for sequences within the original context.
    pub factors_short: Option<&'a [f32]>,
}

impl ModelRope {
    /// Reads the metadata of a GGUF file.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use phasor::config::{MetadataValue, ModelRope, RopeTensors};
    ///
    /// let metadata: BTreeMap<String, MetadataValue> = [
    ///     ("general.architecture", MetadataValue::Text("llama".into())),
    ///     ("llama.block_count", MetadataValue::Number(16.0)),
    ///     ("llama.embedding_length", MetadataValue::Number(2048.0)),
    ///     ("llama.attention.head_count", MetadataValue::Number(32.0)),
    ///     ("llama.rope.freq_base", MetadataValue::Number(500_000.0)),
    /// ]
    /// .into_iter()
    /// .map(|(key, value)| (key.to_owned(), value))
    /// .collect();
    /// let model = ModelRope::from_gguf(&metadata, RopeTensors::default())?;
    /// assert_eq!(model.layer(0)?.pairing, phasor::Pairing::Interleaved);
    /// # Ok::<(), phasor::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Setting`] naming the key, its value, and what it may be; also for an architecture that llama.cpp does
    /// not know, since its pairing cannot be told.
    pub fn from_gguf(metadata: &dyn Metadata, tensors: RopeTensors<'_>) -> Result<Self> {
        let keys = Keys::new(metadata)?;
        let unknown = || Error::setting("general.architecture", keys.architecture(), "an architecture of llama.cpp");
        let rotation = architectures::rotation(keys.architecture()).ok_or_else(unknown)?;
        let file = File { keys: &keys, rotation, tensors };
        let kinds = file.kinds()?;
        let mut notes = Notes::default();
        let mut rope = Self::assemble(keys.architecture(), kinds, true, |kind| file.layer(*kind, &mut notes))?;
        rope.warnings = notes.warnings;
        Ok(rope)
    }
}

/// What tells the ropes of a model apart.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Kind {
    /// Whether the layer has a sliding window; `None` if none has.
    window: Option<bool>,
    rotates: bool,
}

impl Kind {
    fn has_window(self) -> bool {
        self.window == Some(true)
    }
}

struct File<'a> {
    keys: &'a Keys<'a>,
    rotation: Rotation,
    tensors: RopeTensors<'a>,
}

/// How the frequencies of a kind of layer are scaled.
#[derive(Debug, Clone, Copy)]
struct Scaling {
    base: f64,
    factor: f64,
    yarn: bool,
    attention_factor: f64,
}

impl File<'_> {
    fn architecture(&self) -> &str {
        self.keys.architecture()
    }

    fn kinds(&self) -> Result<Vec<Kind>> {
        let layers = self.keys.required_count("block_count")?;
        let layers = check_layers(self.keys.path("block_count"), layers)?;
        let windows = self.windows(layers)?;
        // Llama 4 without chunks, said by a window of 0, rotates everywhere.
        let unbroken = self.architecture() == "llama4" && self.keys.count("attention.sliding_window")? == Some(0);
        let nope = architectures::nope_period(self.architecture()).filter(|_| !unbroken);
        let pattern = self.keys.list("attention.rope_pattern")?;
        let dense = self.leading_dense_layers()?;
        let rotates = |i: u32, window: Option<bool>| match (self.rotation, window) {
            (Rotation::None, _) => false,
            _ if i < dense => true,
            (_, Some(false)) if architectures::only_windows_rotate(self.architecture()) => false,
            _ => match &pattern {
                Some(pattern) => pattern.get(i as usize) != Some(&0.0),
                None => nope.is_none_or(|period| !(i + 1).is_multiple_of(period)),
            },
        };
        let kind = |i: u32| {
            let window = windows.as_ref().map(|windows| windows.get(i as usize) == Some(&true));
            Kind { window, rotates: rotates(i, window) }
        };
        Ok((0..layers).map(kind).collect())
    }

    /// How many layers rotate whatever their window, because they come before the experts.
    fn leading_dense_layers(&self) -> Result<u32> {
        match self.architecture() {
            "cohere2moe" => Ok(self.keys.count("leading_dense_block_count")?.unwrap_or(0)),
            _ => Ok(0),
        }
    }

    /// For each layer whether it has a sliding window; `None` if none has.
    fn windows(&self, layers: u32) -> Result<Option<Vec<bool>>> {
        if self.keys.count("attention.sliding_window")?.is_none_or(|window| window == 0) {
            return Ok(None);
        }
        const PATTERN: &str = "attention.sliding_window_pattern";
        if let Some(listed) = self.keys.list(PATTERN)? {
            return Ok(Some(listed.into_iter().map(|has_window| has_window != 0.0).collect()));
        }
        let Some(mut order) = architectures::windows(self.architecture()) else { return Ok(None) };
        order.period = self.keys.count(PATTERN)?.unwrap_or(order.period).max(1);
        let full = |i: u32| match order.full_first {
            true => i.is_multiple_of(order.period),
            false => (i + 1).is_multiple_of(order.period),
        };
        Ok(Some((0..layers).map(|i| !full(i)).collect()))
    }

    fn layer(&self, kind: Kind, notes: &mut Notes) -> Result<LayerRope> {
        notes.source("rotates", kind.rotates, "llama.cpp's code for the architecture");
        let (head_dim, rotary) = self.rotary(kind, notes)?;
        let scaling = self.scaling(kind, notes)?;
        let law = self.law(kind, scaling, rotary, notes)?;
        law.frequencies(rotary.dim())?;
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

    /// The channels of the tensor that is rotated, and which of them turn.
    fn rotary(&self, kind: Kind, notes: &mut Notes) -> Result<(u32, Rotary)> {
        let keys = self.keys;
        let whole = match keys.count("attention.key_length")? {
            Some(length) => notes.source("head_dim", length, keys.path("attention.key_length")),
            None => {
                let (width, heads) = (keys.required_count("embedding_length")?, self.heads()?);
                notes.source("head_dim", width / heads, "embedding_length / attention.head_count")
            }
        };
        let whole = match keys.count("attention.key_length_swa")?.filter(|_| kind.has_window()) {
            Some(length) => notes.source("head_dim", length, keys.path("attention.key_length_swa")),
            None => whole,
        };
        let own = keys.count("rope.dimension_count_swa")?.filter(|_| kind.has_window());
        let dim = match own.or(keys.count("rope.dimension_count")?) {
            Some(dim) => notes.source("rotary_dim", dim, keys.path("rope.dimension_count")),
            None => notes.source("rotary_dim", whole, "head_dim"),
        };
        // What turns with latent attention is a tensor of its own.
        let head_dim = if architectures::is_deepseek(self.architecture()) { dim } else { whole };
        let offset = if self.architecture() == "deepseek4" { head_dim.saturating_sub(dim) } else { 0 };
        Ok((head_dim, Rotary::new(head_dim, dim, offset)?))
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
        let (keys, architecture) = (self.keys, self.architecture());
        let global = keys.number("rope.freq_base")?;
        let base = match keys.number("rope.freq_base_swa")?.filter(|_| kind.has_window()) {
            Some(own) => notes.source("rope_theta", own, keys.path("rope.freq_base_swa")),
            None if kind.has_window() && !architectures::windows_share_base(architecture) => {
                notes.source("rope_theta", BASE, "the default of layers with a sliding window")
            }
            None => match global {
                Some(base) => notes.source("rope_theta", base, keys.path("rope.freq_base")),
                None => notes.source("rope_theta", BASE, "the default"),
            },
        };
        if kind.has_window() && !architectures::windows_share_scale(architecture) {
            notes.source("factor", 1.0, "layers with a sliding window are not scaled");
            return Ok(Scaling { base, factor: 1.0, yarn: false, attention_factor: 1.0 });
        }
        let scaling_type = keys.word("rope.scaling.type")?;
        let yarn = match scaling_type.as_deref() {
            None | Some("none" | "linear" | "longrope") => false,
            Some("yarn") => true,
            Some(unknown) => {
                let may_be = "none, linear, yarn or longrope";
                return Err(Error::setting(keys.path("rope.scaling.type"), format!("{unknown:?}"), may_be));
            }
        };
        let stated = match keys.number("rope.scaling.factor")? {
            Some(factor) => Some((factor, "rope.scaling.factor")),
            None => keys.number("rope.scale_linear")?.map(|factor| (factor, "rope.scale_linear")),
        };
        // 0 means unset, and a type of none unsets it too.
        let factor = match stated.filter(|&(factor, _)| factor != 0.0 && scaling_type.as_deref() != Some("none")) {
            Some((factor, key)) if factor.is_finite() && factor > 0.0 => notes.source("factor", factor, keys.path(key)),
            Some((factor, key)) => return Err(Error::setting(keys.path(key), factor, "a finite number above 0")),
            None => notes.source("factor", 1.0, "the default"),
        };
        let attention_factor = self.attention_factor(yarn, factor, notes)?;
        Ok(Scaling { base, factor, yarn, attention_factor })
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
            return Ok(Divided::new(self.scaled(scaling)?, first(divisors, pairs)).into());
        }
        match (self.tensors.factors_short, self.tensors.factors_long) {
            (Some(short), Some(long)) if !scaling.yarn => self.longrope(scaling, short, long, pairs),
            (None, None) => self.scaled(scaling),
            (Some(_), Some(_)) => {
                let may_be = "longrope or linear beside rope_factors_short and rope_factors_long";
                Err(Error::setting(self.keys.path("rope.scaling.type"), "yarn", may_be))
            }
            (Some(_), None) => Err(Error::setting("rope_factors_long.weight", "missing", "there, like its short twin")),
            (None, Some(_)) => Err(Error::setting("rope_factors_short.weight", "missing", "there, like its long twin")),
        }
    }

    fn scaled(&self, scaling: Scaling) -> Result<Law> {
        let Scaling { base, factor, yarn, attention_factor } = scaling;
        if yarn {
            let mut law = Yarn::new(base, factor, self.original_context()?);
            law.magnitude = Magnitude::Explicit(attention_factor);
            if architectures::reads_betas(self.architecture()) {
                law.beta_fast = self.keys.number("rope.scaling.yarn_beta_fast")?.unwrap_or(law.beta_fast);
                law.beta_slow = self.keys.number("rope.scaling.yarn_beta_slow")?.unwrap_or(law.beta_slow);
            }
            if self.architecture() == "grok" {
                let share = self.keys.number("rope.scaling.yarn_ext_factor")?.filter(|&share| share >= 0.0);
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
            Some(alpha) => NtkAware::new(base, alpha).into(),
            None if factor == 1.0 => Plain::new(base).into(),
            None => Linear::new(base, factor).into(),
        })
    }

    fn longrope(&self, scaling: Scaling, short: &[f32], long: &[f32], pairs: usize) -> Result<Law> {
        // Linear scaling would come on top; files with these lists have a factor of 1.
        let scaled = |divisors| first(divisors, pairs).into_iter().map(|divisor| divisor * scaling.factor).collect();
        let mut law = LongRope::new(scaling.base, scaled(short), scaled(long), self.original_context()?, 1.0);
        law.attention_factor = Some(scaling.attention_factor);
        Ok(law.into())
    }

    fn original_context(&self) -> Result<u32> {
        match self.keys.count("rope.scaling.original_context_length")? {
            Some(context) => Ok(context),
            None => self.keys.required_count("context_length"),
        }
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
        notes.source("pairing", format!("{pairing:?}"), "llama.cpp's table of architectures");
        Ok(pairing)
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
            _ => self.original_context()?,
        };
        Ok(Some(QueryScale { scale, window, shift: 0 }))
    }
}

/// The divisors of the pairs that turn; a tensor may have more, for layers where more turn.
fn first(divisors: &[f32], pairs: usize) -> Vec<f64> {
    divisors.iter().take(pairs).map(|&divisor| f64::from(divisor)).collect()
}
