//! `phasor bench`: is it fast?

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Bar;
use crate::{adapter, report};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use phasor::Gpu;
use phasor_measure::{AttentionSizes, Measurement, Sizes, Subject, Timing, bench};
use pollster::block_on;
use serde_json::json;

/// Time rotation and attention beside what bounds them
///
/// A rotation moves each number once from memory and back: it is measured by the fastest copy of the same bytes on the same
/// device. Attention of a prompt with contextual encoding (CoPE) is measured by the same without, and a decode step by a
/// kernel that only reads the cached keys and values. Every operation runs once in each round, so that all of them meet
/// the same machine. Compare the minima: on a machine that does other things too, medians wander.
///
/// Times are from the device's own clock where it has one (timestamp queries), else from the host's; on a software device
/// they are what the processor spent, which other work on the machine hardly changes, and no new round begins after ten
/// seconds. Memory is that of the tensors and of an operation's scratch memory.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  phasor bench
  phasor bench rotation --tokens 1 --rounds 200          one decode step
  phasor bench attention --tokens 512,2048,8192
  phasor bench decode --keys 32768 --heads 32 --kv-heads 8 --head-dim 128
  phasor bench --json > bench.json")]
pub struct Bench {
    /// What to time; all of it without this
    #[arg(value_name = "WHAT")]
    what: Option<What>,

    /// Tokens of the one batch row, one run for each number [default: 2048 and, for attention, lengths by device]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    tokens: Vec<u32>,

    /// Keys in the cache of a decode step, one run for each number [default: 4096,32768]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    keys: Vec<u32>,

    /// Query heads [default: 32 for rotation, 8 for attention]
    #[arg(long, value_name = "N")]
    heads: Option<u32>,

    /// Key heads [default: 8]
    #[arg(long, value_name = "N")]
    kv_heads: Option<u32>,

    /// Channels in a head, a multiple of 8 for rotation [default: 128 for rotation, 64 for attention]
    #[arg(long, value_name = "D")]
    head_dim: Option<u32>,

    /// Contextual positions [default: 64]
    #[arg(long, value_name = "N")]
    positions: Option<u32>,

    /// How often each operation is timed [default: 30; 10 for attention]
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,

    /// Print JSON, with device, driver, date and version
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Queries and keys, and their table
    Rotation,
    /// Attention of a prompt
    Attention,
    /// One more token after those in a cache
    Decode,
}

impl Bench {
    pub fn run(&self, wanted: Option<&str>) -> Result<Outcome, Failure> {
        let gpu = adapter::open(wanted)?;
        let bar = Bar::new();
        let measured = self
            .subjects(&gpu)
            .into_iter()
            .map(|subject| match subject {
                Subject::Rotation(sizes) => block_on(bench::rotation(&gpu, sizes, &mut |step| bar.step(step))),
                Subject::Attention(sizes) => block_on(bench::attention(&gpu, sizes, &mut |step| bar.step(step))),
            })
            .collect::<phasor::Result<Vec<_>>>()?;
        drop(bar);
        if self.json {
            return Outcome::json(&json!({
                "version": env!("CARGO_PKG_VERSION"),
                "date": Timestamp::now().to_string(),
                "measurements": measured,
            }));
        }
        Ok(Outcome::text(told(&measured)))
    }

    /// What was asked for, run by run.
    fn subjects(&self, gpu: &Gpu) -> Vec<Subject> {
        let wants = |what| self.what.is_none_or(|wanted| wanted == what);
        let lengths = |given: &[u32], default: &[u32]| if given.is_empty() { default } else { given }.to_vec();
        let mut subjects = Vec::new();
        if wants(What::Rotation) {
            let rotation = |tokens| Subject::Rotation(self.rotation(tokens));
            subjects.extend(lengths(&self.tokens, &[Sizes::default().tokens]).into_iter().map(rotation));
        }
        if wants(What::Attention) {
            let default: &[u32] = if gpu.is_software() { &[512, 2048] } else { &[512, 2048, 8192] };
            // Nobody waits for unfused attention of thousands of tokens on a software device who has not asked for it.
            let unfused = |tokens| !gpu.is_software() || tokens <= 512 || !self.tokens.is_empty();
            let prompt = |tokens| AttentionSizes { unfused: unfused(tokens), ..AttentionSizes::prompt(tokens) };
            let attention = |tokens| Subject::Attention(self.attention(prompt(tokens)));
            subjects.extend(lengths(&self.tokens, default).into_iter().map(attention));
        }
        if wants(What::Decode) {
            let decode = |keys| Subject::Attention(self.attention(AttentionSizes::decode(keys)));
            subjects.extend(lengths(&self.keys, &[4096, 32_768]).into_iter().map(decode));
        }
        subjects
    }

    fn rotation(&self, tokens: u32) -> Sizes {
        let default = Sizes::default();
        Sizes {
            tokens,
            heads: self.heads.unwrap_or(default.heads),
            kv_heads: self.kv_heads.unwrap_or(default.kv_heads),
            head_dim: self.head_dim.unwrap_or(default.head_dim),
            rounds: self.rounds.unwrap_or(default.rounds),
        }
    }

    fn attention(&self, default: AttentionSizes) -> AttentionSizes {
        let heads = self.heads.unwrap_or(default.heads);
        AttentionSizes {
            heads,
            kv_heads: self.kv_heads.unwrap_or(heads.min(default.kv_heads)),
            head_dim: self.head_dim.unwrap_or(default.head_dim),
            positions: self.positions.unwrap_or(default.positions),
            rounds: self.rounds.unwrap_or(default.rounds),
            ..default
        }
    }
}

fn told(measured: &[Measurement]) -> String {
    let device = measured.first().map(|measured| &measured.device);
    let device = device.map(|device| format!("{} ({}, {})\n", device.name, device.backend, device.driver));
    device.into_iter().chain(measured.iter().map(table)).collect()
}

/// One run.
fn table(measured: &Measurement) -> String {
    let clock = if measured.clock == "wall" { "host" } else { measured.clock };
    let title = format!("\n{}; {} rounds, the {clock}'s clock\n\n", tensors(&measured.sizes), measured.rounds);
    let computes = measured.operations.iter().any(|timing| timing.flop.is_some());
    let rows = measured.operations.iter().map(|timing| row(timing, computes));
    let beside = format!("x {}", measured.baseline);
    let header = match computes {
        true => vec!["operation", "memory", "minimum", "median", "GB/s", "GFLOP/s", &beside],
        false => vec!["operation", "bytes", "minimum", "median", "GB/s", &beside],
    };
    let right: Vec<_> = (1..header.len()).collect();
    title + &report::columns(&header, rows, &right)
}

fn tensors(subject: &Subject) -> String {
    match subject {
        Subject::Rotation(Sizes { tokens, heads, kv_heads, head_dim, .. }) => {
            format!("Rotation: {tokens} tokens, {heads} + {kv_heads} heads of {head_dim} channels, f32 in place")
        }
        Subject::Attention(sizes) => {
            let AttentionSizes { tokens, keys, heads, kv_heads, head_dim, positions, .. } = sizes;
            let queries = match sizes.is_decode() {
                true if *tokens == 1 => format!("Decode: one query over {keys} keys"),
                true => format!("Decode: {tokens} queries over {keys} keys"),
                false => format!("Attention: {tokens} tokens, causal"),
            };
            format!("{queries}, {heads} over {kv_heads} heads of {head_dim} channels, {positions} positions, f32")
        }
    }
}

fn row(timing: &Timing, computes: bool) -> Vec<String> {
    let mut row = vec![
        timing.name.to_owned(),
        report::bytes(timing.memory.unwrap_or(timing.bytes)),
        report::seconds(timing.time.minimum),
        report::seconds(timing.time.median),
        format!("{:.1}", timing.gigabytes_per_second),
    ];
    if computes {
        row.push(timing.gigaflops.map_or(String::new(), |giga| format!("{giga:.1}")));
    }
    row.push(format!("{:.2}", timing.over_baseline));
    row
}
