//! `shaders/attention_values.wgsl`: the weighted sum of values.

use super::modules::{self, Lane, Module};
use super::step::{Operand, Step, WORKGROUP, groups_of};
use super::words;
use crate::ElementType;
use crate::gpu::{Access, Binding, Shader};
use bytemuck::{Pod, Zeroable};

const KERNEL: Module = modules::module!("attention_values");

/// How many keys one dispatch goes over: one iteration each, of the 65,535 that Mesa's llvmpipe allows.
const KEYS_AT_ONCE: usize = 1 << 15;

/// The numbers behind the places in the uniform, as the shader declares them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Numbers {
    tokens: u32,
    heads: u32,
    channels: u32,
    first_key: u32,
    end_key: u32,
    first_head: u32,
    group: u32,
    _pad: u32,
}

/// Values and output of these elements.
fn shader(v: ElementType, out: ElementType) -> Shader {
    let v_binding = Binding { index: 2, name: "v", access: Access::Read };
    let out_binding = Binding { index: 3, name: "out", access: Access::ReadWrite };
    let mut text = vec![modules::LANE1.wgsl, modules::PLACE.wgsl, modules::FOUR_TOKENS.wgsl];
    text.extend(words::halves(Lane::One, [v, out]).map(|halves| halves.wgsl));
    let data = words::readable(v_binding, v, "(B, S, Hk, D)") + &words::writable(out_binding, out, "(B, T, H, D)");
    text.extend([&data, KERNEL.wgsl]);
    Shader {
        name: format!("{}.{v}_{out}", KERNEL.name),
        wgsl: Shader::compose(&text),
        constants: vec![("WG_SIZE", WORKGROUP.into())],
        bindings: vec![
            Binding { index: 0, name: "params", access: Access::Uniform },
            Binding { index: 1, name: "weights", access: Access::ReadWrite },
            v_binding,
            out_binding,
        ],
        workgroup: [WORKGROUP, 1, 1],
    }
}

/// Every text whose tensors are stored alike.
pub(crate) fn all() -> impl Iterator<Item = Shader> {
    ElementType::FLOATS.into_iter().map(|element| shader(element, element))
}

/// Weights `[batch, tokens, heads, keys]`, values `[batch, keys, kv heads, channels]`, output `[batch, tokens, heads,
/// channels]`: a step for each run of keys. `first_head` and `group` as in [`Job`](super::attention_scores::Job).
pub(crate) fn steps(
    weights: Operand,
    v: Operand,
    output: Operand,
    first_head: usize,
    group: usize,
) -> impl Iterator<Item = Step> {
    let [batch, tokens, heads, channels] = output.layout.shape();
    let keys = v.layout.shape()[1];
    // Without any key there is one run all the same: it writes zeros.
    (0..keys.max(1)).step_by(KEYS_AT_ONCE).map(move |first_key| {
        let numbers = Numbers {
            tokens: tokens as u32,
            heads: heads as u32,
            channels: channels as u32,
            first_key: first_key as u32,
            end_key: (first_key + KEYS_AT_ONCE).min(keys) as u32,
            first_head: first_head as u32,
            group: group as u32,
            _pad: 0,
        };
        Step {
            shader: shader(v.element, output.element),
            operands: vec![(1, Some(weights)), (2, Some(v)), (3, Some(output))],
            word: 1,
            numbers: bytemuck::bytes_of(&numbers).to_vec(),
            groups: [groups_of(channels), tokens.div_ceil(4), batch * heads],
        }
    })
}
