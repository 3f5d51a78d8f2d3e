//! `shaders/cope_interpolate.wgsl`: the contextual bias between whole positions.

use super::cope_positions::fraction_bits;
use super::modules::{self, Lane, Module};
use super::step::{Operand, Step, WORKGROUP, groups_of};
use super::words;
use crate::ElementType;
use crate::gpu::{Access, Binding, Shader};
use bytemuck::{Pod, Zeroable};

const KERNEL: Module = modules::module!("cope_interpolate");

/// What becomes of the bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Into {
    /// It is written.
    Place,
    /// It is added to logits, in place.
    Sum,
}

/// The numbers behind the places in the uniform, as the shader declares them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Numbers {
    tokens: u32,
    heads: u32,
    keys: u32,
    last: u32,
    fraction_bits: u32,
    fraction_unit: f32,
    scale: f32,
    _pad: u32,
}

/// To an output of these elements.
fn shader(out: ElementType, into: Into) -> Shader {
    let out_binding = Binding { index: 3, name: "out", access: Access::ReadWrite };
    let mut text = vec![modules::LANE1.wgsl, modules::PLACE.wgsl, modules::MASKED.wgsl];
    text.extend(words::halves(Lane::One, [out]).map(|halves| halves.wgsl));
    let data = words::writable(out_binding, out, "(B, T, H, S)");
    text.extend([&data, KERNEL.wgsl]);
    Shader {
        name: format!("{}.{out}", KERNEL.name),
        wgsl: Shader::compose(&text),
        constants: vec![("WG_SIZE", WORKGROUP.into()), ("ADD", f64::from(u8::from(into == Into::Sum)))],
        bindings: vec![
            Binding { index: 0, name: "params", access: Access::Uniform },
            Binding { index: 1, name: "positions", access: Access::ReadWrite },
            Binding { index: 2, name: "z", access: Access::ReadWrite },
            out_binding,
        ],
        workgroup: [WORKGROUP, 1, 1],
    }
}

/// Every variant.
pub(crate) fn all() -> impl Iterator<Item = Shader> {
    let places = ElementType::FLOATS.into_iter().map(|out| shader(out, Into::Place));
    places.chain([shader(ElementType::F32, Into::Sum)])
}

/// `scale` times `z` at the positions: positions and output `[batch, tokens, heads, keys]`, `z` `[batch, tokens, heads,
/// n positions]`.
pub(crate) fn step(positions: Operand, z: Operand, output: Operand, into: Into, scale: f64) -> Step {
    let [batch, tokens, heads, keys] = output.layout.shape();
    let last = z.layout.shape()[3].saturating_sub(1) as u32;
    let bits = fraction_bits(last);
    let numbers = Numbers {
        tokens: tokens as u32,
        heads: heads as u32,
        keys: keys as u32,
        last,
        fraction_bits: bits,
        fraction_unit: 1.0 / (1u32 << bits) as f32,
        scale: scale as f32,
        _pad: 0,
    };
    Step {
        shader: shader(output.element, into),
        operands: vec![(1, Some(positions)), (2, Some(z)), (3, Some(output))],
        word: 1,
        numbers: bytemuck::bytes_of(&numbers).to_vec(),
        groups: [groups_of(keys), tokens, batch * heads],
    }
}
