//! How kernels reach tensors of any element type: the WGSL of a binding, and of the functions that load, store
//! and copy through it. A kernel's body knows lanes of f32 only.

use super::modules::{self, Lane, Module};
use crate::ElementType;
use crate::gpu::{Access, Binding};

/// The module that packs and unpacks 16-bit floats, if one of these needs it.
pub(crate) fn halves(lane: Lane, elements: impl IntoIterator<Item = ElementType>) -> Option<Module> {
    elements.into_iter().any(|element| element.bytes() == 2).then_some(match lane {
        Lane::One => modules::HALVES_LANE1,
        Lane::Four => modules::HALVES_LANE4,
    })
}

/// Declares a storage binding of a tensor's words; `shape` goes behind it as a comment.
pub(crate) fn declare(binding: Binding, element: ElementType, lane: Lane, shape: &str) -> String {
    let access = match binding.access {
        Access::ReadWrite => "read_write",
        Access::Read | Access::Uniform => "read",
    };
    let word = match (element.bytes(), lane, binding.access) {
        (2, Lane::Four, _) => "vec2<u32>",
        // Two elements share a word, and different invocations may write them.
        (2, Lane::One, Access::ReadWrite) => "atomic<u32>",
        (2, Lane::One, _) => "u32",
        _ => "Lane",
    };
    let Binding { index, name, .. } = binding;
    format!("@group(0) @binding({index}) var<storage, {access}> {name}: array<{word}>; // {shape}, {element}\n")
}

/// `fn load_NAME(ix: u32) -> Lane`, where `ix` counts words of four channels, or channels.
pub(crate) fn load(name: &str, binding: Option<(Binding, ElementType)>, lane: Lane) -> String {
    let body = match binding {
        None => "Lane()".into(),
        Some((binding, element)) if element.bytes() == 2 => {
            format!("{element}_to_f32({})", stored(binding, lane, "ix"))
        }
        Some((binding, _)) => format!("{}[ix]", binding.name),
    };
    format!("fn load_{name}(ix: u32) -> Lane {{\n    return {body};\n}}\n")
}

/// `fn store_NAME(ix: u32, x: Lane)`.
pub(crate) fn store(name: &str, binding: Option<(Binding, ElementType)>, lane: Lane) -> String {
    let body = match binding {
        None => String::new(),
        Some((binding, element)) if element.bytes() == 2 => put(binding, lane, &format!("f32_to_{element}(x)")),
        Some((binding, _)) => format!("    {}[ix] = x;\n", binding.name),
    };
    format!("fn store_{name}(ix: u32, x: Lane) {{\n{body}}}\n")
}

/// A binding of single numbers and `fn load_NAME(ix: u32) -> f32`, whatever a lane is.
pub(crate) fn numbers(binding: Binding, element: ElementType, lane: Lane, shape: &str) -> String {
    let Binding { index, name, .. } = binding;
    let (word, body) = match (element.bytes(), lane) {
        (2, Lane::Four) => ("u32", format!("{element}_to_f32(vec2({name}[ix / 2u], 0u))[ix % 2u]")),
        (2, Lane::One) => ("u32", format!("{element}_to_f32(({name}[ix / 2u] >> (16u * (ix % 2u))) & 0xffffu)")),
        _ => ("f32", format!("{name}[ix]")),
    };
    format!(
        "@group(0) @binding({index}) var<storage, read> {name}: array<{word}>; // {shape}, {element}\n\
         fn load_{name}(ix: u32) -> f32 {{\n    return {body};\n}}\n"
    )
}

/// A binding of a tensor's channels, one to a lane, and `fn load_NAME`.
pub(crate) fn readable(binding: Binding, element: ElementType, shape: &str) -> String {
    declare(binding, element, Lane::One, shape) + &load(binding.name, Some((binding, element)), Lane::One)
}

/// A binding of a tensor's channels, one to a lane, with `fn load_NAME` and `fn store_NAME`.
pub(crate) fn writable(binding: Binding, element: ElementType, shape: &str) -> String {
    readable(binding, element, shape) + &store(binding.name, Some((binding, element)), Lane::One)
}

/// `fn copy_NAME(from_ix: u32, ix: u32)`: what stays of one type keeps every bit, a NaN's payload too.
pub(crate) fn copy(
    name: &str,
    input: Option<(Binding, ElementType)>,
    output: Option<(Binding, ElementType)>,
    lane: Lane,
) -> String {
    let body = match (input, output) {
        (Some((from, element)), Some((to, same))) if element == same && element.bytes() == 2 => {
            put(to, lane, &stored(from, lane, "from_ix"))
        }
        _ => format!("    store_{name}(ix, load_{name}(from_ix));\n"),
    };
    format!("fn copy_{name}(from_ix: u32, ix: u32) {{\n{body}}}\n")
}

/// The bits of 16-bit floats, as they are stored.
fn stored(Binding { name: data, access, .. }: Binding, lane: Lane, ix: &str) -> String {
    match (lane, access) {
        (Lane::Four, _) => format!("{data}[{ix}]"),
        (Lane::One, Access::ReadWrite) => {
            format!("(atomicLoad(&{data}[{ix} / 2u]) >> (16u * ({ix} % 2u))) & 0xffffu")
        }
        (Lane::One, _) => format!("({data}[{ix} / 2u] >> (16u * ({ix} % 2u))) & 0xffffu"),
    }
}

/// Statements that store the bits of 16-bit floats.
fn put(Binding { name: data, .. }: Binding, lane: Lane, bits: &str) -> String {
    match lane {
        Lane::Four => format!("    {data}[ix] = {bits};\n"),
        Lane::One => format!(
            "    // The other half of the word may be another invocation's: each touches its own bits alone.\n    \
             let shift = 16u * (ix % 2u);\n    \
             let bits = {bits};\n    \
             atomicAnd(&{data}[ix / 2u], ~(0xffffu << shift));\n    \
             atomicOr(&{data}[ix / 2u], bits << shift);\n"
        ),
    }
}
