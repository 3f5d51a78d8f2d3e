//! `phasor bench`: is it fast?

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Bar;
use crate::{adapter, report};
use clap::Args;
use jiff::Timestamp;
use phasor_measure::{Measurement, Sizes, bench};
use pollster::block_on;
use serde_json::json;

/// Time the rotation and its table beside a kernel that only copies
///
/// A rotation moves each number once from memory and back; the fastest copy of the same bytes on the same device is what
/// it is measured by. Every operation runs once in each round, so that all of them meet the same machine. Compare the
/// minima: on a machine that does other things too, medians wander.
///
/// Times are from the device's own clock where it has one (timestamp queries), else from the host's; on a software device
/// they are what the processor spent, which other work on the machine hardly changes, and no
/// new round begins after ten seconds.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phasor bench\n  phasor bench --tokens 1 --rounds 200        one decode step\n  \
phasor bench --heads 64 --json > bench.json")]
pub struct Bench {
    /// Tokens of the one batch row
    #[arg(long, value_name = "N", default_value_t = Sizes::default().tokens)]
    tokens: u32,

    /// Query heads
    #[arg(long, value_name = "N", default_value_t = Sizes::default().heads)]
    heads: u32,

    /// Key heads
    #[arg(long, value_name = "N", default_value_t = Sizes::default().kv_heads)]
    kv_heads: u32,

    /// Channels in a head, a multiple of 8
    #[arg(long, value_name = "D", default_value_t = Sizes::default().head_dim)]
    head_dim: u32,

    /// How often each operation is timed
    #[arg(long, value_name = "N", default_value_t = Sizes::default().rounds)]
    rounds: u32,

    /// Print JSON, with device, driver, date and version
    #[arg(long)]
    json: bool,
}

impl Bench {
    pub fn run(&self, wanted: Option<&str>) -> Result<Outcome, Failure> {
        let &Self { tokens, heads, kv_heads, head_dim, rounds, .. } = self;
        let gpu = adapter::open(wanted)?;
        let bar = Bar::new();
        let sizes = Sizes { tokens, heads, kv_heads, head_dim, rounds };
        let measured = block_on(bench(&gpu, sizes, &mut |step| bar.step(step)))?;
        drop(bar);
        if self.json {
            return Outcome::json(&json!({
                "version": env!("CARGO_PKG_VERSION"),
                "date": Timestamp::now().to_string(),
                "measurement": measured,
            }));
        }
        Ok(Outcome::text(told(&measured)))
    }
}

fn told(measured: &Measurement) -> String {
    let Sizes { tokens, heads, kv_heads, head_dim, .. } = measured.sizes;
    let device = &measured.device;
    let mut text = format!("{} ({}, {})\n", device.name, device.backend, device.driver);
    text += &format!(
        "{tokens} tokens, {heads} + {kv_heads} heads of {head_dim} channels, f32 in place: {}; {} rounds, the {}'s clock\n\n",
        report::bytes(measured.sizes.tensor_bytes()),
        measured.rounds,
        match measured.clock {
            "wall" => "host",
            other => other,
        },
    );
    let rows = measured.operations.iter().map(|timing| {
        vec![
            timing.name.to_owned(),
            report::bytes(timing.bytes),
            report::seconds(timing.time.minimum),
            report::seconds(timing.time.median),
            format!("{:.1}", timing.gigabytes_per_second),
            format!("{:.2}", timing.over_copy),
        ]
    });
    text + &report::columns(&["operation", "bytes", "minimum", "median", "GB/s", "x copy"], rows, &[1, 2, 3, 4, 5])
}
