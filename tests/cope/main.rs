//! Contextual position encoding and attention in their readable form: the f64 reference against values that other
//! programs computed, and the device that `VK_DRIVER_FILES` (or wgpu's own variables) choose against both.

mod case;
#[path = "../common/mod.rs"]
mod common;
mod edges;
mod golden;
mod properties;
mod request;
mod unfused;
