//! What both the command `phasor` and the web page run on a device: the demo on real activations, the check of every
//! kernel variant, the measurement against a copy kernel, and what there is to say about a model's ropes.
//!
//! Everything here is async, prints nothing, tells a callback how far it is, and returns results that serde can write.

mod activations;
pub mod bench;
mod demo;
mod device;
#[cfg(feature = "explain")]
pub mod explain;
mod progress;
mod verify;

pub use activations::{Activation, Activations};
pub use bench::{AttentionSizes, CurveSizes, Curves, Measurement, ProjectionSizes, Sizes, Subject, Timing};
pub use demo::{Demo, Rotated, demo};
pub use device::Device;
pub use progress::{Progress, Step};
pub use verify::{Bound, Extent, VariantCheck, Verification, verify};
