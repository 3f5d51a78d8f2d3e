//! Rotary encoding on the device that `VK_DRIVER_FILES` (or wgpu's own variables) choose, against the f64 reference and
//! against values that other programs computed. One process, so that all tests share its pipelines.

mod angles;
mod arguments;
mod axes;
mod cache;
mod case;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/arguments.rs"]
mod drawn;
mod fused;
mod golden;
mod halves;
mod laws;
mod limits;
mod matrix;
mod moving;
mod properties;
mod raw;
mod recording;
mod refusals;
mod shapes;
mod standing;
