//! `shaders/attention_rows.wgsl`: attention of many queries on devices that are CPUs.

mod unrolled;

use super::fused::{GateSource, Job, Options, Split, bindings};
use super::modules::{self, Module};
use super::step::Step;
use crate::gpu::Shader;
use unrolled::{GateWords, Unrolled};

const KERNEL: Module = Module { name: "attention_rows", wgsl: include_str!("../../shaders/attention_rows.wgsl") };

/// Invocations to a group: as many as a CPU's vector registers hold lanes, so that a group ends with its own last key.
const WORKGROUP: u32 = 8;

/// Words of queries and sums to an invocation at most: what the caches next to a core hold of eight lanes.
const WORDS: usize = 256;

/// How many keys a row may have: a block of one key takes two iterations, of the 65,535 after which Mesa's llvmpipe ends
/// an invocation's loops.
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
        let named = [self.options.of_words(), self.options.of_lse(), kind, lanes];
        let named = named.into_iter().chain(self.options.of_logits()).chain(self.options.of_counts());
        let named: Vec<_> = named.collect();
        let shared = [modules::PLACE, modules::MASKED, modules::COUNT, modules::ATTENTION, modules::FOUR_ROWS, KERNEL];
        let counts = contextual.then_some(modules::FOUR_COUNTS);
        let unrolled = self.unrolled.wgsl();
        let texts: Vec<_> = shared.iter().chain(&counts).chain(&named).map(|module| module.wgsl).collect();
        let names: Vec<_> = named.iter().map(|module| module.name).collect();
        let flag = |on: bool| f64::from(u8::from(on));
        let mut constants = vec![("WG_SIZE", WORKGROUP.into()), ("GATES_SEE_BIAS", flag(self.gates_see_bias))];
        if contextual {
            constants.push(("COUNT_ALL", flag(self.options.gate_sum_out)));
        }
        Shader {
            name: format!("{}.{}.{}", KERNEL.name, self.unrolled.name(), names.join(".")),
            wgsl: Shader::compose(&[texts.as_slice(), &[&unrolled]].concat()),
            constants,
            bindings: bindings(&[
                ("q", true),
                ("k", true),
                ("v", true),
                ("out", true),
                ("query", self.unrolled.contextual_query),
                ("embeddings", contextual),
                ("gate_keys", self.unrolled.gates == Some(GateWords::Keys)),
                ("keep", self.options.keep),
                ("bias", self.options.bias),
                ("key_ranges", self.options.key_ranges),
                ("gate_sum", self.options.gate_sum),
                ("gate_sum_out", self.options.gate_sum_out),
                ("lse", self.options.lse),
                ("z", contextual),
            ]),
            workgroup: [WORKGROUP, 1, 1],
        }
    }
}

/// All of a job's queries in one dispatch.
pub(crate) fn step(job: &Job, subgroups: bool) -> Step {
    let (words, value_words) = job.words();
    let [batch, tokens, heads, _] = job.q.1.shape();
    // Two fours read each key half as often, but take twice as long to compile.
    let fours = if tokens > 4 * WORKGROUP as usize && 8 * (words + value_words) <= WORDS { 2 } else { 1 };
    let variant = Variant {
        options: job.options(),
        unrolled: Unrolled {
            fours,
            words,
            value_words,
            gates: job.cope.map(|cope| match cope.gates {
                GateSource::Logits => GateWords::Logits,
                GateSource::Keys(_) => GateWords::Keys,
                GateSource::Values => GateWords::Values,
            }),
            contextual_query: job.cope.is_some_and(|cope| cope.query.is_some()),
        },
        gates_see_bias: job.cope.is_none_or(|cope| cope.gates_see_bias),
        subgroups,
    };
    let groups = [tokens.div_ceil(4 * fours * WORKGROUP as usize), heads, batch];
    job.step(variant.shader(), Split::default(), groups)
}
