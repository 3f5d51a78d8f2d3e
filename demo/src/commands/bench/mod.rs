//! `phasor bench`: is it fast?

mod first;
mod told;

use crate::adapter;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Bar;
use crate::whole::whole;
use clap::{Args, ValueEnum};
use first::{FirstResult, Work};
use jiff::Timestamp;
use phasor::Gpu;
use phasor_measure::{AttentionSizes, CurveSizes, Curves, Measurement, ProjectionSizes, Sizes, Subject, bench};
use pollster::block_on;
use serde::Serialize;

/// Time rotation, attention and linear layers beside what bounds them
///
/// A rotation moves each number once from memory and back: it is measured by the fastest copy of the same bytes on the same
/// device. Attention of a prompt with contextual encoding (CoPE) is measured by the same without, beside a square matrix
/// product of about as many operations, and a decode step by a kernel that only reads the cached keys and values. A linear
/// layer is measured by the schedule that the library chooses, and for few tokens by a kernel that only reads the weights.
/// Every operation runs once in each round, so that all of them meet the same machine. Compare the minima: on a machine that
/// does other things too, medians wander.
///
/// Times are from the device's own clock where it has one (timestamp queries), else from the host's; on a software device
/// they are what the processor spent, which other work on the machine hardly changes, and no new round begins after ten
/// seconds. Memory is that of the tensors and of an operation's scratch memory.
///
/// The first result is timed in processes of their own, from their start to numbers on the host: with an empty shader cache,
/// and with the one that the run before has filled. Where the system lets nobody choose the cache (Windows, macOS) there is
/// one run, with the cache as it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  phasor bench
  phasor bench rotation --tokens 1 --rounds 200          one decode step
  phasor bench attention --tokens 512,2048,8192
  phasor bench decode --keys 32768 --heads 32 --kv-heads 8 --head-dim 128
  phasor bench projection --tokens 1,512 --inputs 4096 --outputs 11008
  phasor bench variants --head-dim 128                   what each schedule and element type brings
  phasor bench curve --to 16384 --budget 60              time and memory as sequences grow
  phasor bench --json > bench.json                       for `phasor report`")]
pub struct Bench {
    /// What to time; all but variants and curve without this
    #[arg(value_name = "WHAT")]
    what: Option<What>,

    /// Tokens of the one batch row, one run for each number [default: 2048; for attention, projection and
    /// variants, by device]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = whole::<u32>)]
    tokens: Vec<u32>,

    /// Keys in the cache of a decode step, one run for each number [default: 4096,32768; 4096 for variants]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = whole::<u32>)]
    keys: Vec<u32>,

    /// Query heads [default: 32 for rotation, 8 for attention and curves]
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    heads: Option<u32>,

    /// Key heads [default: 8]
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    kv_heads: Option<u32>,

    /// Channels in a head, a multiple of 8 for rotation [default: 128 for rotation, 64 for
    /// attention and curves, 64, 96, 128 and 256 for variants]
    #[arg(long, value_name = "D", value_parser = whole::<u32>)]
    head_dim: Option<u32>,

    /// Contextual positions [default: 64]
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    positions: Option<u32>,

    /// Inputs of a linear layer [default: 4096, or 1024 on a software device]
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    inputs: Option<u32>,

    /// Outputs of a linear layer [default: as many as inputs]
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    outputs: Option<u32>,

    /// Leave out attention with all logits in memory, which takes a software device some fifty times as long
    #[arg(long)]
    fused: bool,

    /// How often each operation is timed [default: 30; 10 for attention, 5 at each length of a curve]
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    rounds: Option<u32>,

    /// The shortest sequence of a curve; the next ones are twice as long each [default: 128]
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    from: Option<u32>,

    /// The longest sequence of a curve [default: 65536]
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    to: Option<u32>,

    /// A curve ends where all operations, once each, would take longer than this [default: 10]
    ///
    /// How long the first of its lengths would take is known from shorter ones, which are tried before.
    #[arg(long, value_name = "SECONDS", value_parser = whole::<u32>)]
    budget: Option<u32>,

    /// Print JSON, with device, driver, date, version and commit
    #[arg(long)]
    json: bool,

    /// Get this first result in this very process, and print its parts
    #[arg(long, hide = true)]
    first: Option<Work>,
}

/// What can be timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Queries and keys, and their table
    Rotation,
    /// Attention of a prompt, and a matrix product beside it
    Attention,
    /// One more token after those in a cache
    Decode,
    /// Linear layers, by each schedule
    Projection,
    /// Attention by each schedule and element type, for several head dims
    Variants,
    /// From the start of a process to the first numbers
    First,
    /// Time and memory as sequences grow, and the powers that they grow by
    Curve,
}

/// All that was measured, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Results {
    version: &'static str,
    /// What the command was built from; `None` outside of a repository.
    commit: Option<&'static str>,
    date: String,
    first_results: Vec<FirstResult>,
    measurements: Vec<Measurement>,
    curves: Vec<Curves>,
}

impl What {
    /// What is timed if nothing is named.
    const USUAL: [Self; 5] = [Self::Rotation, Self::Attention, Self::Decode, Self::Projection, Self::First];

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl Bench {
    pub fn run(&self, wanted: Option<&str>) -> Result<Outcome, Failure> {
        self.expect_own_options()?;
        self.expect_caches()?;
        if let Some(work) = self.first {
            return Outcome::json(&first::here(wanted, work)?);
        }
        let results = self.results(wanted)?;
        if self.json { Outcome::json(&results) } else { Ok(Outcome::text(told::all(&results))) }
    }

    fn results(&self, wanted: Option<&str>) -> Result<Results, Failure> {
        let gpu = adapter::open(wanted)?;
        let bar = Bar::new();
        let measure = |subject| match subject {
            Subject::Rotation(sizes) => block_on(bench::rotation(&gpu, sizes, &mut |step| bar.step(step))),
            Subject::Attention(sizes) => block_on(bench::attention(&gpu, sizes, &mut |step| bar.step(step))),
            Subject::Projection(sizes) => block_on(bench::projection(&gpu, sizes, &mut |step| bar.step(step))),
            Subject::Variants(sizes) => block_on(bench::variants(&gpu, sizes, &mut |step| bar.step(step))),
        };
        let subjects = self.subjects(&gpu);
        subjects.iter().try_for_each(|subject| subject.check(&gpu))?;
        let measurements = subjects.into_iter().map(measure).collect::<phasor::Result<_>>()?;
        let curves = match self.what {
            Some(What::Curve) => vec![block_on(bench::curves(&gpu, self.curve(), &mut |step| bar.step(step)))?],
            _ => Vec::new(),
        };
        drop(bar);
        // In processes of their own, and last: impossible sizes are refused before.
        let first_results = if self.wants(What::First) { first::measure(wanted)? } else { Vec::new() };
        Ok(Results {
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("PHASOR_COMMIT"),
            date: Timestamp::now().to_string(),
            first_results,
            measurements,
            curves,
        })
    }

    fn wants(&self, what: What) -> bool {
        self.timed().contains(&what)
    }

    fn timed(&self) -> &[What] {
        self.what.as_ref().map_or(&What::USUAL, std::slice::from_ref)
    }

    /// Refuses an option that nothing of what is timed goes by.
    fn expect_own_options(&self) -> Result<(), Failure> {
        use What::{Attention, Curve, Decode, Projection, Rotation, Variants};
        let heads = &[Rotation, Attention, Decode, Variants, Curve];
        let options: [(&str, bool, &[What]); 13] = [
            ("--tokens", !self.tokens.is_empty(), &[Rotation, Attention, Projection, Variants]),
            ("--keys", !self.keys.is_empty(), &[Decode, Variants]),
            ("--heads", self.heads.is_some(), heads),
            ("--kv-heads", self.kv_heads.is_some(), heads),
            ("--head-dim", self.head_dim.is_some(), heads),
            ("--positions", self.positions.is_some(), &[Attention, Decode, Variants, Curve]),
            ("--inputs", self.inputs.is_some(), &[Projection]),
            ("--outputs", self.outputs.is_some(), &[Projection]),
            ("--fused", self.fused, &[Attention, Decode]),
            ("--rounds", self.rounds.is_some(), &[Rotation, Attention, Decode, Projection, Variants, Curve]),
            ("--from", self.from.is_some(), &[Curve]),
            ("--to", self.to.is_some(), &[Curve]),
            ("--budget", self.budget.is_some(), &[Curve]),
        ];
        let foreign =
            |(_, given, takers): &(&str, bool, &[What])| *given && !takers.iter().any(|&what| self.wants(what));
        let Some((option, _, takers)) = options.into_iter().find(foreign) else { return Ok(()) };
        let was = self.what.map_or("without a word for what to time".to_owned(), |what| format!("for {}", what.name()));
        let takers = takers.iter().map(|what| what.name()).collect::<Vec<_>>();
        let first = takers.first().cloned().unwrap_or_default();
        Err(Failure::new(format!("{option}: was given {was}, may be given for {}", takers.join(", ")))
            .next(format!("`phasor bench {first}` takes it; `phasor bench --help` tells what each is about")))
    }

    /// Refuses decode steps over one key, which are prompts of one token.
    fn expect_caches(&self) -> Result<(), Failure> {
        match self.keys.iter().find(|&&keys| keys < 2) {
            None => Ok(()),
            Some(keys) => {
                Err(Failure::new(format!("--keys: was {keys}, may be 2 or more: a cache, and the token itself")))
            }
        }
    }

    /// What was asked for, run by run.
    fn subjects(&self, gpu: &Gpu) -> Vec<Subject> {
        let lengths = |given: &[u32], default: &[u32]| if given.is_empty() { default } else { given }.to_vec();
        let mut subjects = Vec::new();
        if self.wants(What::Rotation) {
            let rotation = |tokens| Subject::Rotation(self.rotation(tokens));
            subjects.extend(lengths(&self.tokens, &[Sizes::default().tokens]).into_iter().map(rotation));
        }
        if self.wants(What::Attention) {
            let default: &[u32] = if gpu.is_software() { &[512, 2048] } else { &[512, 2048, 8192] };
            // Nobody waits for unfused attention of thousands of tokens on a software device who has not asked for it.
            let unfused = |tokens| !gpu.is_software() || tokens <= 512 || !self.tokens.is_empty();
            let prompt = |tokens| AttentionSizes { unfused: unfused(tokens), ..AttentionSizes::prompt(tokens) };
            let attention = |tokens| Subject::Attention(self.attention(prompt(tokens)));
            subjects.extend(lengths(&self.tokens, default).into_iter().map(attention));
        }
        if self.wants(What::Decode) {
            let decode = |keys| Subject::Attention(self.attention(AttentionSizes::decode(keys)));
            subjects.extend(lengths(&self.keys, &[4096, 32_768]).into_iter().map(decode));
        }
        if self.wants(What::Projection) {
            let channels = if gpu.is_software() { 1024 } else { 4096 };
            let projection = |tokens| Subject::Projection(self.projection(ProjectionSizes::square(tokens, channels)));
            subjects.extend(lengths(&self.tokens, &[1, 512]).into_iter().map(projection));
        }
        if self.wants(What::Variants) {
            let default: &[u32] = if gpu.is_software() { &[256] } else { &[2048] };
            let prompts = lengths(&self.tokens, default).into_iter().map(AttentionSizes::prompt);
            let steps = lengths(&self.keys, &[4096]).into_iter().map(AttentionSizes::decode);
            let sizes: Vec<_> = prompts.chain(steps).map(|sizes| self.attention(sizes)).collect();
            let head_dims = self.head_dim.map_or(vec![64, 96, 128, 256], |head_dim| vec![head_dim]);
            let variants =
                |head_dim| sizes.iter().map(move |&sizes| Subject::Variants(AttentionSizes { head_dim, ..sizes }));
            subjects.extend(head_dims.into_iter().flat_map(variants));
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
            unfused: default.unfused && !self.fused,
            ..default
        }
    }

    fn projection(&self, default: ProjectionSizes) -> ProjectionSizes {
        let inputs = self.inputs.unwrap_or(default.inputs);
        ProjectionSizes {
            inputs,
            outputs: self.outputs.unwrap_or(inputs),
            rounds: self.rounds.unwrap_or(default.rounds),
            ..default
        }
    }

    fn curve(&self) -> CurveSizes {
        let default = CurveSizes::default();
        let heads = self.heads.unwrap_or(default.heads);
        CurveSizes {
            from: self.from.unwrap_or(default.from),
            to: self.to.unwrap_or(default.to),
            heads,
            kv_heads: self.kv_heads.unwrap_or(heads.min(default.kv_heads)),
            head_dim: self.head_dim.unwrap_or(default.head_dim),
            positions: self.positions.unwrap_or(default.positions),
            rounds: self.rounds.unwrap_or(default.rounds),
            budget: self.budget.unwrap_or(default.budget),
        }
    }
}
