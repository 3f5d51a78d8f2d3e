//! The command `phasor`: rotary encodings on whatever GPU is there, from model files to a report on the device.

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

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match cli.run().and_then(outcome::Outcome::print) {
        Ok(code) => code,
        Err(failure) => {
            failure::say(failure.to_string().trim_end());
            ExitCode::FAILURE
        }
    }
}
