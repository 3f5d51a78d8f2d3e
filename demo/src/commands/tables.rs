//! `phasor tables`: what a rope's settings come to, as numbers.

use crate::encoding::Encoding;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::rope_args::{Named, RopeArgs};
use crate::tensors::{self, Floats};
use crate::whole::whole;
use crate::{adapter, positions};
use clap::Args;
use phasor::frequencies::Frequencies;
use phasor::{Pairing, Rope, reference};
use safetensors::Dtype;
use serde_json::json;
use std::path::PathBuf;

/// Frequencies of a rope as JSON, or its table of cosines and sines as a file
///
/// With --json: `rope_type`, `pairing` (null for settings on their own), `head_dim`, `rotary_dim`, `rotary_offset`,
/// `inv_freq` (radians per token, one number for each pair of channels), `attention_factor`, `softmax_scale_multiplier`,
/// `query_scale`, `axes` (how many positions a token has, and which of them each pair turns by), `rotates` (false for a
/// layer without rope, of which the rest then says what it would be), `seq_len` and `warnings`.
///
/// With --output: a safetensors file with `cos` and `sin`, each F32 [tokens, rotary_dim / 2], times the attention factor,
/// computed on the device and within 2e-7 of float64 at any position. Tokens are text: one position for all axes.
///
/// Where frequencies depend on the length of the sequence (dynamic, longrope), it ends with the table's last position,
/// unless --seq-len says otherwise.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = RopeArgs::required())]
pub struct Tables {
    #[command(flatten)]
    rope: RopeArgs,

    /// The position of the first token; may be negative
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<i32>)]
    start: i32,

    /// Channels in a head; with --config or --gguf the file says so
    #[arg(long, value_name = "D", required_unless_present = "ModelFile", conflicts_with = "ModelFile", value_parser = whole::<u32>)]
    head_dim: Option<u32>,

    /// Channels of a head that turn; if left out, what `partial_rotary_factor` says, or all of them
    #[arg(long, value_name = "d", conflicts_with = "ModelFile", value_parser = whole::<u32>)]
    rotary_dim: Option<u32>,

    /// How many positions the table holds
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = whole::<u32>)]
    tokens: u32,

    /// Compute in float64 on the CPU instead of on a device
    #[arg(long)]
    cpu: bool,

    #[command(flatten)]
    into: Into,
}

/// Where the numbers go.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Into {
    /// Print the frequencies as JSON
    #[arg(long)]
    json: bool,

    /// Write the table to this safetensors file
    #[arg(long, value_name = "T.safetensors")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = r#"Examples:
  phasor tables --config config.json --json
  phasor tables --config config.json --layer-type full_attention --seq-len 100000 --json
  phasor tables --gguf model.gguf --layer 0 --tokens 4096 --output table.safetensors
  phasor tables --rope '{"rope_theta":500000}' --head-dim 128 --json
  phasor tables --rope '{"rope_type":"yarn","factor":16,"original_max_position_embeddings":2048}' \
      --head-dim 64 --tokens 4096 --output yarn.safetensors"#;

impl Tables {
    pub fn run(&self, adapter: Option<&str>) -> Result<Outcome, Failure> {
        let encoding = match self.rope.expect_named()? {
            Named::Layer(encoding) => *encoding,
            Named::Settings(spec) => Encoding::of_spec(spec, self.head_dim.unwrap_or_default(), self.rotary_dim)?,
        };
        let seq_len = self.rope.seq_len(i64::from(self.start) + i64::from(self.tokens));
        let frequencies = encoding.frequencies(seq_len)?;
        let Some(path) = &self.into.output else {
            return Outcome::json(&described(&encoding, &frequencies, seq_len));
        };
        self.rope.expect_other(path)?;
        if !encoding.rotates {
            return Err(Failure::new("this layer does not rotate (NoPE): it has no table")
                .next("`phasor explain` tells which layers rotate; --layer takes one of them"));
        }
        let frequencies = encoding.for_text(&frequencies)?;
        self.expect_tokens(frequencies.pairs())?;
        let (cos, sin, by) = if self.cpu {
            let positions = positions::range(self.start, self.tokens as usize)?;
            let (cos, sin) = reference::rope_table(&frequencies, positions);
            (cos, sin, "the CPU, in float64".to_owned())
        } else {
            self.on_device(adapter, &frequencies)?
        };
        let shape = vec![self.tokens as usize, frequencies.pairs()];
        let tensor = |values| Floats::new(Dtype::F32, shape.clone(), values);
        tensors::write(path, &[("cos", &tensor(cos)), ("sin", &tensor(sin))])?;
        Ok(Outcome::text(format!("wrote cos and sin, {shape:?}, to {} (computed on {by})\n", path.display())))
    }

    /// Refuses tables that would be larger than anybody's memory before they fill it.
    fn expect_tokens(&self, pairs: usize) -> Result<(), Failure> {
        const MOST_BYTES: usize = 1 << 31;
        let most = MOST_BYTES / (2 * size_of::<f32>() * pairs.max(1));
        if self.tokens as usize <= most {
            return Ok(());
        }
        let was = self.tokens;
        Err(Failure::new(format!("--tokens: was {was}, may be at most {most} with {pairs} pairs: a file of 2 GiB"))
            .next("--start begins another table where one ends"))
    }

    fn on_device(
        &self,
        adapter: Option<&str>,
        frequencies: &Frequencies,
    ) -> Result<(Vec<f64>, Vec<f64>, String), Failure> {
        let gpu = adapter::open(adapter)?;
        // A table serves both pairings.
        let table = Rope::new(&gpu, frequencies, Pairing::HalfSplit)?.table(self.start, self.tokens as usize)?;
        gpu.submit(|pass| table.record(pass))?;
        let values = gpu.read_blocking(table.view())?;
        // [tokens, {cos, sin}, pairs]
        let pick = |which: usize| {
            let rows = values.chunks(frequencies.pairs()).skip(which).step_by(2);
            rows.flatten().copied().map(f64::from).collect::<Vec<_>>()
        };
        Ok((pick(0), pick(1), gpu.info().name.clone()))
    }
}

fn described(encoding: &Encoding, frequencies: &Frequencies, seq_len: u32) -> serde_json::Value {
    json!({
        "model_type": encoding.model_type,
        "layer_type": encoding.layer_type,
        "rotates": encoding.rotates,
        "rope_type": encoding.law.name(),
        "pairing": encoding.pairing.map(Pairing::name),
        "head_dim": encoding.head_dim,
        "rotary_dim": encoding.rotary.dim(),
        "rotary_offset": encoding.rotary.offset(),
        "inv_freq": frequencies.inv_freq(),
        "attention_factor": frequencies.attention_factor(),
        "softmax_scale_multiplier": encoding.softmax_scale_multiplier,
        "query_scale": encoding.query_scale.map(|q| json!({ "scale": q.scale, "window": q.window, "shift": q.shift })),
        "axes": { "count": encoding.axes.count(), "axis_of_pair": encoding.axes.axis_of_pair() },
        "seq_len": encoding.law.depends_on_length().then_some(seq_len),
        "warnings": encoding.warnings,
    })
}
