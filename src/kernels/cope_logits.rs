//! `shaders/cope_logits.wgsl`: what each query makes of each position.

use super::modules::{self, Module};
use super::step::{Operand, Step, WORKGROUP, groups_of};
use crate::gpu::{Access, Binding, Shader};
use bytemuck::{Pod, Zeroable};

const KERNEL: Module = Module { name: "cope_logits", wgsl: include_str!("../../shaders/cope_logits.wgsl") };

/// The numbers behind the places in the uniform, as the shader declares them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Numbers {
    tokens: u32,
    heads: u32,
    channels: u32,
    positions: u32,
}

pub(crate) fn shader() -> Shader {
    let parts = [modules::LANE1, modules::PAIRS, modules::STORE_F32, modules::PLACE, modules::FOUR_TOKENS, KERNEL];
    Shader {
        name: KERNEL.name.into(),
        wgsl: Shader::compose(&parts.map(|module| module.wgsl)),
        constants: vec![("WG_SIZE", WORKGROUP.into())],
        bindings: vec![
            Binding { index: 0, name: "params", access: Access::Uniform },
            Binding { index: 1, name: "query", access: Access::Read },
            Binding { index: 2, name: "position_embeddings", access: Access::Read },
            Binding { index: 3, name: "z", access: Access::ReadWrite },
        ],
        workgroup: [WORKGROUP, 1, 1],
    }
}

/// `z = query · E`: queries `[batch, tokens, heads, channels]`, position embeddings `[1, channels, 1 or heads,
/// positions]`, `z` `[batch, tokens, heads, positions]`.
pub(crate) fn step(query: Operand, position_embeddings: Operand, z: Operand) -> Step {
    let [batch, tokens, heads, channels] = query.1.shape();
    let [.., positions] = z.1.shape();
    let numbers =
        Numbers { tokens: tokens as u32, heads: heads as u32, channels: channels as u32, positions: positions as u32 };
    Step {
        shader: shader(),
        operands: vec![(1, Some(query)), (2, Some(position_embeddings)), (3, Some(z))],
        word: 1,
        numbers: bytemuck::bytes_of(&numbers).to_vec(),
        groups: [groups_of(positions), tokens.div_ceil(4), batch * heads],
    }
}
