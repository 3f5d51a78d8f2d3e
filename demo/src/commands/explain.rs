//! `phasor explain`: a model's ropes in words.

use crate::explain::page;
use crate::failure::Failure;
use crate::model::ModelFile;
use crate::outcome::Outcome;
use crate::whole::whole;
use clap::{ArgGroup, Args};
use phasor_measure::explain::Explanation;

/// Say in words what a model's rope does, layer by layer, and where each number came from
///
/// For each kind of layer: which channels turn and which two make a pair, the scaling law with its numbers, what it does
/// to the pairs and to the slowest wavelength, the factors on logits and queries, what depends on the length of the
/// sequence, and the key or the rule that each number came from. Layers without rope (NoPE), and keys that nothing reads,
/// are named. The page to look at when two programs disagree about a model.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("model").required(true).args(["config", "gguf"]), after_help = EXAMPLES)]
pub struct Explain {
    #[command(flatten)]
    file: ModelFile,

    /// Where frequencies depend on the length of the sequence, show them at this length too
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    seq_len: Option<u32>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  phasor explain --config config.json
  phasor explain --gguf model.gguf
  phasor explain --config config.json --seq-len 100000
  phasor explain --config config.json --json | jq '.groups[0].numbers'";

impl Explain {
    pub fn run(&self) -> Result<Outcome, Failure> {
        let model = self.file.read()?.ok_or_else(|| Failure::new("--config: was missing, may be a file; or --gguf"))?;
        let explanation = Explanation::of(&model, self.seq_len)?;
        if self.json { Outcome::json(&explanation) } else { Ok(Outcome::text(page(&explanation))) }
    }
}
