//! The command line: one subcommand for each thing to do, `demo` if none is named.

use crate::commands::{attention, bench, cope, demo, explain, info, report, rotate, shaders, tables, verify};
use crate::failure::Failure;
use crate::outcome::Outcome;
use clap::{Parser, Subcommand};

/// Rotary and contextual position encoding on any GPU: rotate a model's queries and keys, attend with them, check a device, measure it.
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
  phasor bench                 is it fast? rotation and attention beside what bounds them
  phasor explain --config config.json
                               what a model's rope does, layer by layer, and where each number is from
  phasor --adapter llvmpipe    the demo on another device
  phasor help rotate           more about one subcommand";

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Demo),
    Info(info::Info),
    Explain(explain::Explain),
    Tables(tables::Tables),
    Rotate(rotate::Rotate),
    Cope(cope::Cope),
    Attention(attention::Attention),
    Verify(verify::Verify),
    Bench(bench::Bench),
    Report(report::Report),
    Shaders(shaders::Shaders),
}

impl Cli {
    /// Runs what was asked for.
    pub fn run(self) -> Result<Outcome, Failure> {
        let adapter = self.adapter.as_deref();
        match self.command.unwrap_or(Command::Demo(demo::Demo::default())) {
            Command::Demo(command) => command.run(adapter),
            Command::Info(command) => command.run(adapter),
            Command::Explain(command) => command.run(),
            Command::Tables(command) => command.run(adapter),
            Command::Rotate(command) => command.run(adapter),
            Command::Cope(command) => command.run(adapter),
            Command::Attention(command) => command.run(adapter),
            Command::Verify(command) => command.run(adapter),
            Command::Bench(command) => command.run(adapter),
            Command::Report(command) => command.run(),
            Command::Shaders(command) => command.run(),
        }
    }
}
