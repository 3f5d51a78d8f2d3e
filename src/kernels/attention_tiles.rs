//! `shaders/attention_tiles.wgsl`: attention of many queries on GPUs.

use super::fused::{Composition, GateKind, Job, Options, Split, examples, expect_keys};
use super::modules::{self, Module};
use super::step::{Step, WORKGROUP};
use crate::Result;
use crate::gpu::Shader;

const KERNEL: Module = modules::module!("attention_tiles");

/// Queries to a workgroup, and value channels.
const TILE_ROWS: usize = WORKGROUP as usize;
const OUT_CHANNELS: usize = 64;

/// What makes one variant differ from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Variant {
    options: Options,
    gates: Option<GateKind>,
    gates_see_bias: bool,
}

impl Variant {
    fn shader(self) -> Shader {
        let contextual = self.gates.is_some();
        let kind: &[Module] = match self.gates {
            None => &[modules::TILES_PLAIN],
            Some(GateKind::Logits) => &[modules::TILES_CONTEXTUAL, modules::TILES_GATES_FROM_LOGITS],
            Some(GateKind::Keys) => &[modules::TILES_CONTEXTUAL, modules::GATES_FROM_KEYS, modules::TILES_GATES_APART],
            Some(GateKind::Values) => {
                &[modules::TILES_CONTEXTUAL, modules::GATES_FROM_VALUES, modules::TILES_GATES_APART]
            }
        };
        let chosen = kind.iter().copied().chain([self.options.of_lse()]);
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
            written_out: None,
            names: &[
                ("q", true),
                ("k", true),
                ("v", true),
                ("out", true),
                ("gate_keys", self.gates == Some(GateKind::Keys)),
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
    examples().map(|(options, gates, _)| Variant { options, gates, gates_see_bias: true }.shader())
}

/// How many keys and positions there may be on a device that is a CPU: a tile takes some hundred iterations, of the
/// 65,535 after which Mesa's llvmpipe silently ends an invocation's loops.
const MOST_KEYS_ON_CPU: usize = 4096;

/// All of a job's queries.
///
/// # Errors
/// [`Tensor`](crate::ErrorKind::Tensor) for more than [`MOST_KEYS_ON_CPU`] keys and positions there.
pub(crate) fn steps(job: &Job, software: bool) -> Result<Vec<Step>> {
    if software {
        expect_keys(job, MOST_KEYS_ON_CPU, "tiles")?;
    }
    let [batch, tokens, heads, value_channels] = job.output.layout.shape();
    let variant = Variant { options: job.options(), gates: job.gate_kind(), gates_see_bias: job.gates_see_bias() };
    let groups = [tokens.div_ceil(TILE_ROWS), heads, batch * value_channels.div_ceil(OUT_CHANNELS).max(1)];
    let tiles = job.step(variant.shader(), Split::default(), groups);
    Ok(job.position_logits().into_iter().chain([tiles]).collect())
}
