//! Positional encoding for transformer inference, and the attention that uses it, in WGSL compute shaders: the same
//! code on Vulkan, Metal, DX12 and in the browser.
//!
//! The caller owns the device, the queue, the encoder and the buffers; phasor checks, prepares and records.
//!
//! 1. A scaling law gives [`Frequencies`](frequencies::Frequencies): numbers in f64, no GPU.
//! 2. A [`Rope`] puts them on a device ([`Gpu::adopt`] takes yours, [`Gpu::request`] makes one).
//! 3. [`Rope::prepare`] checks a [`Rotate`] once: shapes, strides, overlap, limits.
//! 4. [`Prepared::record`] goes into your compute pass, token after token, and allocates nothing.
//!
#![cfg_attr(feature = "gpu", doc = "```")]
#![cfg_attr(not(feature = "gpu"), doc = "```ignore")]
//! use phasor::{Gpu, Pairing, Positions, Rope, Rotate, frequencies::Plain};
//! # fn main() -> phasor::Result<()> {
//! # // Documentation is also built and tested where there is no adapter.
//! # let gpu = Gpu::request_blocking();
//! # let gpu = match gpu { Err(e) if e.kind() == phasor::ErrorKind::NoAdapter => return Ok(()), other => other? };
//! let rope = Rope::new(&gpu, &Plain { base: 10_000.0 }.frequencies(64)?, Pairing::HalfSplit)?;
//!
//! // One row, two tokens, four query heads over two key heads, 64 channels each:
//! let q = gpu.upload(&[1.0; 2 * 4 * 64], [1, 2, 4, 64])?;
//! let k = gpu.upload(&[1.0; 2 * 2 * 64], [1, 2, 2, 64])?;
//! let rotation = rope.prepare(&Rotate::in_place(&q).and_in_place(&k).positions(Positions::Start(100)))?;
//!
//! gpu.submit(|pass| rotation.record(pass))?;
//! let rotated = gpu.read_blocking(&q)?;
//! assert!((f64::from(rotated[0]) - (100f64.cos() - 100f64.sin())).abs() < 1e-6);
//! # Ok(()) }
//! ```
//!
//! [`attention`] has attention and contextual position encoding; [`ContextualBias`] is the latter's bias alone.
//!
//! # What is exact
//! Angles are. A position times a frequency is reduced modulo a whole turn in integers, so that cosine and sine are
//! within 2e-7 of the true ones at every position an i32 can hold, with a table or without. The kernels
//! call no `sin`, `cos` or `pow`. Arithmetic is f32 throughout.
//!
//! # Features
//! * `gpu` (default): the kernels and their host layer. Without it there are frequencies, configs and the
//!   [`mod@reference`], and no dependency at all.
//! * `config`: the module of that name reads rope settings from JSON by Hugging Face's names.

pub mod attention;
#[cfg(feature = "config")]
pub mod config;
#[cfg(feature = "gpu")]
mod cope;
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
mod shown;

#[cfg(feature = "gpu")]
pub use cope::ContextualBias;
pub use element::ElementType;
pub use error::{Error, ErrorKind, Result};
#[cfg(feature = "gpu")]
pub use gpu::{Gpu, Prepared, View};
pub use layout::Layout;
#[cfg(feature = "gpu")]
pub use rope::{CacheRows, Positions, Rope, RopeTable, Rotate};
pub use rotary::{Direction, Pairing, Rotary};
