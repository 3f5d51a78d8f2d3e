//! Positional encoding for transformer inference, and the attention that uses it, in WGSL compute shaders.

pub mod attention;
#[cfg(feature = "config")]
pub mod config;
mod element;
mod error;
pub mod frequencies;
#[cfg(feature = "gpu")]
pub mod gpu;
#[cfg(feature = "gpu")]
mod kernels;
mod layout;
pub mod reference;
#[cfg(feature = "gpu")]
mod rope;
mod rotary;

pub use element::ElementType;
pub use error::{Error, Result};
#[cfg(feature = "gpu")]
pub use gpu::{Gpu, Prepared, View};
pub use layout::Layout;
#[cfg(feature = "gpu")]
pub use rope::{Positions, Rope, RopeTable, Rotate};
pub use rotary::{Direction, Pairing, Rotary};
