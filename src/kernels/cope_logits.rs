//! `shaders/cope_logits.wgsl`: what each query makes of each position.

use super::modules::{self, Lane, Module};
use super::step::{Operand, Step, WORKGROUP, groups_of};
use super::words;
use crate::ElementType;
use crate::gpu::{Access, Binding, Shader};
use bytemuck::{Pod, Zeroable};

const KERNEL: Module = modules::module!("cope_logits");

/// The numbers behind the places in the uniform, as the shader declares them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Numbers {
    tokens: u32,
    heads: u32,
    channels: u32,
    positions: u32,
}

/// Queries and position embeddings of these elements.
fn shader(query: ElementType, query_access: Access, embeddings: ElementType) -> Shader {
    let bindings = [
        Binding { index: 1, name: "query", access: query_access },
        Binding { index: 2, name: "position_embeddings", access: Access::Read },
    ];
    let mut text = vec![modules::LANE1.wgsl, modules::PLACE.wgsl, modules::FOUR_TOKENS.wgsl];
    text.extend(words::halves(Lane::One, [query, embeddings]).map(|halves| halves.wgsl));
    let data = words::readable(bindings[0], query, "(B, T, H, D)")
        + &words::readable(bindings[1], embeddings, "(D, 1 or H, N)");
    text.extend([&data, KERNEL.wgsl]);
    Shader {
        name: format!("{}.{query}_{query_access:?}_{embeddings}", KERNEL.name).to_ascii_lowercase(),
        wgsl: Shader::compose(&text),
        constants: vec![("WG_SIZE", WORKGROUP.into())],
        bindings: vec![
            Binding { index: 0, name: "params", access: Access::Uniform },
            bindings[0],
            bindings[1],
            Binding { index: 3, name: "z", access: Access::ReadWrite },
        ],
        workgroup: [WORKGROUP, 1, 1],
    }
}

/// Every text whose tensors are stored alike, and one for queries in scratch memory.
pub(crate) fn all() -> impl Iterator<Item = Shader> {
    let scratch = (ElementType::F32, Access::ReadWrite);
    let queries = ElementType::FLOATS.map(|element| (element, Access::Read)).into_iter().chain([scratch]);
    queries.map(|(element, access)| shader(element, access, element))
}

/// `z = query · E`: queries `[batch, tokens, heads, channels]`, position embeddings `[1, channels, 1 or heads,
/// positions]`, `z` `[batch, tokens, heads, positions]`.
pub(crate) fn step(query: Operand, position_embeddings: Operand, z: Operand) -> Step {
    let [batch, tokens, heads, channels] = query.layout.shape();
    let [.., positions] = z.layout.shape();
    let numbers =
        Numbers { tokens: tokens as u32, heads: heads as u32, channels: channels as u32, positions: positions as u32 };
    Step {
        shader: shader(query.element, query.read_access(), position_embeddings.element),
        operands: vec![(1, Some(query)), (2, Some(position_embeddings)), (3, Some(z))],
        word: 1,
        numbers: bytemuck::bytes_of(&numbers).to_vec(),
        groups: [groups_of(positions), tokens.div_ceil(4), batch * heads],
    }
}
