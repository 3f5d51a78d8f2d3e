//! `shaders/shared/attention.wgsl`: what the kernels of fused attention share.

use super::modules::{self, Module};
use super::step::{Operand, Step};
use crate::attention::VisibleKeys;
use crate::gpu::{Access, Binding, Shader};
use bytemuck::{Pod, Zeroable};
use std::f64::consts::LOG2_E;

/// The numbers behind the places in the uniform, as the shader declares them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Numbers {
    tokens: u32,
    keys: u32,
    heads: u32,
    first_head: u32,
    group: u32,
    channels: u32,
    value_channels: u32,
    last_position: u32,
    visible_start: i32,
    visible_end: i32,
    from_row_end: i32,
    range_starts: u32,
    scale: f32,
    bias_scale: f32,
    splits: u32,
    run: u32,
}

/// Attention of a region of queries, told without buffers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    /// `[batch, tokens, heads, channels]`.
    pub q: Operand,
    /// `[batch, keys, kv heads, channels]`.
    pub k: Operand,
    /// `[batch, keys, kv heads, value channels]`.
    pub v: Operand,
    /// `[batch, tokens, heads, value channels]`.
    pub output: Operand,
    /// `[batch, tokens, heads, 1]`.
    pub lse: Option<Operand>,
    /// `[batch, tokens, heads, keys]`, with 1 in place of some of the first three extents.
    pub keep: Option<Operand>,
    /// As `keep`.
    pub bias: Option<Operand>,
    /// `[batch, 1, 1, 1 or 2]`.
    pub key_ranges: Option<Operand>,
    /// The keys that the first of these tokens sees.
    pub visible: VisibleKeys,
    /// Of these query heads, counted from the first one of the first key head here.
    pub first_head: usize,
    /// Query heads to a key head.
    pub group: usize,
    pub scale: f64,
    pub cope: Option<Cope>,
}

/// Contextual position encoding in such a job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cope {
    /// As `q`; `None` for `q` itself.
    pub query: Option<Operand>,
    /// `[1, channels, 1 or heads, positions]`.
    pub embeddings: Operand,
    pub gates: GateSource,
    pub gates_see_bias: bool,
    /// `[batch, tokens, heads, 2]`.
    pub gate_sum: Option<Operand>,
    /// As `gate_sum`.
    pub gate_sum_out: Option<Operand>,
    /// Scratch, `[batch, tokens, heads, positions]`.
    pub z: Operand,
    pub bias_scale: f64,
}

/// What gates are made from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GateSource {
    /// The logits.
    Logits,
    /// Keys of their own, as `k`.
    Keys(Operand),
    /// The values.
    Values,
}

/// The scratch tensors of a decode step.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Split {
    pub logits: Option<Operand>,
    pub gates: Option<Operand>,
    pub counts: Option<Operand>,
    pub partials: Option<Operand>,
    /// Splits of the keys.
    pub splits: usize,
    /// Keys to an invocation.
    pub run: usize,
}

/// All bindings, in the order of the uniform's places.
const BINDINGS: [Binding; 18] = {
    use Access::{Read, ReadWrite};
    const fn binding(index: u32, name: &'static str, access: Access) -> Binding {
        Binding { index, name, access }
    }
    [
        binding(1, "q", Read),
        binding(8, "k", Read),
        binding(9, "v", Read),
        binding(10, "out", ReadWrite),
        binding(11, "query", Read),
        binding(12, "embeddings", Read),
        binding(13, "gate_keys", Read),
        binding(4, "keep", Read),
        binding(5, "bias", Read),
        binding(6, "key_ranges", Read),
        binding(3, "gate_sum", Read),
        binding(7, "gate_sum_out", ReadWrite),
        binding(2, "lse", ReadWrite),
        binding(14, "z", ReadWrite),
        binding(15, "logits", ReadWrite),
        binding(16, "stored_gates", ReadWrite),
        binding(17, "counts", ReadWrite),
        binding(18, "partials", ReadWrite),
    ]
};

/// The optional buffers of a job: a module for each, whether it is there or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Options {
    pub keep: bool,
    pub bias: bool,
    pub key_ranges: bool,
    pub lse: bool,
    pub gate_sum: bool,
    pub gate_sum_out: bool,
    /// Whether channels are read and written four at a time.
    pub fours: bool,
}

impl Options {
    /// Where keys are looked at.
    pub(crate) fn of_logits(self) -> [Module; 3] {
        [
            choose(self.keep, modules::KEEP_BUFFER, modules::KEEP_NONE),
            choose(self.bias, modules::BIAS_BUFFER, modules::BIAS_NONE),
            choose(self.key_ranges, modules::KEY_RANGE_BUFFER, modules::KEY_RANGE_NONE),
        ]
    }

    /// Where gates are summed up.
    pub(crate) fn of_counts(self) -> [Module; 2] {
        [
            choose(self.gate_sum, modules::GATE_SUM_BUFFER, modules::GATE_SUM_NONE),
            choose(self.gate_sum_out, modules::GATE_SUM_OUT_BUFFER, modules::GATE_SUM_OUT_NONE),
        ]
    }

    pub(crate) fn of_lse(self) -> Module {
        choose(self.lse, modules::LSE_BUFFER, modules::LSE_NONE)
    }

    pub(crate) fn of_words(self) -> Module {
        choose(self.fours, modules::WORDS_VECTOR, modules::WORDS_SCALAR)
    }
}

fn choose(on: bool, a: Module, b: Module) -> Module {
    if on { a } else { b }
}

/// The parameters and those of all bindings that have these names.
pub(crate) fn bindings(names: &[(&str, bool)]) -> Vec<Binding> {
    let used = BINDINGS.into_iter().filter(|binding| names.contains(&(binding.name, true)));
    [Binding { index: 0, name: "params", access: Access::Uniform }].into_iter().chain(used).collect()
}

impl Job {
    pub(crate) fn options(&self) -> Options {
        let words = [Some(self.q), Some(self.k), Some(self.v), Some(self.output)].into_iter();
        let cope = self.cope.iter().flat_map(|cope| [cope.query, cope.gates.keys()]);
        Options {
            keep: self.keep.is_some(),
            bias: self.bias.is_some(),
            key_ranges: self.key_ranges.is_some(),
            lse: self.lse.is_some(),
            gate_sum: self.cope.is_some_and(|cope| cope.gate_sum.is_some()),
            gate_sum_out: self.cope.is_some_and(|cope| cope.gate_sum_out.is_some()),
            fours: words.chain(cope).flatten().all(|(_, layout)| layout.is_in_fours()),
        }
    }

    /// Words of four channels of a query and of a value, the last one perhaps not full.
    pub(crate) fn words(&self) -> (usize, usize) {
        (self.q.1.shape()[3].div_ceil(4), self.v.1.shape()[3].div_ceil(4))
    }

    /// A dispatch of a shader over this job, which binds what the shader uses.
    pub(crate) fn step(&self, shader: Shader, split: Split, groups: [usize; 3]) -> Step {
        let cope = self.cope.as_ref();
        let tensors = [
            Some(self.q),
            Some(self.k),
            Some(self.v),
            Some(self.output),
            cope.and_then(|cope| cope.query),
            cope.map(|cope| cope.embeddings),
            cope.and_then(|cope| cope.gates.keys()),
            self.keep,
            self.bias,
            self.key_ranges,
            cope.and_then(|cope| cope.gate_sum),
            cope.and_then(|cope| cope.gate_sum_out),
            self.lse,
            cope.map(|cope| cope.z),
            split.logits,
            split.gates,
            split.counts,
            split.partials,
        ];
        let operands = BINDINGS.iter().zip(tensors).map(|(binding, tensor)| {
            let used = shader.bindings.iter().any(|used| used.index == binding.index);
            (binding.index, tensor.filter(|_| used))
        });
        let [_, tokens, heads, channels] = self.q.1.shape();
        let [_, keys, _, value_channels] = self.v.1.shape();
        let positions = cope.map_or(1, |cope| cope.embeddings.1.shape()[3]);
        let numbers = Numbers {
            tokens: tokens as u32,
            keys: keys as u32,
            heads: heads as u32,
            first_head: self.first_head as u32,
            group: self.group as u32,
            channels: channels as u32,
            value_channels: value_channels as u32,
            last_position: positions.saturating_sub(1) as u32,
            visible_start: self.visible.start,
            visible_end: self.visible.end,
            from_row_end: i32::from(self.visible.from_row_end),
            range_starts: self.key_ranges.map_or(0, |(_, layout)| u32::from(layout.shape()[3] == 2)),
            scale: (self.scale * LOG2_E) as f32,
            bias_scale: cope.map_or(0.0, |cope| cope.bias_scale * LOG2_E) as f32,
            splits: split.splits as u32,
            run: split.run as u32,
        };
        Step {
            operands: operands.collect(),
            word: if self.options().fours { 4 } else { 1 },
            numbers: bytemuck::bytes_of(&numbers).to_vec(),
            groups,
            shader,
        }
    }
}

impl GateSource {
    pub(crate) fn keys(self) -> Option<Operand> {
        match self {
            Self::Keys(keys) => Some(keys),
            Self::Logits | Self::Values => None,
        }
    }
}
