//! The options that say which rope is meant, for every subcommand that turns something.

use crate::encoding::Encoding;
use crate::failure::{self, Failure};
use crate::model::{Model, ModelFile};
use clap::Args;
use phasor::config::Spec;

/// The rope settings that several subcommands take.
#[derive(Debug, Args)]
pub struct RopeArgs {
    /// The rope settings, as JSON with Hugging Face's names
    ///
    /// What `rope_parameters` or `rope_scaling` holds in a model's config.json, with `rope_theta` (10000 if left out) and
    /// `partial_rotary_factor`. `rope_type` is `default`, `linear` (with `factor`), `ntk_alpha` (with `alpha`), `yarn`
    /// (with `factor` and `original_max_position_embeddings`; also `beta_fast`, `beta_slow`, `truncate`,
    /// `attention_factor`, and `attn_factor` as a multiplier of YaRN's own), or any other that transformers knows; a
    /// missing or impossible field is named.
    #[arg(long, value_name = "SPEC", value_parser = Spec::parse, required_unless_present = "ModelFile",
        conflicts_with = "ModelFile")]
    rope: Option<Spec>,

    #[command(flatten)]
    file: ModelFile,

    /// The layer of the model, counted from 0; may be left out if all that rotate have the same rope
    #[arg(long, value_name = "N", requires = "ModelFile", conflicts_with = "layer_type")]
    layer: Option<usize>,

    /// The kind of layer, in the file's words (full_attention, sliding_attention)
    #[arg(long, value_name = "NAME", requires = "ModelFile")]
    layer_type: Option<String>,

    /// How long the sequence is, cached tokens included, where frequencies depend on it (dynamic, longrope)
    ///
    /// If left out, it ends with the last position.
    #[arg(long, value_name = "N")]
    seq_len: Option<u32>,

    /// The position of the first token; may be negative
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub start: i32,
}

/// What the options have named.
pub enum Named<'a> {
    /// Settings on their own: how many channels a head has is said elsewhere.
    Settings(&'a Spec),
    /// A layer of a model.
    Layer(Box<Encoding>),
}

impl RopeArgs {
    /// What is named; what looked wrong about it is said on standard error.
    pub fn named(&self) -> Result<Named<'_>, Failure> {
        match (self.file.read()?, &self.rope) {
            (Some(model), _) => self.layer_of(&model).map(|encoding| Named::Layer(Box::new(encoding))),
            (None, Some(spec)) => {
                warn("--rope", spec.warnings());
                Ok(Named::Settings(spec))
            }
            (None, None) => Err(Failure::new("--rope: was missing, may be settings; or --config, or --gguf")),
        }
    }

    fn layer_of(&self, model: &Model) -> Result<Encoding, Failure> {
        warn(&model.file.display().to_string(), &model.warnings);
        Ok(Encoding::of_layer(model, model.layer(self.layer, self.layer_type.as_deref())?))
    }

    /// How long the sequence is, given one past its last position.
    pub fn seq_len(&self, end: i64) -> u32 {
        self.seq_len.unwrap_or_else(|| u32::try_from(end.max(0)).unwrap_or(u32::MAX))
    }
}

fn warn(of: &str, warnings: &[String]) {
    for warning in warnings {
        failure::say(&format!("warning: {of}: {warning}"));
    }
}
