//! What must hold on a bad day, for every operation: faults, many threads, long runs and low limits, on the device that
//! `VK_DRIVER_FILES` (or wgpu's own variables) choose.

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod limits;
mod operations;
mod threads;
