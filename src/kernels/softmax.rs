//! `shaders/softmax.wgsl`: logits to weights.

use super::modules::{self, Module};
use super::step::{Operand, Step, WORKGROUP};
use crate::gpu::{Access, Binding, Shader};
use bytemuck::{Pod, Zeroable};

const KERNEL: Module = modules::module!("softmax");

/// The numbers behind the places in the uniform, as the shader declares them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Numbers {
    keys: u32,
    _pad: [u32; 3],
}

/// With or without a place for the log-sum-exp.
fn shader(with_lse: bool) -> Shader {
    let lse = if with_lse { modules::LSE_BUFFER } else { modules::LSE_NONE };
    let parts = [modules::PLACE, modules::MASKED, lse, KERNEL];
    let mut bindings = vec![
        Binding { index: 0, name: "params", access: Access::Uniform },
        Binding { index: 1, name: "logits", access: Access::ReadWrite },
    ];
    if with_lse {
        bindings.push(Binding { index: 2, name: "lse", access: Access::ReadWrite });
    }
    Shader {
        name: format!("{}.{}", KERNEL.name, lse.name),
        wgsl: Shader::compose(&parts.map(|module| module.wgsl)),
        constants: vec![("WG_SIZE", WORKGROUP.into())],
        bindings,
        workgroup: [WORKGROUP, 1, 1],
    }
}

/// Every variant.
pub(crate) fn all() -> impl Iterator<Item = Shader> {
    [false, true].into_iter().map(shader)
}

/// Logits `[batch, tokens, heads, keys]` become weights; their log-sum-exp goes to `[batch, tokens, heads, 1]`.
pub(crate) fn step(logits: Operand, lse: Option<Operand>) -> Step {
    let [batch, tokens, heads, keys] = logits.layout.shape();
    let numbers = Numbers { keys: keys as u32, _pad: [0; 3] };
    Step {
        shader: shader(lse.is_some()),
        operands: vec![(1, Some(logits)), (2, lse)],
        word: 1,
        numbers: bytemuck::bytes_of(&numbers).to_vec(),
        groups: [tokens, heads, batch],
    }
}
