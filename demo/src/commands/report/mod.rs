//! `phasor report`: results of `phasor bench` side by side.

mod curves;
mod markdown;
mod numbers;
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
/// files hold any. What one device gave at one commit is one column, from however many files; of measurements of the same
/// tensors the last one counts.
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
        if let (Some(ratios), Some(curves)) = (&self.ratios, &self.curves) {
            Failure::if_one(ratios, curves)?;
        }
        let columns = results::read(&self.files)?;
        let ratios = self.picture(self.ratios.as_deref(), || ratios::picture(&columns), "phasor bench --json");
        let curves = self.picture(self.curves.as_deref(), || curves::picture(&columns), "phasor bench curve --json");
        // All are there before any is written.
        for (path, svg) in [ratios?, curves?].into_iter().flatten() {
            std::fs::write(path, svg).map_err(|e| Failure::file(path, e))?;
        }
        Ok(Outcome::text(markdown::all(&columns)))
    }

    /// A picture and where it goes, if it is asked for.
    fn picture<'a>(
        &self,
        path: Option<&'a Path>,
        draw: impl FnOnce() -> Result<Option<String>, Failure>,
        source: &str,
    ) -> Result<Option<(&'a Path, String)>, Failure> {
        let Some(path) = path else { return Ok(None) };
        self.files.iter().try_for_each(|file| Failure::if_same(path, file))?;
        let nothing = || {
            let nothing = format!("{}: the files hold nothing to draw there", path.display());
            Failure::new(nothing).next(format!("`{source}` prints some; a curve needs two lengths"))
        };
        Ok(Some((path, draw()?.ok_or_else(nothing)?)))
    }
}
