//! The rope of one kind of layer.

use super::candidates::Candidates;
use super::kinds::{BASES, Kind};
use super::models::{AxisPattern, NoPe};
use super::{FULL, File, LINEAR, SLIDING, Settings};
use crate::config::LayerRope;
use crate::config::law::{self, Around};
use crate::config::notes::Notes;
use crate::config::object::Object;
use crate::frequencies::{Axes, Law, Magnitude, QueryScale, mscale};
use crate::shown::with_exponent;
use crate::{Error, Pairing, Result, Rotary};

/// Types of layers without queries and keys to rotate.
const WITHOUT_ROPE: [&str; 7] = [LINEAR, "conv", "mamba", "mamba2", "mlp", "moe", "recurrent"];

/// The base of DeepSeek V4's layers with compression.
const COMPRESS_THETA: f64 = 160_000.0;

/// How many channels turn in DeepSeek V4.
const DEEPSEEK_V4_ROTARY_DIM: u32 = 64;

impl<'a> File<'a> {
    /// The rope of a kind of layer. Warnings stay with the file; sources go with the answer.
    pub(super) fn layer(&mut self, kind: &Kind) -> Result<LayerRope> {
        let mut notes = std::mem::take(&mut self.notes);
        let answer = self.describe(kind, &mut notes);
        self.notes = notes;
        answer
    }

    fn describe(&self, kind: &Kind, notes: &mut Notes) -> Result<LayerRope> {
        let layer_type = kind.layer_type.as_deref();
        let own = self.settings_of(layer_type)?;
        let rope = own.as_ref().unwrap_or(&self.nothing);
        let rotates = self.rotates(kind, own.is_some(), notes)?;
        let head_dim = self.head_dim(layer_type, notes)?;
        let share = self.partial_rotary_factor(rope, head_dim, notes)?;
        let longest = self.max_position_embeddings()?;
        let around = Around {
            base: self.base(rope, kind, notes)?,
            partial_rotary_factor: share,
            max_position_embeddings: longest
                .map(|(longest, key)| notes.source("max_position_embeddings", longest, self.config.path(key))),
            original_max_position_embeddings: self.original_context()?,
            calls_longrope_yarn: self.model.calls_longrope_yarn(),
        };
        let law = self.law(rope, layer_type, around, notes)?;
        let rotary = self.rotary(&law, head_dim, share, notes)?;
        law.frequencies(rotary.dim()).map_err(|error| rope.locate(error))?;
        let answer = LayerRope {
            layer_type: kind.layer_type.clone(),
            rotates,
            pairing: self.pairing(notes)?,
            head_dim,
            rotary,
            axes: self.axes(rope, &law, rotary.pairs() as usize, notes)?,
            softmax_scale_multiplier: self.softmax_scale_multiplier(rope, &law, notes)?,
            query_scale: self.query_scale(rope, &law, rotates, notes)?,
            law,
            sources: std::mem::take(&mut notes.sources),
        };
        if matches!(self.settings, Settings::Nested(_)) {
            notes.unread(rope);
        }
        Ok(answer)
    }

    /// The settings that hold for a type of layer; `None` if it has none.
    fn settings_of(&self, layer_type: Option<&str>) -> Result<Option<Object<'a>>> {
        let compresses = self.model.rotates_the_end();
        match &self.settings {
            // What flat settings scale, they scale for the layers that see the whole context.
            Settings::Flat(_)
                if layer_type == Some(SLIDING) && (compresses || self.model.scales_full_attention_only()) =>
            {
                Ok(None)
            }
            Settings::Flat(flat) => Ok(Some(flat.clone())),
            Settings::Nested(nested) => {
                let key = match layer_type {
                    // DeepSeek V4 names its ropes by what they are for.
                    Some(SLIDING) if compresses => "main",
                    _ if compresses => "compress",
                    Some(layer_type) => layer_type,
                    None => FULL,
                };
                if nested.has(key) || WITHOUT_ROPE.contains(&key) {
                    return nested.object(key);
                }
                Err(nested.missing(key, "the rope of these layers, or null"))
            }
        }
    }

    fn rotates(&self, kind: &Kind, has_settings: bool, notes: &mut Notes) -> Result<bool> {
        let layer_type = kind.layer_type.as_deref();
        let why_not = if !kind.rotates {
            Some("no_rope_layers, or the class's order of them")
        } else if layer_type.is_some_and(|layer_type| WITHOUT_ROPE.contains(&layer_type)) {
            Some("the type of layer")
        } else if matches!(self.settings, Settings::Nested(_)) && !has_settings {
            Some("null in place of rope settings")
        } else if self.config.flag("alibi")? == Some(true) {
            Some("alibi")
        } else {
            self.class_forbids_rope(layer_type)?
        };
        Ok(notes.source("rotates", why_not.is_none(), why_not.unwrap_or("the default")))
    }

    fn class_forbids_rope(&self, layer_type: Option<&str>) -> Result<Option<&'static str>> {
        let embedding = self.config.word("position_embedding_type")?;
        let asked = embedding.map(|word| word.contains("rope") || word.contains("rotary"));
        if asked == Some(false) {
            return Ok(Some("position_embedding_type"));
        }
        let forbidden = match self.model.nope() {
            NoPe::Nowhere | NoPe::Every(_) => false,
            NoPe::FullAttention => layer_type == Some(FULL),
            NoPe::FullAttentionBesideSliding => layer_type == Some(FULL) && !self.config.is_null("sliding_window"),
            NoPe::Everywhere => true,
            NoPe::UnlessAsked => asked.is_none(),
        };
        Ok(forbidden.then_some("the class of the model"))
    }

    /// Whether the channels that turn are kept apart from the rest of the head.
    fn is_latent(&self) -> bool {
        let separate = self.config.get("qk_rope_head_dim").is_some() && !self.model.rotates_the_end();
        separate || self.model.is_mla()
    }

    fn head_dim(&self, layer_type: Option<&str>, notes: &mut Notes) -> Result<u32> {
        let config = &self.config;
        if self.is_latent() {
            return match config.count("qk_rope_head_dim")?.or(self.model.head_dim()) {
                Some(dim) => Ok(notes.source("head_dim", dim, self.key_or_class("qk_rope_head_dim"))),
                None => Err(config.missing("qk_rope_head_dim", "how many channels of a head turn")),
            };
        }
        if let Some(class) = self.model.global_head_dim().filter(|_| layer_type == Some(FULL)) {
            let dim = config.count("global_head_dim")?.unwrap_or(class);
            return Ok(notes.source("head_dim", dim, self.key_or_class("global_head_dim")));
        }
        if let Some((dim, key)) = config.count_of(&["head_dim", "attention_head_dim", "kv_channels"])? {
            return Ok(notes.source("head_dim", dim, config.path(key)));
        }
        // transformers takes the class's number only where the key is absent; `null` asks for the quotient.
        if let Some(class) = self.model.head_dim().filter(|_| !config.is_null("head_dim")) {
            return Ok(notes.source("head_dim", class, self.class()));
        }
        let (hidden, hidden_key) = self.required_count(&["hidden_size", "n_embd", "d_model"])?;
        let (heads, heads_key) = self.required_count(&["num_attention_heads", "n_head", "n_heads"])?;
        if !hidden.is_multiple_of(heads) {
            notes.warn(format!("{hidden_key}, {hidden}, is no multiple of {heads_key}, {heads}: the quotient is cut"));
        }
        Ok(notes.source("head_dim", hidden / heads, format!("{hidden_key} / {heads_key}")))
    }

    fn required_count(&self, keys: &[&'static str]) -> Result<(u32, &'static str)> {
        let missing = || self.config.missing(&keys.join(" or "), "a whole number, unless there is a head_dim");
        self.config.count_of(keys)?.ok_or_else(missing)
    }

    fn base(&self, rope: &Object, kind: &Kind, notes: &mut Notes) -> Result<f64> {
        let config = &self.config;
        if let Some(base) = kind.base {
            rope.pass_over(&["rope_theta"]);
            return Ok(notes.source("rope_theta", base, config.path(BASES)));
        }
        let sliding = kind.layer_type.as_deref() == Some(SLIDING);
        let compressed = self.model.rotates_the_end() && !sliding;
        let mut found = Candidates::default();
        found.offer(rope, "rope_theta", rope.base("rope_theta")?);
        for key in ["rope_local_base_freq", "local_rope_theta", "swa_rope_theta"] {
            found.offer(config, key, config.base(key)?.filter(|_| sliding));
        }
        found.offer(config, "compress_rope_theta", config.base("compress_rope_theta")?.filter(|_| compressed));
        // Layers for which the class has a base of their own do not share the base of all.
        let own = if compressed { Some(COMPRESS_THETA) } else { self.model.local_rope_theta().filter(|_| sliding) };
        for key in ["global_rope_theta", "rope_theta", "rotary_emb_base"] {
            found.offer(config, key, config.base(key)?.filter(|_| own.is_none()));
        }
        let ratio = config.positive("rope_ratio")?;
        found.offer(config, "rope_ratio", ratio.map(|ratio| 10_000.0 * ratio));
        Ok(found.choose("rope_theta", notes, || (own.unwrap_or(self.model.rope_theta()), self.class())))
    }

    fn partial_rotary_factor(&self, rope: &Object, head_dim: u32, notes: &mut Notes) -> Result<f64> {
        let config = &self.config;
        let mut found = Candidates::default();
        found.offer(rope, "partial_rotary_factor", rope.share("partial_rotary_factor")?);
        for key in ["partial_rotary_factor", "rotary_pct", "rope_pct"] {
            found.offer(config, key, config.share(key)?);
        }
        if self.is_latent() {
            // What turns is the whole of its tensor; a share of the joined head would count twice.
            return Ok(1.0);
        }
        for key in ["rotary_dim", "qk_rope_head_dim"] {
            let dim = config.count(key)?;
            if let Some(dim) = dim.filter(|&dim| dim > head_dim) {
                return Err(Error::setting(config.path(key), dim, format!("at most head_dim, {head_dim}")));
            }
            found.offer(config, key, dim.map(|dim| share_of(dim, head_dim)));
        }
        let class = match self.model.rotary_dim() {
            Some(dim) => share_of(dim.min(head_dim), head_dim),
            None if self.model.rotates_the_end() => share_of(DEEPSEEK_V4_ROTARY_DIM.min(head_dim), head_dim),
            None => self.model.partial_rotary_factor(),
        };
        Ok(found.choose("partial_rotary_factor", notes, || (class, self.class())))
    }

    /// The longest sequence that the model allows, and the key that says so.
    pub(super) fn max_position_embeddings(&self) -> Result<Option<(u32, &'static str)>> {
        self.config.count_of(&["max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx"])
    }

    /// The original context beside the rope's settings; where those are nested, each has its own.
    fn original_context(&self) -> Result<Option<u32>> {
        let beside = self.config.count("original_max_position_embeddings")?;
        Ok(beside.filter(|_| matches!(self.settings, Settings::Flat(_))))
    }

    fn law(&self, rope: &Object, layer_type: Option<&str>, around: Around, notes: &mut Notes) -> Result<Law> {
        let mut law = law::law(rope, around, notes)?;
        let compressed = self.model.rotates_the_end() && layer_type != Some(SLIDING);
        // DeepSeek V4's own code leaves YaRN's magnitude out, and its files do not say so.
        if let Law::Yarn(yarn) = &mut law
            && compressed
            && rope.get("attention_factor").is_none()
        {
            yarn.magnitude = Magnitude::Explicit(notes.source("attention_factor", 1.0, self.class()));
        }
        Ok(law)
    }

    fn rotary(&self, law: &Law, head_dim: u32, share: f64, notes: &mut Notes) -> Result<Rotary> {
        let dim = law::rotary_dim(law, head_dim, share);
        let from = if self.is_latent() { "head_dim" } else { "head_dim and partial_rotary_factor" };
        notes.source("rotary_dim", dim, from);
        let offset = if self.model.rotates_the_end() { head_dim.saturating_sub(dim) } else { 0 };
        Rotary::new(head_dim, dim, offset)
    }

    fn pairing(&self, notes: &mut Notes) -> Result<Pairing> {
        let pairing = match self.config.flag("rope_interleave")? {
            Some(true) => Pairing::Interleaved,
            Some(false) => Pairing::HalfSplit,
            None => self.model.pairing(),
        };
        Ok(notes.source("pairing", pairing, self.key_or_class("rope_interleave")))
    }

    fn axes(&self, rope: &Object, law: &Law, pairs: usize, notes: &mut Notes) -> Result<Axes> {
        let (sections, extended) = (rope.counts("mrope_section")?, rope.counts("xdrope_section")?);
        let mut interleaved = false;
        for key in ["mrope_interleaved", "interleaved"] {
            interleaved |= rope.flag(key)? == Some(true);
        }
        let class = self.model.axes();
        let pattern = match class {
            Some((pattern, _)) => pattern,
            None if interleaved => AxisPattern::Interleaved,
            None => AxisPattern::Sections,
        };
        let (sections, from) = match (sections, extended, class) {
            (Some(sections), ..) => (sections, rope.path("mrope_section")),
            (None, Some(sections), _) => (sections, rope.path("xdrope_section")),
            (None, None, Some((_, sections))) => (sections.to_vec(), self.class()),
            (None, None, None) if matches!(law, Law::Axial(_)) => return Axes::axial(pairs),
            (None, None, None) => return Ok(Axes::one(pairs)),
        };
        notes.source("axes", format!("{pattern:?} {sections:?}"), from);
        let axes = match pattern {
            AxisPattern::Sections => Axes::sections(&sections, pairs),
            AxisPattern::Interleaved => Axes::interleaved(&sections, pairs),
            AxisPattern::Ernie => Axes::ernie(&sections, pairs),
        };
        axes.map_err(|error| rope.locate(error))
    }

    /// DeepSeek's second correction: over the whole logit, and only for scaled ropes.
    fn softmax_scale_multiplier(&self, rope: &Object, law: &Law, notes: &mut Notes) -> Result<f64> {
        let weight = law::nonzero(rope, "mscale_all_dim", &mut Notes::default())?;
        let (Law::Yarn(yarn), Some(weight)) = (law, weight.filter(|_| self.is_latent())) else { return Ok(1.0) };
        let multiplier = mscale(yarn.factor, weight).powi(2);
        if !multiplier.is_finite() {
            let may_be = "a number that leaves the softmax scale finite";
            return Err(Error::setting(rope.path("mscale_all_dim"), with_exponent(weight), may_be));
        }
        Ok(notes.source("softmax_scale_multiplier", multiplier, "mscale(factor, mscale_all_dim) squared"))
    }

    fn query_scale(&self, rope: &Object, law: &Law, rotates: bool, notes: &mut Notes) -> Result<Option<QueryScale>> {
        const WINDOW: u32 = 8192;
        let weight = rope.number("llama_4_scaling_beta")?;
        if let (Some(scale), Law::Yarn(yarn)) = (weight, law) {
            notes.source("query_scale", scale, rope.path("llama_4_scaling_beta"));
            return Ok(Some(QueryScale { scale, window: yarn.original_max_position_embeddings, shift: 0 }));
        }
        let config = &self.config;
        let (scale, window) = (config.number("attn_scale")?, config.count("floor_scale")?);
        let tuned = config.flag("attn_temperature_tuning")?.unwrap_or(true);
        if !self.model.scales_queries_without_rope() || rotates || !tuned {
            return Ok(None);
        }
        let scale = notes.source("query_scale", scale.unwrap_or(0.1), self.key_or_class("attn_scale"));
        Ok(Some(QueryScale { scale, window: window.unwrap_or(WINDOW), shift: 1 }))
    }

    /// Where a number of the class comes from.
    fn class(&self) -> String {
        match self.model.is_known() {
            true => format!("the class default of {}", self.model_type),
            false => "the common default".to_owned(),
        }
    }

    fn key_or_class(&self, key: &str) -> String {
        if self.config.get(key).is_some() { self.config.path(key) } else { self.class() }
    }
}

/// The share that comes back to exactly `dim` when multiplied by `whole` and cut down.
fn share_of(dim: u32, whole: u32) -> f64 {
    let share = f64::from(dim) / f64::from(whole);
    if share * f64::from(whole) < f64::from(dim) { share.next_up() } else { share }
}
