//! `shaders/attention_scores.wgsl`: logits before any contextual bias, or what gates are made from.

use super::modules::{self, Lane, Module};
use super::step::{Operand, Step, WORKGROUP, groups_of};
use super::words;
use crate::ElementType;
use crate::attention::VisibleKeys;
use crate::gpu::{Access, Binding, Shader};
use bytemuck::{Pod, Zeroable};

const KERNEL: Module = modules::module!("attention_scores");

/// The numbers behind the places in the uniform, as the shader declares them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Numbers {
    tokens: u32,
    heads: u32,
    channels: u32,
    keys: u32,
    first_head: u32,
    group: u32,
    visible_start: i32,
    visible_end: i32,
    from_row_end: i32,
    range_starts: u32,
    scale: f32,
    _pad: u32,
}

/// Scores, told without buffers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    /// `[batch, tokens, heads, channels]`.
    pub q: Operand,
    /// `[batch, keys, kv heads, channels]`.
    pub k: Operand,
    /// `[batch, tokens, heads, keys]`.
    pub logits: Operand,
    /// As `logits`, with 1 in place of some of the first three extents.
    pub keep: Option<Operand>,
    /// As `keep`.
    pub bias: Option<Operand>,
    /// Whether the bias hides keys only.
    pub bias_hides_only: bool,
    /// `[batch, 1, 1, 1 or 2]`.
    pub key_ranges: Option<Operand>,
    /// The keys that the first of these tokens sees.
    pub visible: VisibleKeys,
    /// Of these query heads, counted from the first one of the first key head here.
    pub first_head: usize,
    /// Query heads to a key head.
    pub group: usize,
    pub scale: f64,
}

/// What makes one variant differ from another.
#[derive(Debug, Clone, Copy)]
struct Variant {
    q: (ElementType, Access),
    k: (ElementType, Access),
    keep: bool,
    bias: Option<ElementType>,
    bias_hides_only: bool,
    key_ranges: bool,
}

impl Variant {
    fn shader(self) -> Shader {
        let choose = |on: bool, buffer: Module, none: Module| if on { buffer } else { none };
        let keep = choose(self.keep, modules::KEEP_BUFFER, modules::KEEP_NONE);
        let bias = choose(self.bias.is_some(), modules::BIAS_BUFFER, modules::BIAS_NONE);
        let key_range = choose(self.key_ranges, modules::KEY_RANGE_BUFFER, modules::KEY_RANGE_NONE);
        let read = |index, name| Binding { index, name, access: Access::Read };
        let (q, k) = (self.q.0, self.k.0);
        let q_binding = Binding { access: self.q.1, ..read(1, "q") };
        let k_binding = Binding { access: self.k.1, ..read(2, "k") };
        let bias_binding = read(5, "bias");
        let optional = [
            (self.keep, read(4, "keep")),
            (self.bias.is_some(), bias_binding),
            (self.key_ranges, read(6, "key_ranges")),
        ];
        let always = [
            Binding { index: 0, name: "params", access: Access::Uniform },
            q_binding,
            k_binding,
            Binding { index: 3, name: "logits", access: Access::ReadWrite },
        ];
        let mut text = vec![modules::LANE1.wgsl, modules::PLACE.wgsl, modules::FOUR_TOKENS.wgsl, modules::MASKED.wgsl];
        let elements = [q, k].into_iter().chain(self.bias);
        text.extend(words::halves(Lane::One, elements).map(|halves| halves.wgsl));
        let mut data = words::readable(q_binding, q, "(B, T, H, D)");
        data += &words::readable(k_binding, k, "(B, S, Hk, D)");
        if let Some(element) = self.bias {
            data += &words::readable(bias_binding, element, "(B or 1, T or 1, H or 1, S)");
        }
        text.extend([&data, keep.wgsl, bias.wgsl, key_range.wgsl, KERNEL.wgsl]);
        let bias_element = self.bias.map_or("none", ElementType::name);
        Shader {
            name: format!(
                "{}.{q}_{:?}_{k}_{:?}_{bias_element}.{}.{}.{}",
                KERNEL.name, self.q.1, self.k.1, keep.name, bias.name, key_range.name
            )
            .to_ascii_lowercase(),
            wgsl: Shader::compose(&text),
            constants: vec![
                ("WG_SIZE", WORKGROUP.into()),
                ("BIAS_HIDES_ONLY", f64::from(u8::from(self.bias_hides_only))),
            ],
            bindings: always
                .into_iter()
                .chain(optional.into_iter().filter(|(present, _)| *present).map(|(_, binding)| binding))
                .collect(),
            workgroup: [WORKGROUP, 1, 1],
        }
    }
}

/// Every text whose tensors are stored alike, with what needs all of its branches, and those of queries and keys in scratch
/// memory.
pub(crate) fn all() -> impl Iterator<Item = Shader> {
    let of = |(element, access)| {
        (0..8).map(move |bits| {
            let on = |bit: u32| bits >> bit & 1 == 1;
            let bias = on(1).then_some(element);
            Variant {
                q: (element, access),
                k: (element, access),
                keep: on(0),
                bias,
                bias_hides_only: on(1),
                key_ranges: on(2),
            }
            .shader()
        })
    };
    let scratch = (ElementType::F32, Access::ReadWrite);
    ElementType::FLOATS.map(|element| (element, Access::Read)).into_iter().chain([scratch]).flat_map(of)
}

impl Job {
    pub(crate) fn step(&self) -> Step {
        let [batch, tokens, heads, channels] = self.q.layout.shape();
        let keys = self.k.layout.shape()[1];
        let variant = Variant {
            q: (self.q.element, self.q.read_access()),
            k: (self.k.element, self.k.read_access()),
            keep: self.keep.is_some(),
            bias: self.bias.map(|bias| bias.element),
            bias_hides_only: self.bias_hides_only,
            key_ranges: self.key_ranges.is_some(),
        };
        let numbers = Numbers {
            tokens: tokens as u32,
            heads: heads as u32,
            channels: channels as u32,
            keys: keys as u32,
            first_head: self.first_head as u32,
            group: self.group as u32,
            visible_start: self.visible.start,
            visible_end: self.visible.end,
            from_row_end: i32::from(self.visible.from_row_end),
            range_starts: self.key_ranges.map_or(0, |ranges| u32::from(ranges.layout.shape()[3] == 2)),
            scale: self.scale as f32,
            _pad: 0,
        };
        Step {
            shader: variant.shader(),
            operands: vec![
                (1, Some(self.q)),
                (2, Some(self.k)),
                (3, Some(self.logits)),
                (4, self.keep),
                (5, self.bias),
                (6, self.key_ranges),
            ],
            word: 1,
            numbers: bytemuck::bytes_of(&numbers).to_vec(),
            groups: [groups_of(keys), tokens.div_ceil(4), batch * heads],
        }
    }
}
