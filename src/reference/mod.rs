//! Each operation in plain f64 loops, one file per kernel and under its name: what the kernels are checked against, and
//! the way to compute where there is no GPU.

mod attention;
mod attention_merge;
mod cope;
mod projection;
mod rope_rotate;
mod rope_table;
mod self_attention;
mod tensor;

pub use attention::{Attended, attention};
pub use attention_merge::attention_merge;
pub use cope::{cope, cope_gate, cope_interpolate, cope_logits, cope_positions};
pub use projection::projection;
pub use rope_rotate::rope_rotate;
pub use rope_table::rope_table;
pub use self_attention::self_attention;
pub use tensor::Tensor;
