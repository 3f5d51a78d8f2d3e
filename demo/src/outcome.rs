//! What a subcommand has to say, and whether all was well.

use crate::failure::Failure;
use serde::Serialize;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// The text for standard output and the verdict for the exit code.
#[derive(Debug)]
pub struct Outcome {
    text: String,
    well: bool,
}

impl Outcome {
    /// A text, with all well.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), well: true }
    }

    /// A result as JSON, with all well.
    pub fn json(value: &impl Serialize) -> Result<Self, Failure> {
        let text = serde_json::to_string_pretty(value).map_err(|e| Failure::new(format!("writing JSON: {e}")))?;
        Ok(Self::text(text + "\n"))
    }

    /// Whether all was well.
    #[must_use]
    pub fn well(mut self, well: bool) -> Self {
        self.well = well;
        self
    }

    /// Prints the text. A reader that stopped reading (`| head`) is no failure.
    pub fn print(self) -> Result<ExitCode, Failure> {
        let mut out = io::stdout().lock();
        match out.write_all(self.text.as_bytes()).and_then(|()| out.flush()) {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::new(format!("standard output: {e}"))),
            _ => Ok(if self.well { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        }
    }
}
