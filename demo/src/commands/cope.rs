//! `phasor cope`: the bias of contextual position encoding, from a file into another.

use crate::adapter;
use crate::failure::Failure;
use crate::operand::{Operand, Order, in_memory_order};
use crate::outcome::Outcome;
use crate::tensors::{self, File, Floats};
use clap::Args;
use phasor::{ContextualBias, Gpu, reference};
use std::path::PathBuf;

/// Contextual position encoding (CoPE) of the logits of a safetensors file
///
/// Reads `query` [batch, heads, tokens, channels], `logits` [batch, heads, tokens, keys] and `position_embeddings`
/// [channels, positions], or [heads, channels, positions] for heads that have their own, and writes `out`, the bias to add to
/// the logits, in their shape and type. A logit at or below -1e30 is masked; infinities count so too.
///
/// A key's position is the sum of the sigmoids of the logits from it to the last one, at most the last position; between
/// whole positions the products of query and embeddings are interpolated (Golovneva et al., 2024). `phasor attention`
/// computes attention with it, without logits in memory.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phasor cope logits.safetensors bias.safetensors\n  phasor cope logits.safetensors \
bias.safetensors --cpu"
)]
pub struct Cope {
    /// The file to read
    #[arg(value_name = "IN.safetensors")]
    input: PathBuf,

    /// The file to write
    #[arg(value_name = "OUT.safetensors")]
    output: PathBuf,

    /// What the bias is multiplied with
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    scale: f64,

    /// Compute in float64 on the CPU instead of on a device
    #[arg(long)]
    cpu: bool,
}

impl Cope {
    pub fn run(&self, adapter: Option<&str>) -> Result<Outcome, Failure> {
        if !self.scale.is_finite() {
            return Err(Failure::new(format!("--scale: was {}, may be a finite number", self.scale)));
        }
        let file = File::read(&self.input)?;
        file.expect_other(&self.output)?;
        let query = Operand::read(&file, "query", Order::Bhtd)?;
        let logits = Operand::read_pairs(&file, "logits")?
            .ok_or_else(|| file.wrong("logits", "missing", "a tensor [batch, heads, tokens, keys]"))?;
        let [batch, tokens, heads, channels] = query.layout.shape();
        logits.expect_shape(&file, [batch, heads, tokens, logits.layout.shape()[3]], [false; 4])?;
        let embeddings = Operand::position_embeddings(&file, "position_embeddings")?
            .ok_or_else(|| file.wrong("position_embeddings", "missing", "a tensor [channels, positions]"))?;
        embeddings.expect_position_embeddings(&file, heads, channels)?;
        file.note_unread(|name| ["query", "logits", "position_embeddings"].contains(&name))?;
        let (values, by) = if self.cpu {
            (self.on_cpu(&query, &logits, &embeddings)?, "the CPU, in float64".to_owned())
        } else {
            let gpu = adapter::open(adapter)?;
            (self.on_device(&gpu, &query, &logits, &embeddings)?, gpu.info().name.clone())
        };
        let Floats { dtype, shape, .. } = &logits.tensor;
        let out = Floats::new(*dtype, shape.clone(), values);
        tensors::write(&self.output, &[("out", &out)])?;
        Ok(Outcome::text(format!(
            "contextual bias {shape:?} ({dtype}) with {} positions, computed on {by}\nwrote {}\n",
            embeddings.layout.shape()[3],
            self.output.display()
        )))
    }

    /// In the order of the file.
    fn on_cpu(&self, query: &Operand, logits: &Operand, embeddings: &Operand) -> Result<Vec<f64>, Failure> {
        let layout = logits.layout;
        let [query, logits, embeddings] = [query, logits, embeddings].map(Operand::wide);
        let bias = reference::cope(&query.tensor()?, &logits.tensor()?, &embeddings.tensor()?)?;
        Ok(in_memory_order(layout, bias.into_iter().map(|x| self.scale * x)))
    }

    fn on_device(
        &self,
        gpu: &Gpu,
        query: &Operand,
        logits: &Operand,
        embeddings: &Operand,
    ) -> Result<Vec<f64>, Failure> {
        // Kernels know no infinities, and are exact in f32 however the file stores its logits.
        let logits = logits.finite();
        let out = logits.view(gpu)?;
        let bias = ContextualBias::new(&query.view(gpu)?, &out, &embeddings.view(gpu)?, &out).scale(self.scale);
        let bias = bias.prepare(gpu)?;
        gpu.submit(|pass| bias.record(pass))?;
        Ok(in_memory_order(logits.layout, gpu.read_blocking(&out)?.into_iter().map(f64::from)))
    }
}
