//! Fused attention, on the device that `VK_DRIVER_FILES` (or wgpu's own variables) choose, against the f64 reference.

mod arguments;
#[path = "../cope/case.rs"]
mod case;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/arguments.rs"]
mod drawn;
mod fused;
mod hidden;
mod limits;
mod merge;
mod module;
mod projection;
#[path = "../cope/request.rs"]
mod request;
mod rotated;
mod subgroups;
mod windows;
