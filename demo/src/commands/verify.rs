//! `phasor verify`: is this device right?

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Bar;
use crate::{adapter, report};
use clap::Args;
use phasor_measure::{Verification, verify};
use pollster::block_on;
use serde_json::json;

/// Check every kernel variant on this device against float64
///
/// Rotations and tables in every variant: both layouts' paths, in place and out, packed in one buffer and apart, with a
/// table and without, positions from a start, per row and per token, both pairings, all directions, whole heads and parts
/// of them. Positions reach to 2^24 - 1, below zero, and to both ends of a 32-bit integer. What lies around the tensors
/// must stay as it was.
///
/// The bound of each number follows from the arithmetic, not from what devices were seen to do. The exit code is 0 only
/// if every number is within its bound. Run this on a new GPU, a new driver, a new browser.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phasor verify\n  phasor verify --adapter 1\n  phasor verify --json > this-device.json")]
pub struct Verify {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub fn run(&self, wanted: Option<&str>) -> Result<Outcome, Failure> {
        let gpu = adapter::open(wanted)?;
        let bar = Bar::new();
        let verification = block_on(verify(&gpu, &mut |step| bar.step(step)))?;
        drop(bar);
        let outcome = if self.json {
            Outcome::json(&json!({ "version": env!("CARGO_PKG_VERSION"), "verification": verification }))?
        } else {
            Outcome::text(told(&verification))
        };
        Ok(outcome.well(verification.passed))
    }
}

fn told(verification: &Verification) -> String {
    let device = &verification.device;
    let mut text = format!("{} ({}, {})\n\n", device.name, device.backend, device.driver);
    let rows = verification.variants.iter().map(|variant| {
        vec![
            variant.shader.clone(),
            variant.cases.to_string(),
            variant.values.to_string(),
            format!("{:.2e}", variant.largest_error),
            format!("{:.0} %", 100.0 * variant.share()),
            if variant.passed { "ok" } else { "OUT OF BOUNDS" }.to_owned(),
        ]
    });
    text += &report::columns(&["kernel variant", "cases", "values", "largest error", "of bound", ""], rows, &[1, 2, 3, 4]);
    for variant in verification.variants.iter().filter(|variant| !variant.passed) {
        text += &format!("\n{}\n  {}\n", variant.shader, variant.worst_case);
        text += &format!("  off by {:.3e}, may be off by {:.3e}\n", variant.worst_error, variant.worst_bound);
    }
    if !verification.not_reached.is_empty() {
        text += &format!("\nNever chosen on this device: {}\n", verification.not_reached.join(", "));
    }
    let (values, variants) = (verification.variants.iter().map(|v| v.values).sum::<u64>(), verification.variants.len());
    text += &if verification.passed {
        format!("\nAll {values} values of {variants} variants are within their bounds.\n")
    } else {
        "\nThis device computes wrong numbers. Update its driver and try again; if that does not help, please report\n\
         the output of `phasor verify --json` and `phasor info --json`.\n"
            .to_owned()
    };
    text
}
