//! `phasor verify`: is this device right?

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Bar;
use crate::{adapter, report};
use clap::Args;
use phasor_measure::{Extent, VariantCheck, Verification, verify};
use pollster::block_on;
use serde_json::json;
use std::collections::BTreeSet;

/// Check the kernels on this device against float64
///
/// Rotations and tables in every variant: both layouts' paths, in place and out, packed in one buffer and apart, into rows
/// of a cache, stored as f32, f16 and bf16, with a table and without, positions from a start, per row, per token and per
/// axis, both pairings, all directions, whole heads and parts of them. Positions reach to 2^24 - 1, below zero, and to both ends of a 32-bit integer. What lies around the tensors
/// must stay as it was.
///
/// Attention, with contextual encoding and without, as readable kernels and fused, cut in every way: masks, windows, lengths,
/// biases, kinds of gates, sums of gates handed on, parts merged, in each kind of storage.
///
/// The bound of each number follows from the arithmetic, not from what devices were seen to do. The exit code is 0 only
/// if every number is within its bound. Run this on a new GPU, a new driver, a new browser.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phasor verify\n  phasor verify --adapter 1\n  phasor verify --json > this-device.json"
)]
pub struct Verify {
    /// Only one task in seven, of every kind: a software device compiles shaders for minutes
    #[arg(long)]
    quick: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub fn run(&self, wanted: Option<&str>) -> Result<Outcome, Failure> {
        let gpu = adapter::open(wanted)?;
        let bar = Bar::new();
        let extent = if self.quick { Extent::Some } else { Extent::All };
        let verification = block_on(verify(&gpu, extent, &mut |step| bar.step(step)))?;
        drop(bar);
        let outcome = if self.json {
            Outcome::json(&json!({ "version": env!("CARGO_PKG_VERSION"), "verification": verification }))?
        } else {
            Outcome::text(told(&verification))
        };
        Ok(outcome.well(verification.passed))
    }
}

/// Variants that differ only in where angles and positions come from.
struct Group {
    name: String,
    variants: u64,
    cases: u64,
    values: u64,
    largest_error: f64,
    share: f64,
    passed: bool,
}

/// The kernel makes a line, and of the rotation, its lanes, its buffers and its element types too.
fn folded(variants: &[VariantCheck]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for variant in variants {
        let told = if variant.shader.starts_with("rope_rotate") { 4 } else { 1 };
        let name = variant.shader.split('.').take(told).collect::<Vec<_>>().join(" ");
        if groups.last().is_none_or(|group| group.name != name) {
            let none = Group { name, variants: 0, cases: 0, values: 0, largest_error: 0.0, share: 0.0, passed: true };
            groups.push(none);
        }
        if let Some(group) = groups.last_mut() {
            group.variants += 1;
            group.cases += variant.cases;
            group.values += variant.values;
            group.largest_error = group.largest_error.max(variant.largest_error);
            group.share = group.share.max(variant.share());
            group.passed &= variant.passed;
        }
    }
    groups
}

fn told(verification: &Verification) -> String {
    let device = &verification.device;
    let mut text = format!("{} ({}, {})\n\n", device.name, device.backend, device.driver);
    let rows = folded(&verification.variants).into_iter().map(|group| {
        vec![
            group.name,
            group.variants.to_string(),
            group.cases.to_string(),
            group.values.to_string(),
            format!("{:.2e}", group.largest_error),
            format!("{:.0} %", 100.0 * group.share),
            if group.passed { "ok" } else { "OUT OF BOUNDS" }.to_owned(),
        ]
    });
    let header = ["kernel", "variants", "cases", "values", "largest error", "of bound", ""];
    text += &report::columns(&header, rows, &[1, 2, 3, 4, 5]);
    for variant in verification.variants.iter().filter(|variant| !variant.passed) {
        text += &format!("\n{}\n  {}\n", variant.shader, variant.worst_case);
        text += &format!("  off by {:.3e}, may be off by {:.3e}\n", variant.worst_error, variant.worst_bound);
    }
    let list = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    if !verification.refused.is_empty() {
        text += &format!("\nBeyond this device's limits: {}\n", verification.refused.join("; "));
    }
    if !verification.not_reached.is_empty() {
        text += &format!("\nNever chosen on this device: {}\n", list(&verification.not_reached));
    }
    if !verification.not_checked.is_empty() {
        text += &format!("\nNot checked by this command: {}\n", list(&verification.not_checked));
    }
    let (values, variants) = (verification.values, verification.variants.len());
    text += &if verification.passed {
        let of_all = if verification.extent == Extent::All { "" } else { ", one task in seven," };
        format!("\nAll {values} values of {variants} variants{of_all} are within their bounds.\n")
    } else {
        "\nThis device computes wrong numbers. Update its driver and try again; if that does not help, please report\n\
         the output of `phasor verify --json` and `phasor info --json`.\n"
            .to_owned()
    };
    text
}
