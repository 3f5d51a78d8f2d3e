//! `shaders/attention_merge.wgsl`: attention over parts of the keys, put together.

use super::modules::{self, Lane, Module};
use super::step::{Operand, Step, WORKGROUP};
use super::words;
use crate::ElementType;
use crate::gpu::{Access, Binding, Shader};
use bytemuck::{Pod, Zeroable};

const KERNEL: Module = Module { name: "attention_merge", wgsl: include_str!("../../shaders/attention_merge.wgsl") };

/// The numbers behind the places in the uniform, as the shader declares them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Numbers {
    channels: u32,
    _pad: [u32; 3],
}

/// An output and a part of these elements.
fn shader(out: ElementType, part: ElementType) -> Shader {
    let out_binding = Binding { index: 1, name: "out", access: Access::ReadWrite };
    let part_binding = Binding { index: 3, name: "part", access: Access::Read };
    let mut text = vec![modules::LANE1.wgsl, modules::PLACE.wgsl, modules::MASKED.wgsl];
    text.extend(words::halves(Lane::One, [out, part]).map(|halves| halves.wgsl));
    let data =
        words::writable(out_binding, out, "(B, T, H, Dv)") + &words::readable(part_binding, part, "(B, T, H, Dv)");
    text.extend([&data, KERNEL.wgsl]);
    Shader {
        name: format!("{}.{out}_{part}", KERNEL.name),
        wgsl: Shader::compose(&text),
        constants: vec![("WG_SIZE", WORKGROUP.into())],
        bindings: vec![
            Binding { index: 0, name: "params", access: Access::Uniform },
            out_binding,
            Binding { index: 2, name: "lse", access: Access::ReadWrite },
            part_binding,
            Binding { index: 4, name: "part_lse", access: Access::Read },
        ],
        workgroup: [WORKGROUP, 1, 1],
    }
}

/// Every variant.
pub(crate) fn all() -> impl Iterator<Item = Shader> {
    let elements = ElementType::FLOATS;
    elements.into_iter().flat_map(move |out| elements.into_iter().map(move |part| shader(out, part)))
}

/// Takes `part` `[batch, tokens, heads, channels]` with its log-sum-exps `[batch, tokens, heads, 1]` into `out` with
/// its own.
pub(crate) fn step([out, lse]: [Operand; 2], [part, part_lse]: [Operand; 2]) -> Step {
    let [batch, tokens, heads, channels] = out.layout.shape();
    let numbers = Numbers { channels: channels as u32, _pad: [0; 3] };
    Step {
        shader: shader(out.element, part.element),
        operands: vec![(1, Some(out)), (2, Some(lse)), (3, Some(part)), (4, Some(part_lse))],
        word: 1,
        numbers: bytemuck::bytes_of(&numbers).to_vec(),
        groups: [tokens, heads, batch],
    }
}
