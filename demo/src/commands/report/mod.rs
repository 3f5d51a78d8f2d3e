//! `phasor report`: results of `phasor bench` side by side.

mod curves;
mod markdown;
mod picture;
mod ratios;
mod results;

use crate::failure::Failure;
use crate::outcome::Outcome;
use clap::Args;
use std::path::{Path, PathBuf};

/// Compare devices: results of `phasor bench --json` as Markdown and as pictures
///
/// Prints a table for each measurement, with a row for each operation and a column for each device: how many times as long
/// it takes as what bounds it on that device, and at which rate. Tables of the first result and of curves follow, where the
/// files hold any. Of measurements of the same tensors in one file the last one counts.
///
/// Pictures are SVG, for light pages and dark ones.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  phasor bench --json > here.json
  phasor report here.json
  phasor report benches/results/*.json --ratios ratios.svg > ratios.md
  phasor bench curve --json > curve.json
  phasor report curve.json --curves curves.svg")]
pub struct Report {
    /// What `phasor bench --json` printed
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Draw the ratios into this file
    #[arg(long, value_name = "SVG")]
    ratios: Option<PathBuf>,

    /// Draw the curves into this file
    #[arg(long, value_name = "SVG")]
    curves: Option<PathBuf>,
}

impl Report {
    pub fn run(&self) -> Result<Outcome, Failure> {
        let columns = results::read(&self.files)?;
        if let Some(path) = &self.ratios {
            draw(path, ratios::picture(&columns), "no measurement", "`phasor bench --json`")?;
        }
        if let Some(path) = &self.curves {
            draw(path, curves::picture(&columns), "no curve of two lengths", "`phasor bench curve --json`")?;
        }
        Ok(Outcome::text(markdown::all(&columns)))
    }
}

/// Writes a picture, if there is something to draw.
fn draw(path: &Path, svg: Result<Option<String>, Failure>, nothing: &str, source: &str) -> Result<(), Failure> {
    let svg = svg?.ok_or_else(|| {
        Failure::new(format!("{}: the files hold {nothing}", path.display())).next(format!("{source} prints some"))
    })?;
    std::fs::write(path, svg).map_err(|e| Failure::file(path, e))
}
