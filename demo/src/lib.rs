//! The command `phasor`: rotary encodings on whatever GPU is there, from model files to a report on the device.
//!
//! A library so that fuzz targets and their corpus go in by the door that users take: `main.rs` is [`run`] and nothing else.

mod adapter;
mod cli;
mod commands;
mod encoding;
mod explain;
mod failure;
mod gguf;
mod model;
mod operand;
mod outcome;
mod positions;
mod progress;
mod report;
mod rope_args;
mod tensors;
mod whole;

use clap::{CommandFactory, FromArgMatches};
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command with these arguments, the program's name first: what it has to say goes to standard output and
/// standard error. The code is 0 if all was well, 1 if not, and 2 for arguments that nobody knows.
pub fn run(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> ExitCode {
    let mut command = whole::with_negative_numbers(cli::Cli::command());
    let parsed = command.try_get_matches_from_mut(arguments).and_then(|matches| cli::Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(other) => {
            // Help and version are answers, and a reader that stopped reading is no failure.
            let _ = other.print();
            return if other.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    match cli.run().and_then(outcome::Outcome::print) {
        Ok(code) => code,
        Err(failure) => {
            failure::say(failure.to_string().trim_end());
            ExitCode::FAILURE
        }
    }
}
