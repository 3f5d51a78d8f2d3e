//! One file per shader: its bindings, its parameters, its grid. Pure planning, testable without a device.

pub(crate) mod grid;
pub(crate) mod modules;
pub(crate) mod rope_rotate;
pub(crate) mod rope_table;
pub(crate) mod words;

use crate::gpu::Shader;

/// Every finished shader, each text once with the constants of a common case and once with those of a case that needs
/// all of its branches.
pub(crate) fn all() -> Vec<Shader> {
    rope_table::all().chain(rope_rotate::all()).collect()
}
