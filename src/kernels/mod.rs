//! One file per shader: its bindings, its parameters, its grid. Pure planning, testable without a device.

pub(crate) mod grid;
pub(crate) mod modules;
pub(crate) mod rope_rotate;
pub(crate) mod rope_table;
