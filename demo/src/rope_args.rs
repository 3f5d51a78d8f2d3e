//! The options that say which rope is meant, for every subcommand that turns something.

use crate::encoding::Encoding;
use crate::failure::{self, Failure};
use crate::model::{self, ModelFile};
use crate::tensors::File;
use crate::whole::whole;
use clap::{ArgGroup, Args, ValueEnum};
use phasor::Pairing;
use phasor::config::Spec;
use phasor_measure::explain::Model;
use std::path::Path;

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
    #[arg(long, value_name = "SPEC", value_parser = Spec::parse, conflicts_with = "ModelFile")]
    rope: Option<Spec>,

    #[command(flatten)]
    file: ModelFile,

    /// The layer of the model, counted from 0; may be left out if all that rotate have the same rope
    #[arg(long, value_name = "N", requires = "ModelFile", conflicts_with = "layer_type", value_parser = whole::<usize>)]
    layer: Option<usize>,

    /// The kind of layer, in the file's words (full_attention, sliding_attention)
    #[arg(long, value_name = "NAME", requires = "ModelFile")]
    layer_type: Option<String>,

    /// How long the sequence is, cached tokens included, where frequencies depend on it (dynamic, longrope)
    ///
    /// If left out, it ends with the last position.
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    seq_len: Option<u32>,
}

/// Which two channels make a pair. The checkpoint decides: the wrong one gives fluent nonsense.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum PairingArg {
    /// Channels 2i and 2i + 1: Meta's Llama files, most GGUF files
    Interleaved,
    /// Channels i and i + half: Hugging Face's files
    HalfSplit,
}

impl From<PairingArg> for Pairing {
    fn from(arg: PairingArg) -> Self {
        match arg {
            PairingArg::Interleaved => Self::Interleaved,
            PairingArg::HalfSplit => Self::HalfSplit,
        }
    }
}

/// What the options have named.
pub enum Named<'a> {
    /// Settings on their own: how many channels a head has is said elsewhere.
    Settings(&'a Spec),
    /// A layer of a model.
    Layer(Box<Encoding>),
}

impl RopeArgs {
    /// For a subcommand that cannot do without a rope.
    pub fn required() -> ArgGroup {
        ArgGroup::new("some rope").args(["rope", "config", "gguf"]).required(true)
    }

    /// Refuses to write over the file that was named.
    pub fn expect_other(&self, output: &Path) -> Result<(), Failure> {
        self.file.expect_other(output)
    }

    /// What is named, if anything; what looked wrong about it is said on standard error.
    pub fn named(&self) -> Result<Option<Named<'_>>, Failure> {
        match (self.file.read()?, &self.rope) {
            (Some(model), _) => Ok(Some(Named::Layer(Box::new(self.layer_of(&model)?)))),
            (None, Some(spec)) => {
                warn("--rope", spec.warnings());
                Ok(Some(Named::Settings(spec)))
            }
            (None, None) => Ok(None),
        }
    }

    /// What is named, where [`RopeArgs::required`] was.
    pub fn expect_named(&self) -> Result<Named<'_>, Failure> {
        self.named()?.ok_or_else(|| Failure::new("--rope: was missing, may be settings; or --config, or --gguf"))
    }

    fn layer_of(&self, model: &Model) -> Result<Encoding, Failure> {
        warn(&model.file, &model.warnings);
        Ok(Encoding::of_layer(model, model::layer(model, self.layer, self.layer_type.as_deref())?))
    }

    /// How long the sequence is, given one past its last position.
    pub fn seq_len(&self, end: i64) -> u32 {
        self.seq_len.unwrap_or_else(|| u32::try_from(end.max(0)).unwrap_or(u32::MAX))
    }
}

/// The file's pairing, or the one that was asked for; a word about it where the two differ.
pub fn pairing(asked: Option<PairingArg>, encoding: &Encoding) -> Pairing {
    let asked = asked.map(Pairing::from);
    if let (Some(asked), Some(own)) = (asked, encoding.pairing)
        && asked != own
    {
        failure::say(&format!("note: pairs are {asked}, as --pairing says, where the model's file has them {own}"));
    }
    asked.or(encoding.pairing).unwrap_or(Pairing::HalfSplit)
}

/// The rope for the heads of a file's queries.
pub fn encoding_of(file: &File, named: Named<'_>, channels: usize) -> Result<Encoding, Failure> {
    let was = format!("heads of {channels} channels");
    let dim = u32::try_from(channels).ok();
    match named {
        Named::Layer(encoding) if Some(encoding.head_dim) == dim => Ok(*encoding),
        Named::Layer(encoding) => {
            Err(file.wrong("q", &was, &format!("heads of {}, as the model's file says", encoding.head_dim)))
        }
        Named::Settings(spec) => match dim.filter(|dim| *dim > 0 && dim.is_multiple_of(2)) {
            Some(dim) => Encoding::of_spec(spec, dim, None),
            None => Err(file.wrong("q", &was, "an even number of them")),
        },
    }
}

fn warn(of: &str, warnings: &[String]) {
    for warning in warnings {
        failure::say(&format!("warning: {of}: {warning}"));
    }
}
