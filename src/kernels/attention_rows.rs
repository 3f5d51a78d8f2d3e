//! `shaders/attention_rows.wgsl`: attention of many queries on devices that are CPUs.

mod unrolled;

use super::fused::{Composition, GateKind, Job, Options, Split, examples, expect_keys};
use super::modules::{self, Lane, Module};
use super::rotation::Lanes;
use super::step::Step;
use crate::Result;
use crate::gpu::Shader;
use unrolled::{Turning, Unrolled};

const KERNEL: Module = modules::module!("attention_rows");

/// Invocations to a group: as many as a CPU's vector registers hold lanes, so that a group ends with its own last key.
const WORKGROUP: u32 = 8;

/// Words of queries and sums to an invocation at most: what the caches next to a core hold of eight lanes.
const WORDS: usize = 256;

/// How many keys and positions there may be: each takes up to two iterations, of the 65,535 after which Mesa's llvmpipe
/// silently ends an invocation's loops.
pub(crate) const MOST_KEYS: usize = 30_000;

/// What makes one variant differ from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Variant {
    options: Options,
    unrolled: Unrolled,
    gates_see_bias: bool,
    subgroups: bool,
}

impl Variant {
    fn shader(&self) -> Shader {
        let contextual = self.unrolled.gates.is_some();
        let lanes = if self.subgroups { modules::LANES_SUBGROUP } else { modules::LANES_ALONE };
        let kind = if contextual { modules::ROWS_CONTEXTUAL } else { modules::ROWS_PLAIN };
        let chosen = [modules::FOUR_ROWS, kind, lanes, self.options.of_lse()];
        let chosen = chosen.into_iter().chain(contextual.then_some(modules::FOUR_COUNTS));
        let chosen: Vec<_> = chosen.chain(self.options.of_logits()).chain(self.options.of_counts()).collect();
        let flag = |on: bool| f64::from(u8::from(on));
        let mut constants = vec![("GATES_SEE_BIAS", flag(self.gates_see_bias))];
        if contextual {
            constants.push(("COUNT_ALL", flag(self.options.gate_sum_out)));
        }
        Composition {
            kernel: KERNEL,
            options: self.options,
            chosen: &chosen,
            written_out: Some((self.unrolled.name(), self.unrolled.wgsl())),
            names: &[
                ("q", true),
                ("k", true),
                ("v", true),
                ("out", true),
                ("query", self.unrolled.contextual_query),
                ("embeddings", contextual),
                ("gate_keys", self.unrolled.gates == Some(GateKind::Keys)),
                ("keep", self.options.keep),
                ("bias", self.options.has_bias()),
                ("key_ranges", self.options.key_ranges),
                ("gate_sum", self.options.gate_sum),
                ("gate_sum_out", self.options.gate_sum_out),
                ("lse", self.options.lse),
                ("z", contextual),
            ],
            constants,
            workgroup: WORKGROUP,
        }
        .shader()
    }
}

/// Some of every kind.
pub(crate) fn all() -> impl Iterator<Item = Shader> {
    examples().flat_map(|(options, gates, contextual_query)| {
        [(1, false), (2, true)].map(|(fours, subgroups)| {
            let turning = match (options.rotation, options.fours()) {
                (None, _) => Turning::No,
                (Some(_), true) => Turning::Lanes(Lanes { first: 0, count: 1, distance: 1 }),
                (Some(_), false) => Turning::Channels,
            };
            let unrolled = Unrolled { fours, words: 2, value_words: 3 - fours, gates, contextual_query, turning };
            let unrolled =
                if gates == Some(GateKind::Values) { Unrolled { value_words: 2, ..unrolled } } else { unrolled };
            Variant { options, unrolled, gates_see_bias: true, subgroups }.shader()
        })
    })
}

/// All of a job's queries in one dispatch.
///
/// # Errors
/// [`Tensor`](crate::ErrorKind::Tensor) for more than [`MOST_KEYS`] keys and positions.
pub(crate) fn step(job: &Job, subgroups: bool) -> Result<Step> {
    expect_keys(job, MOST_KEYS, "rows")?;
    let (words, value_words) = job.words();
    let [batch, tokens, heads, _] = job.q.layout.shape();
    // Two fours read each key half as often, but take twice as long to compile.
    let fours = if tokens > 4 * WORKGROUP as usize && 8 * (words + value_words) <= WORDS { 2 } else { 1 };
    let options = job.options();
    let turning = match &job.rotation {
        None => Turning::No,
        Some(rotation) if options.fours() => Turning::Lanes(Lanes::new(rotation, Lane::Four)),
        Some(_) => Turning::Channels,
    };
    let variant = Variant {
        options,
        unrolled: Unrolled {
            fours,
            words,
            value_words,
            gates: job.gate_kind(),
            contextual_query: job.cope.is_some_and(|cope| cope.query.is_some()),
            turning,
        },
        gates_see_bias: job.gates_see_bias(),
        subgroups,
    };
    let groups = [tokens.div_ceil(4 * fours * WORKGROUP as usize), heads, batch];
    Ok(job.step(variant.shader(), Split::default(), groups))
}
