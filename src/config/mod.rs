//! What a model file says about its ropes, in the types of [`frequencies`](crate::frequencies).
//!
//! [`ModelRope`] reads Hugging Face's `config.json` or GGUF metadata and has a [`LayerRope`] for every layer; [`Spec`]
//! reads a rope's settings alone.
//!
//! An unknown type, a missing field or an impossible number is a [`Setting`](crate::ErrorKind::Setting) error that
//! names the field by its path in the file. A key that nothing reads is a warning, since files carry all sorts of keys, but a
//! misspelt one should not go unnoticed.

mod gguf;
mod hugging_face;
mod json;
mod law;
mod layer;
mod notes;
mod object;
mod spec;

pub use gguf::{Metadata, MetadataValue, RopeTensors};
pub use layer::{LayerRope, ModelRope};
pub use notes::Source;
pub use spec::Spec;
