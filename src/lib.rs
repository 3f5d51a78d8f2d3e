//! Positional encoding for transformer inference, and the attention that uses it, in WGSL compute shaders.

mod error;
pub mod frequencies;
mod layout;

pub use error::{Error, Result};
pub use layout::Layout;
