//! Positional encoding for transformer inference, and the attention that uses it, in WGSL compute shaders.

#[cfg(feature = "config")]
pub mod config;
mod error;
pub mod frequencies;
mod rotary;

pub use error::{Error, Result};
pub use rotary::{Direction, Pairing, Rotary};
