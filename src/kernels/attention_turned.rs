//! `shaders/attention_turned.wgsl`: queries or keys, turned to where they stand, in scratch memory.

use super::modules::{self, Lane, Module};
use super::plan::Scratch;
use super::rotation;
use super::step::{Operand, Step, Tensor, WORKGROUP, groups_of};
use super::words;
use crate::attention::Rotation;
use crate::gpu::{Access, Binding, Shader};
use crate::{ElementType, Result};
use bytemuck::{Pod, Zeroable};

const KERNEL: Module = Module { name: "attention_turned", wgsl: include_str!("../../shaders/attention_turned.wgsl") };

/// Tokens to an invocation, as the shader has it.
const TOKENS: usize = 32;

/// The numbers behind the places in the uniform, as the shader declares them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Numbers {
    tokens: u32,
    heads: u32,
    channels: u32,
    keys: u32,
    position: i32,
    from_row_end: i32,
    range_starts: u32,
    _pad: u32,
}

/// Where a tensor's tokens stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stand {
    /// Of token 0, among the keys.
    pub place: i32,
    /// Whether that is counted from the end of the row's keys.
    pub from_row_end: bool,
    /// `[batch, 1, 1, 1 or 2]`.
    pub key_ranges: Option<Operand>,
    /// How many keys a row has at most.
    pub keys: usize,
}

impl Stand {
    /// Keys: token `s` is key `s`.
    pub(crate) const FROM_FIRST_KEY: Self = Self { place: 0, from_row_end: false, key_ranges: None, keys: 0 };
}

fn shader(element: ElementType, key_ranges: bool) -> Shader {
    let read = |index, name| Binding { index, name, access: Access::Read };
    let x = read(1, "x");
    let range = if key_ranges { modules::KEY_RANGE_BUFFER } else { modules::KEY_RANGE_NONE };
    let mut text = vec![modules::LANE1.wgsl, modules::PLACE.wgsl, modules::TURN.wgsl];
    text.extend(words::halves(Lane::One, [element]).map(|halves| halves.wgsl));
    let data = words::readable(x, element, "(B, T, H, D)");
    text.extend([modules::ROTATION.wgsl, modules::ROTATION_CHANNELS.wgsl, range.wgsl, &data, KERNEL.wgsl]);
    let always = [
        Binding { index: 0, name: "params", access: Access::Uniform },
        x,
        Binding { index: 2, name: "turned", access: Access::ReadWrite },
    ];
    Shader {
        name: format!("{}.{element}.{}", KERNEL.name, range.name),
        wgsl: Shader::compose(&text),
        constants: vec![("WG_SIZE", WORKGROUP.into())],
        bindings: always.into_iter().chain(key_ranges.then_some(read(6, "key_ranges"))).collect(),
        workgroup: [WORKGROUP, 1, 1],
    }
}

/// Every text.
pub(crate) fn all() -> impl Iterator<Item = Shader> {
    ElementType::FLOATS.into_iter().flat_map(|element| [false, true].map(|key_ranges| shader(element, key_ranges)))
}

/// Turns `x`, `[batch, tokens, heads, channels]`, into scratch memory: the tensor there, and the dispatch.
///
/// # Errors
/// [`Limit`](crate::ErrorKind::Limit) if the scratch tensor is too large, [`Tensor`](crate::ErrorKind::Tensor) for
/// more pairs than a uniform holds.
pub(crate) fn step(x: Operand, rotation: &Rotation, stand: Stand, scratch: &mut Scratch) -> Result<(Operand, Step)> {
    rotation::expect_pairs(rotation)?;
    let shape @ [batch, tokens, heads, channels] = x.layout.shape();
    let turned = Operand { tensor: Tensor::Turned, ..scratch.take(shape)? };
    // Nothing but the row's end is read of them.
    let key_ranges = stand.key_ranges.filter(|_| stand.from_row_end);
    let numbers = Numbers {
        tokens: tokens as u32,
        heads: heads as u32,
        channels: channels as u32,
        keys: stand.keys as u32,
        position: rotation.first_key + stand.place,
        from_row_end: i32::from(stand.from_row_end),
        range_starts: key_ranges.map_or(0, |ranges| u32::from(ranges.layout.shape()[3] == 2)),
        _pad: 0,
    };
    let step = Step {
        shader: shader(x.element, key_ranges.is_some()),
        operands: vec![(1, Some(x)), (2, Some(turned)), (6, key_ranges)],
        word: 1,
        numbers: [bytemuck::bytes_of(&numbers), &rotation::bytes(rotation, Lane::One)].concat(),
        groups: [groups_of(channels), tokens.div_ceil(TOKENS), batch * heads],
    };
    Ok((turned, step))
}
