//! Positional encoding for transformer inference, and the attention that uses it, in WGSL compute shaders.

mod element;
mod error;
pub mod frequencies;
#[cfg(feature = "gpu")]
pub mod gpu;
mod layout;

pub use element::ElementType;
pub use error::{Error, Result};
#[cfg(feature = "gpu")]
pub use gpu::{Gpu, View};
pub use layout::Layout;
