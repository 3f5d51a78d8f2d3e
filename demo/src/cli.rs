//! The command line: one subcommand for each thing to do, `demo` if none is named.

use crate::commands::{bench, demo, info, rotate, shaders, tables, verify};
use crate::failure::Failure;
use crate::outcome::Outcome;
use clap::{Args, Parser, Subcommand};
use phasor::Rotary;
use phasor::config::Spec;
use phasor::frequencies::Frequencies;

/// Rotary position encoding on any GPU: rotate a model's queries and keys, check a device, measure it.
///
/// Without a subcommand it runs the demo: real activations of a small language model, rotated on this machine's best
/// device and compared with what transformers computes.
#[derive(Debug, Parser)]
#[command(name = "phasor", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// The device to use: a part of its name, or its number in `phasor info`
    ///
    /// Upper and lower case are the same. Without this option the fastest device is taken: a GPU if there is one, else a
    /// software device.
    #[arg(long, global = true, value_name = "NAME")]
    adapter: Option<String>,

    #[command(subcommand)]
    command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  phasor                       the demo
  phasor info                  which devices there are
  phasor verify                is this device right? every kernel variant against float64
  phasor bench                 is it fast? rotation beside a copy kernel
  phasor --adapter llvmpipe    the demo on another device
  phasor help rotate           more about one subcommand";

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Demo),
    Info(info::Info),
    Tables(tables::Tables),
    Rotate(rotate::Rotate),
    Verify(verify::Verify),
    Bench(bench::Bench),
    Shaders(shaders::Shaders),
}

impl Cli {
    /// Runs what was asked for.
    pub fn run(self) -> Result<Outcome, Failure> {
        let adapter = self.adapter.as_deref();
        match self.command.unwrap_or(Command::Demo(demo::Demo::default())) {
            Command::Demo(command) => command.run(adapter),
            Command::Info(command) => command.run(adapter),
            Command::Tables(command) => command.run(adapter),
            Command::Rotate(command) => command.run(adapter),
            Command::Verify(command) => command.run(adapter),
            Command::Bench(command) => command.run(adapter),
            Command::Shaders(command) => command.run(),
        }
    }
}

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
    #[arg(long, value_name = "SPEC", value_parser = Spec::parse)]
    pub rope: Spec,

    /// The position of the first token; may be negative
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub start: i32,
}

impl RopeArgs {
    /// Says on standard error what looked wrong in the settings.
    pub fn warn(&self) {
        for warning in self.rope.warnings() {
            eprintln!("warning: --rope: {warning}");
        }
    }

    /// The frequencies of heads of so many channels, of which `rotary_dim` turn (what the settings say if it is not
    /// given), for a sequence that ends before position `end`.
    pub fn frequencies(&self, head_dim: u32, rotary_dim: Option<u32>, end: i64) -> Result<Frequencies, Failure> {
        let dim = rotary_dim.unwrap_or_else(|| self.rope.rotary_dim(head_dim));
        // A table needs no head; but more channels than a head has are a mistake.
        let rotary = Rotary::new(head_dim, dim, 0)?;
        let seq_len = u32::try_from(end.max(0)).unwrap_or(u32::MAX);
        Ok(self.rope.law().frequencies_at(rotary.dim(), seq_len)?)
    }
}
