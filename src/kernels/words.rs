//! How kernels reach tensors of any element type: the WGSL of a binding, and of the functions that load and store
//! through it. A kernel's body knows lanes of f32 only.

use super::modules::{self, Lane, Module};
use crate::ElementType;
use crate::gpu::{Access, Binding};
use std::fmt::Write;

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
        Some((Binding { name: data, access, .. }, element)) => match (element.bytes(), lane, access) {
            (2, Lane::Four, _) => format!("{element}_to_f32({data}[ix])"),
            (2, Lane::One, Access::ReadWrite) => {
                format!("{element}_to_f32((atomicLoad(&{data}[ix / 2u]) >> (16u * (ix % 2u))) & 0xffffu)")
            }
            (2, Lane::One, _) => format!("{element}_to_f32(({data}[ix / 2u] >> (16u * (ix % 2u))) & 0xffffu)"),
            _ => format!("{data}[ix]"),
        },
    };
    format!("fn load_{name}(ix: u32) -> Lane {{\n    return {body};\n}}\n")
}

/// `fn store_NAME(ix: u32, x: Lane)`.
pub(crate) fn store(name: &str, binding: Option<(Binding, ElementType)>, lane: Lane) -> String {
    let mut body = String::new();
    if let Some((Binding { name: data, .. }, element)) = binding {
        // Writing to a String cannot fail.
        let _ = match (element.bytes(), lane) {
            (2, Lane::Four) => writeln!(body, "    {data}[ix] = f32_to_{element}(x);"),
            (2, Lane::One) => writeln!(
                body,
                "    // The other half of the word may be another invocation's: each touches its own bits alone.\n    \
                 let shift = 16u * (ix % 2u);\n    \
                 atomicAnd(&{data}[ix / 2u], ~(0xffffu << shift));\n    \
                 atomicOr(&{data}[ix / 2u], f32_to_{element}(x) << shift);"
            ),
            _ => writeln!(body, "    {data}[ix] = x;"),
        };
    }
    format!("fn store_{name}(ix: u32, x: Lane) {{\n{body}}}\n")
}

/// A binding of a tensor's channels, one to a lane, and `fn load_NAME`.
pub(crate) fn readable(binding: Binding, element: ElementType, shape: &str) -> String {
    declare(binding, element, Lane::One, shape) + &load(binding.name, Some((binding, element)), Lane::One)
}

/// A binding of a tensor's channels, one to a lane, with `fn load_NAME` and `fn store_NAME`.
pub(crate) fn writable(binding: Binding, element: ElementType, shape: &str) -> String {
    readable(binding, element, shape) + &store(binding.name, Some((binding, element)), Lane::One)
}
