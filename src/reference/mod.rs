//! Each operation in plain f64 loops, one file per kernel and under its name: what the kernels are checked against, and
//! the way to compute where there is no GPU.

mod rope_rotate;
mod rope_table;

pub use rope_rotate::rope_rotate;
pub use rope_table::rope_table;
