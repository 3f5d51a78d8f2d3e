//! `phasor attention`: attention of a file's tensors, or a whole layer of it, into another file.

mod layer;
mod tensors;
mod turn;

use crate::failure::Failure;
use crate::operand::Order;
use crate::outcome::Outcome;
use crate::rope_args::{PairingArg, RopeArgs};
use crate::tensors::File;
use crate::whole::whole;
use clap::Args;
use phasor::attention::{Attention as Request, ContextualPe};
use std::num::NonZero;
use std::path::PathBuf;
use turn::Turn;

/// Attention of queries, keys and values of a safetensors file, with rotary and contextual encoding (RoPE, CoPE) if wanted
///
/// Reads `q`, `k` and `v` [batch, tokens, heads, channels] (F32, F16 or BF16, each its own; keys and values may have fewer
/// heads and another number of tokens) and writes `out`, in the queries' type, and `lse`, the log-sum-exp of each query's
/// logits, F32 [batch, tokens, heads] (-1e30 where a query sees no key). Arithmetic is f32 on a device and f64 with --cpu.
///
/// With `position_embeddings` [channels, positions], or [heads, channels, positions], in the file, contextual position
/// encoding is added. With `bias`, [batch, heads, tokens, keys] with 1 for what is the same along the first three, that is
/// added to the logits; at or below -1e30, and at minus infinity, it hides a key.
///
/// A number that is none, or infinite, shows with --cpu and --unfused. Otherwise a key whose logit is no number is not seen,
/// and such a channel of a value counts as 0: what a cache's padding holds does no harm.
///
/// Where the file has `inputs` [batch, tokens, width] and `weights.*` instead, a whole layer of self-attention is computed:
/// `weights.query_proj.weight` [heads * channels, width], `key_proj`, `value_proj` and `output_proj` likewise, each with a
/// `.bias` or without, and perhaps `weights.cope.position_embeddings`; --heads and --kv-heads say how many there are. Then
/// `out` is what the last projection makes, in the inputs' type.
///
/// With a rope, queries and keys are rotated on their way in: key s stands at position s, and the last query at the last
/// key. With --config or --gguf the model's file decides the pairing, and by how much its law stretches the logits.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Attention {
    /// The file to read
    #[arg(value_name = "IN.safetensors")]
    input: PathBuf,

    /// The file to write
    #[arg(value_name = "OUT.safetensors")]
    output: PathBuf,

    #[command(flatten)]
    rope: RopeArgs,

    /// Which two channels make a pair; with --config or --gguf the file says so, and this overrides it
    #[arg(long)]
    pairing: Option<PairingArg>,

    /// Hide keys to the right of a query's own place
    #[arg(long)]
    causal: bool,

    /// A query sees so many keys up to its own place, that one included: 1 or more
    #[arg(long, value_name = "N", value_parser = whole::<NonZero<usize>>)]
    window: Option<NonZero<usize>>,

    /// What products of queries and keys are multiplied with [default: 1 / sqrt(channels), times what the model's rope says]
    #[arg(long, value_name = "X")]
    scale: Option<f64>,

    /// What the contextual bias is multiplied with
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    cope_scale: f64,

    /// Query heads of the layer that the weights make
    #[arg(long, value_name = "H", value_parser = whole::<usize>)]
    heads: Option<usize>,

    /// Its key heads, a divisor of --heads [default: as many]
    #[arg(long, value_name = "H", requires = "heads", value_parser = whole::<usize>)]
    kv_heads: Option<usize>,

    /// The order of the axes of q, k, v and out
    #[arg(long, default_value = "bthd")]
    layout: Order,

    /// A kernel for each part of the formula, with all logits in memory, instead of one that does without
    #[arg(long, conflicts_with = "cpu")]
    unfused: bool,

    /// Compute in float64 on the CPU instead of on a device
    #[arg(long)]
    cpu: bool,
}

const EXAMPLES: &str = r#"Examples:
  phasor attention qkv.safetensors out.safetensors --causal
  phasor attention qkv.safetensors out.safetensors --causal --config config.json --window 4096
  phasor attention layer.safetensors out.safetensors --heads 9 --kv-heads 3 --causal --config config.json
  phasor attention qkv.safetensors out.safetensors --rope '{"rope_theta":500000}' --pairing half-split --cpu"#;

impl Attention {
    pub fn run(&self, adapter: Option<&str>) -> Result<Outcome, Failure> {
        self.expect_finite()?;
        let file = File::read(&self.input)?;
        file.expect_other(&self.output)?;
        self.rope.expect_other(&self.output)?;
        if file.names()?.iter().any(|name| name == "inputs") {
            layer::run(self, &file, adapter)
        } else {
            tensors::run(self, &file, adapter)
        }
    }

    fn expect_finite(&self) -> Result<(), Failure> {
        let numbers = [("--scale", self.scale), ("--cope-scale", Some(self.cope_scale))];
        let mut given = numbers.into_iter().filter_map(|(name, number)| Some((name, number?)));
        let wrong = given.find(|(_, number)| !number.is_finite());
        match wrong {
            Some((name, was)) => Err(Failure::new(format!("{name}: was {was}, may be a finite number"))),
            None => Ok(()),
        }
    }

    /// What products are multiplied with, for heads of so many channels.
    fn scale(&self, channels: usize, turn: Option<&Turn>) -> f64 {
        let stretched = turn.map_or(1.0, Turn::softmax_scale_multiplier);
        self.scale.unwrap_or(stretched / (channels.max(1) as f64).sqrt())
    }

    /// What the options say of an attention.
    fn settings<T: Clone>(&self, mut request: Request<T>, scale: f64, turn: Option<&Turn>) -> Request<T> {
        request = request.scale(scale);
        if self.causal {
            request = request.causal();
        }
        if let Some(keys) = self.window {
            request = request.window(keys.get());
        }
        match turn.and_then(Turn::rotation) {
            Some(rotation) => request.rotate(rotation.clone()),
            None => request,
        }
    }

    fn contextual<T: Clone>(&self, embeddings: &T) -> ContextualPe<T> {
        ContextualPe::new(embeddings).bias_scale(self.cope_scale)
    }

    /// What was done, the attention in a few words.
    fn told(&self, attention: &str, turn: Option<&Turn>, positions: Option<usize>, by: &str) -> Outcome {
        let mut text = format!("{attention}, on {by}\n");
        let window = self.window.map(|keys| format!("a window of {keys} keys"));
        let masks: Vec<_> = [self.causal.then(|| "causal".to_owned()), window].into_iter().flatten().collect();
        text += &if masks.is_empty() { "every query sees every key\n".to_owned() } else { masks.join(", ") + "\n" };
        if let Some(turn) = turn {
            text += &format!("rotated by {}\n", turn.told());
        }
        if let Some(positions) = positions {
            text += &format!("with contextual encoding of {positions} positions\n");
        }
        Outcome::text(text + &format!("wrote {}\n", self.output.display()))
    }
}
