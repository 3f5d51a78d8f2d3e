//! `shaders/cope_positions.wgsl`: gates, and their sums from the right.

use super::modules::{self, Lane, Module};
use super::step::{Operand, Step, WORKGROUP};
use super::words;
use crate::ElementType;
use crate::gpu::{Access, Binding, Shader};
use bytemuck::{Pod, Zeroable};

const KERNEL: Module = modules::module!("cope_positions");

/// The numbers behind the places in the uniform, as the shader declares them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Numbers {
    keys: u32,
    last: u32,
    fraction_bits: u32,
    _pad: u32,
}

/// How many bits of a position in fixed point are its fraction, where the last position is this.
///
/// As many as its whole part leaves, but no more than an f32's fraction has.
pub(crate) fn fraction_bits(last: u32) -> u32 {
    last.leading_zeros().min(24)
}

/// Of logits of these elements, with or without a sum of gates to come in and to go out.
fn shader(logits: ElementType, sum_in: bool, sum_out: bool) -> Shader {
    let gate_sum = if sum_in { modules::GATE_SUM_BUFFER } else { modules::GATE_SUM_NONE };
    let gate_sum_out = if sum_out { modules::GATE_SUM_OUT_BUFFER } else { modules::GATE_SUM_OUT_NONE };
    // Only read; writable since logits may lie in one scratch buffer with positions.
    let logits_binding = Binding { index: 1, name: "logits", access: Access::ReadWrite };
    let mut text = vec![modules::LANE1.wgsl, modules::PLACE.wgsl, modules::MASKED.wgsl, modules::COUNT.wgsl];
    text.extend(words::halves(Lane::One, [logits]).map(|halves| halves.wgsl));
    let data = words::readable(logits_binding, logits, "(B, T, H, S)");
    text.extend([&data, gate_sum.wgsl, gate_sum_out.wgsl, KERNEL.wgsl]);
    let mut bindings = vec![
        Binding { index: 0, name: "params", access: Access::Uniform },
        logits_binding,
        Binding { index: 2, name: "positions", access: Access::ReadWrite },
    ];
    if sum_in {
        bindings.push(Binding { index: 3, name: "gate_sum", access: Access::Read });
    }
    if sum_out {
        bindings.push(Binding { index: 7, name: "gate_sum_out", access: Access::ReadWrite });
    }
    Shader {
        name: format!("{}.{logits}.{}.{}", KERNEL.name, gate_sum.name, gate_sum_out.name),
        wgsl: Shader::compose(&text),
        constants: vec![("WG_SIZE", WORKGROUP.into())],
        bindings,
        workgroup: [WORKGROUP, 1, 1],
    }
}

/// Every variant.
pub(crate) fn all() -> impl Iterator<Item = Shader> {
    let sums = [(false, false), (true, false), (false, true), (true, true)];
    ElementType::FLOATS
        .into_iter()
        .flat_map(move |logits| sums.map(|(sum_in, sum_out)| shader(logits, sum_in, sum_out)))
}

/// Positions `[batch, tokens, heads, keys]` in fixed point from logits of that shape, `n_positions` of them at most.
/// Gate sums are `[batch, tokens, heads, 2]`.
pub(crate) fn step(
    logits: Operand,
    positions: Operand,
    gate_sum: Option<Operand>,
    gate_sum_out: Option<Operand>,
    n_positions: usize,
) -> Step {
    let [batch, tokens, heads, keys] = logits.layout.shape();
    let last = n_positions.saturating_sub(1) as u32;
    let numbers = Numbers { keys: keys as u32, last, fraction_bits: fraction_bits(last), _pad: 0 };
    Step {
        shader: shader(logits.element, gate_sum.is_some(), gate_sum_out.is_some()),
        operands: vec![(1, Some(logits)), (2, Some(positions)), (3, gate_sum), (7, gate_sum_out)],
        word: 1,
        numbers: bytemuck::bytes_of(&numbers).to_vec(),
        groups: [tokens, heads, batch],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_fits_its_word_with_all_the_fraction_that_is_left() {
        for last in [0, 1, 2, 63, 255, 256, 32_768, u32::MAX] {
            let bits = fraction_bits(last);
            assert!((u64::from(last) << bits) >> 32 == 0, "{last}: {bits}");
            assert!(bits == 24 || (u64::from(last) << (bits + 1)) >> 32 > 0, "{last}: {bits}");
        }
    }
}
