//! What went wrong, and what to do next.

use phasor::{Error, ErrorKind};
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Says something beside the result. Where standard error is closed nobody wants to know, which is no failure.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Ends the command with exit code 1.
#[derive(Debug)]
pub struct Failure {
    what: String,
    next: Vec<String>,
}

impl Failure {
    /// Something that the command found out by itself.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), next: Vec::new() }
    }

    /// Adds something to do next.
    #[must_use]
    pub fn next(mut self, hint: impl Into<String>) -> Self {
        self.next.push(hint.into());
        self
    }

    /// Refuses an output on top of an input, by whatever name or link.
    pub fn if_same(output: &Path, input: &Path) -> Result<(), Self> {
        match same_file::is_same_file(output, input).unwrap_or(false) {
            true => Err(Self::file(output, "was the input, which would be lost; may be another file")),
            false => Ok(()),
        }
    }

    /// Refuses two outputs in one file.
    pub fn if_one(first: &Path, second: &Path) -> Result<(), Self> {
        match place(first).is_some_and(|to| place(second) == Some(to)) {
            true => Err(Self::file(second, "was named for two outputs; may be another file for each")),
            false => Ok(()),
        }
    }

    /// A file that could not be read or written.
    pub fn file(path: &Path, problem: impl fmt::Display) -> Self {
        Self::new(format!("{}: {problem}", path.display()))
    }
}

/// Where a file is or would be, by whichever path it is named.
fn place(path: &Path) -> Option<PathBuf> {
    let there = std::fs::canonicalize(path);
    let new = || Some(std::fs::canonicalize(std::path::absolute(path).ok()?.parent()?).ok()?.join(path.file_name()?));
    there.ok().or_else(new)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = Self::new(error.to_string());
        match error.kind() {
            ErrorKind::NoAdapter => failure
                .next("`phasor info` lists the devices that there are")
                .next("`phasor tables` and `phasor rotate` compute without one if you add --cpu"),
            ErrorKind::DeviceLost | ErrorKind::Device => {
                failure.next("try another device with --adapter; `phasor info` lists them")
            }
            ErrorKind::OutOfMemory => {
                failure.next("try a smaller tensor, or a device with more memory (--adapter; `phasor info` lists them)")
            }
            ErrorKind::Limit => failure.next("`phasor info` shows the limits of each device; --adapter takes another"),
            _ => failure,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.what)?;
        self.next.iter().try_for_each(|next| writeln!(f, "  next: {next}"))
    }
}
