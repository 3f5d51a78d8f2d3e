//! Attention: what to attend to, and what stands beside queries, keys and values.
//!
//! [`Attention`] and what it is made of say *what* is wanted, whoever computes it: its tensors are views of a device's
//! buffers for the kernels, or slices with a layout for the f64 reference. On a device [`Fused`] is the one to use, and
//! [`Unfused`] the one to read; [`Merge`] puts together what they give over parts of the keys.

#[cfg(feature = "gpu")]
mod fused;
mod mask;
#[cfg(feature = "gpu")]
mod merge;
#[cfg(feature = "gpu")]
mod module;
#[cfg(feature = "gpu")]
mod operation;
#[cfg(feature = "gpu")]
mod projection;
mod rotation;
mod self_attention;
mod settings;
#[cfg(feature = "gpu")]
mod unfused;

#[cfg(feature = "gpu")]
pub use fused::{Fused, Schedule};
pub use mask::{Mask, Standing};
#[cfg(feature = "gpu")]
pub use merge::Merge;
#[cfg(feature = "gpu")]
pub use module::{Module, ModuleScratch};
#[cfg(feature = "gpu")]
pub use projection::{Projection, ProjectionSchedule};
pub use rotation::Rotation;
pub use self_attention::{Linear, SelfAttention, SelfAttentionWeights};
pub use settings::{Attention, ContextualPe, Gates};
#[cfg(feature = "gpu")]
pub use unfused::Unfused;

#[cfg(feature = "gpu")]
pub(crate) use mask::VisibleKeys;
pub(crate) use settings::{AttentionShape, HasLayout, check_position_embeddings, expect};

/// What stands for minus infinity, which a shader may not count on.
///
/// A logit at or below it, whatever brought it there, is masked: its key is not seen and its gate is 0. As a log-sum-exp
/// it says that a query saw no key at all, and its output is 0.
pub const MASKED: f32 = -1e30;
