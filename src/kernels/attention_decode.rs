//! `shaders/attention_decode_scores.wgsl`, `attention_decode_values.wgsl`, `attention_decode_merge.wgsl`: attention of few
//! queries, split over keys.

use super::fused::{Composition, GateKind, Job, Options, Split, examples};
use super::grid::Limits;
use super::modules::{self, Module};
use super::plan::Scratch;
use super::region::Region;
use super::step::{Step, WORKGROUP};
use crate::Result;
use crate::gpu::Shader;
use std::ops::Range;

const SCORES: Module = modules::module!("attention_decode_scores");
const VALUES: Module = modules::module!("attention_decode_values");
const MERGE: Module = modules::module!("attention_decode_merge");

/// Keys to an invocation on a device that is a CPU, where a workgroup's own costs weigh more than idle cores, and on a
/// GPU.
const RUN_ON_CPU: usize = 16;
const RUN_ON_GPU: usize = 4;

/// Up to so many splits each of their invocations stores its sum of gates, which takes no barrier; every split reads the
/// sums of those to its right, so that for more of them a sum to a split is less.
const FEW_SPLITS: usize = 32;

/// What makes one variant differ from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Variant {
    options: Options,
    /// Four queries to a workgroup, or one.
    fours: bool,
    gates: Option<GateKind>,
    gates_see_bias: bool,
    /// Few splits: a sum of gates to each invocation, not to each split.
    few_splits: bool,
}

impl Variant {
    fn new(job: &Job, few_splits: bool) -> Self {
        let [_, tokens, ..] = job.q.layout.shape();
        Self {
            options: job.options(),
            fours: tokens * job.group > 1,
            gates: job.gate_kind(),
            gates_see_bias: job.gates_see_bias(),
            few_splits,
        }
    }

    fn rows(self) -> usize {
        if self.fours { 4 } else { 1 }
    }

    fn shader(self, kernel: Module, chosen: &[Module], names: &[(&str, bool)], see_bias: bool) -> Shader {
        Composition {
            kernel,
            options: self.options,
            chosen,
            written_out: None,
            names,
            constants: vec![("GATES_SEE_BIAS", f64::from(u8::from(see_bias)))],
            workgroup: WORKGROUP,
        }
        .shader()
    }

    fn rows_module(self) -> Module {
        if self.fours { modules::DECODE_FOUR } else { modules::DECODE_ONE }
    }

    fn scores(self) -> Shader {
        let gates: &[Module] = match self.gates {
            Some(GateKind::Keys) => &[modules::GATES_FROM_KEYS, modules::DECODE_GATES_APART],
            Some(GateKind::Values) => &[modules::GATES_FROM_VALUES, modules::DECODE_GATES_APART],
            Some(GateKind::Logits) | None => &[modules::DECODE_GATES_FROM_LOGITS],
        };
        let contextual = self.gates.is_some();
        let counts: &[Module] = match (contextual, self.few_splits) {
            (false, _) => &[modules::DECODE_NO_COUNTS],
            (true, false) => &[modules::DECODE_COUNTS, modules::DECODE_COUNTS_OF_SPLITS],
            (true, true) => &[modules::DECODE_COUNTS, modules::DECODE_COUNTS_OF_INVOCATIONS],
        };
        let products = if self.fours { modules::DECODE_FOUR_PRODUCTS } else { modules::DECODE_ONE_PRODUCTS };
        let [keep, bias, key_range] = self.options.of_logits();
        self.shader(
            SCORES,
            &[&[modules::DECODE_ROWS, self.rows_module(), products, keep, bias, key_range], gates, counts].concat(),
            &[
                ("q", true),
                ("k", true),
                ("v", self.gates == Some(GateKind::Values)),
                ("gate_keys", self.gates == Some(GateKind::Keys)),
                ("keep", self.options.keep),
                ("bias", self.options.has_bias()),
                ("key_ranges", self.options.key_ranges),
                ("logits", true),
                ("stored_gates", contextual),
            ],
            self.gates_see_bias,
        )
    }

    fn without_keys(self) -> Self {
        Self { options: self.options.without_keys(), ..self }
    }

    fn values(self) -> Shader {
        let contextual = self.gates.is_some();
        let positions = if contextual { modules::DECODE_CONTEXTUAL } else { modules::DECODE_PLAIN };
        let [.., key_range] = self.options.of_logits();
        let [gate_sum, _] = self.options.of_counts();
        self.without_keys().shader(
            VALUES,
            &[modules::DECODE_ROWS, self.rows_module(), key_range, gate_sum, positions],
            &[
                ("v", true),
                ("key_ranges", self.options.key_ranges),
                ("gate_sum", contextual && self.options.gate_sum),
                ("logits", true),
                ("stored_gates", contextual),
                ("z", contextual),
                ("partials", true),
            ],
            true,
        )
    }

    fn merge(self) -> Shader {
        let counts = if self.options.gate_sum_out { modules::MERGE_COUNTS } else { modules::MERGE_NO_COUNTS };
        let sums = Options { gate_sum: self.options.gate_sum && self.options.gate_sum_out, ..self.options };
        let [gate_sum, gate_sum_out] = sums.of_counts();
        let lse = self.options.of_lse();
        self.without_keys().shader(
            MERGE,
            &[lse, gate_sum, gate_sum_out, counts],
            &[
                ("out", true),
                ("lse", self.options.lse),
                ("gate_sum", sums.gate_sum),
                ("gate_sum_out", self.options.gate_sum_out),
                ("stored_gates", self.options.gate_sum_out),
                ("partials", true),
            ],
            true,
        )
    }
}

/// Some of every kind.
pub(crate) fn all() -> impl Iterator<Item = Shader> {
    let variants = examples().flat_map(|(options, gates, _)| {
        let kinds = [(false, false), (false, true), (true, false), (true, true)];
        kinds.map(|(fours, few_splits)| Variant { options, fours, gates, gates_see_bias: true, few_splits })
    });
    // Some parts are the same for several variants.
    let mut names = std::collections::HashSet::new();
    let parts = variants.flat_map(|variant| [variant.scores(), variant.values(), variant.merge()]);
    parts.filter(move |shader| names.insert(shader.name.clone()))
}

/// How many keys of a split an invocation takes at most: fewer where no binding holds the keys of all.
fn longest_run(job: &Job, limits: Limits, software: bool) -> Result<usize> {
    let mut run = if software { RUN_ON_CPU } else { RUN_ON_GPU };
    while run > 4 && !job.window(0..job.keys.min(run * WORKGROUP as usize))?.keys_fit(limits) {
        run /= 2;
    }
    Ok(run)
}

/// How many splits the keys make, and how many keys of a split an invocation takes: fours of keys, no more than needed.
fn splits_and_run(keys: usize, most: usize) -> (usize, usize) {
    let workgroup = WORKGROUP as usize;
    let run = keys.div_ceil(workgroup).next_multiple_of(4).clamp(4, most);
    (keys.div_ceil(workgroup * run).max(1), run)
}

/// Runs of neighbouring splits whose keys can be bound at once, in as few pieces as halving makes.
fn windows(job: &Job, limits: Limits, splits: Range<usize>, keys_each: usize) -> Result<Vec<(usize, Job)>> {
    let keys = splits.start * keys_each..(splits.end * keys_each).min(job.keys);
    let window = job.window(keys)?;
    if splits.len() <= 1 || window.keys_fit(limits) {
        return Ok(vec![(splits.start, window)]);
    }
    let middle = splits.start + splits.len() / 2;
    let mut all = windows(job, limits, splits.start..middle, keys_each)?;
    all.extend(windows(job, limits, middle..splits.end, keys_each)?);
    Ok(all)
}

/// Scores, values and the merge of a job over a region. Keys that no binding holds are taken in several dispatches.
pub(crate) fn steps(
    job: &Job,
    region: &Region,
    scratch: &mut Scratch,
    limits: Limits,
    software: bool,
) -> Result<Vec<Step>> {
    let [batch, tokens, heads, _] = job.q.layout.shape();
    let [_, _, kv_heads, _] = job.k.layout.shape();
    let keys = job.keys;
    let (_, words) = job.words();
    let (splits, run) = splits_and_run(keys, longest_run(job, limits, software)?);
    let variant = Variant::new(job, splits <= FEW_SPLITS);
    let counts = if variant.few_splits { splits * WORKGROUP as usize } else { splits };
    let contextual = job.cope.is_some();
    let mut take = |wanted: bool, channels: usize| wanted.then(|| scratch.take(region.shape(channels))).transpose();
    let fours_of_keys = keys.next_multiple_of(4).max(4);
    let split = Split {
        logits: take(true, fours_of_keys)?,
        gates: take(contextual, 4 * counts + fours_of_keys)?,
        partials: take(true, 4 * splits * (words + 1))?,
        splits,
        counts,
        run,
        first: 0,
    };
    let tasks = (tokens * job.group).div_ceil(variant.rows());
    let windows = windows(job, limits, 0..splits, run * WORKGROUP as usize)?;
    let ends = windows.iter().skip(1).map(|(first, _)| *first).chain([splits]);
    let over = |shader: Shader| {
        windows.iter().zip(ends.clone()).map(move |((first, window), end)| {
            let split = Split { first: *first, ..split };
            window.step(shader.clone(), split, [end - first, kv_heads, batch * tasks])
        })
    };
    // The gates of all keys to the right are summed before the first position is made of them.
    let (scores, values) = (over(variant.scores()), over(variant.values()));
    let merge = job.step(variant.merge(), split, [tokens, heads, batch]);
    Ok(job.position_logits().into_iter().chain(scores).chain(values).chain([merge]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_hold_all_keys_and_none_is_empty() {
        for most in [RUN_ON_GPU, RUN_ON_CPU] {
            for keys in [1, 63, 64, 65, 256, 257, 1024, 1025, 2300, 32_768, 1 << 20] {
                let (splits, run) = splits_and_run(keys, most);
                let split = run * WORKGROUP as usize;
                assert!(splits * split >= keys && (splits - 1) * split < keys, "{keys}: {splits} of {split}");
                assert!(run.is_multiple_of(4));
            }
            assert_eq!(splits_and_run(0, most), (1, 4));
        }
        assert_eq!(splits_and_run(32_768, RUN_ON_CPU), (32, 16));
    }
}
