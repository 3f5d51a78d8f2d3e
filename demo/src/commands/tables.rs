//! `phasor tables`: what a rope's settings come to, as numbers.

use crate::cli::RopeArgs;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::tensors::{self, Floats};
use crate::{adapter, positions};
use clap::Args;
use phasor::frequencies::Frequencies;
use phasor::{Pairing, Rope, reference};
use safetensors::Dtype;
use serde_json::json;
use std::path::PathBuf;

/// Frequencies of a rope's settings as JSON, or its table of cosines and sines as a file
///
/// With --json: `rope_type`, `rotary_dim`, `inv_freq` (radians per token, one number for each pair of channels) and
/// `attention_factor`.
///
/// With --output: a safetensors file with `cos` and `sin`, each F32 [tokens, rotary_dim / 2], times the attention factor,
/// computed on the device and within 2e-7 of float64 at any position.
///
/// Where frequencies depend on the length of the sequence (dynamic, longrope), it ends with the table's last position.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Tables {
    #[command(flatten)]
    rope: RopeArgs,

    /// Channels in a head
    #[arg(long, value_name = "D")]
    head_dim: u32,

    /// Channels of a head that turn; if left out, what `partial_rotary_factor` says, or all of them
    #[arg(long, value_name = "d")]
    rotary_dim: Option<u32>,

    /// How many positions the table holds
    #[arg(long, value_name = "N", default_value_t = 2048)]
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
  phasor tables --rope '{"rope_theta":500000}' --head-dim 128 --json
  phasor tables --rope '{"rope_type":"yarn","factor":16,"original_max_position_embeddings":2048}' \
      --head-dim 64 --tokens 4096 --output yarn.safetensors"#;

impl Tables {
    pub fn run(&self, adapter: Option<&str>) -> Result<Outcome, Failure> {
        self.rope.warn();
        let end = i64::from(self.rope.start) + i64::from(self.tokens);
        let frequencies = self.rope.frequencies(self.head_dim, self.rotary_dim, end)?;
        let Some(path) = &self.into.output else {
            return Outcome::json(&json!({
                "rope_type": self.rope.rope.law().name(),
                "rotary_dim": frequencies.rotary_dim(),
                "inv_freq": frequencies.inv_freq(),
                "attention_factor": frequencies.attention_factor(),
            }));
        };
        let (cos, sin, by) = if self.cpu {
            let (cos, sin) = self.on_cpu(&frequencies)?;
            (cos, sin, "the CPU, in float64".to_owned())
        } else {
            self.on_device(adapter, &frequencies)?
        };
        let shape = vec![self.tokens as usize, frequencies.pairs()];
        let tensor = |values| Floats { dtype: Dtype::F32, shape: shape.clone(), values };
        tensors::write(path, &[("cos", &tensor(cos)), ("sin", &tensor(sin))], None)?;
        Ok(Outcome::text(format!("wrote cos and sin, {shape:?}, to {} (computed on {by})\n", path.display())))
    }

    fn on_cpu(&self, frequencies: &Frequencies) -> Result<(Vec<f32>, Vec<f32>), Failure> {
        let (cos, sin) = reference::rope_table(frequencies, positions::range(self.rope.start, self.tokens as usize)?);
        let narrow = |values: Vec<f64>| values.into_iter().map(|x| x as f32).collect();
        Ok((narrow(cos), narrow(sin)))
    }

    fn on_device(
        &self,
        adapter: Option<&str>,
        frequencies: &Frequencies,
    ) -> Result<(Vec<f32>, Vec<f32>, String), Failure> {
        let gpu = adapter::open(adapter)?;
        // A table serves both pairings.
        let table = Rope::new(&gpu, frequencies, Pairing::HalfSplit)?.table(self.rope.start, self.tokens as usize)?;
        gpu.submit(|pass| table.record(pass))?;
        let values = gpu.read_blocking(table.view())?;
        // [tokens, {cos, sin}, pairs]
        let pick = |which: usize| {
            values.chunks(frequencies.pairs()).skip(which).step_by(2).flatten().copied().collect::<Vec<_>>()
        };
        Ok((pick(0), pick(1), gpu.info().name.clone()))
    }
}
