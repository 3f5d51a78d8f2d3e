//! What a model file says, as scaling laws: from Hugging Face's names to the types of [`frequencies`](crate::frequencies).
//!
//! An unknown type, a missing field or an impossible number is an [`Error::Setting`](crate::Error::Setting) that names
//! the field by its path in the file. A key that nothing reads is a warning, since files carry all sorts of keys, but a
//! misspelt one should not go unnoticed.

mod hugging_face;
mod law;
mod layer;
mod notes;
mod object;
mod spec;

pub use layer::{LayerRope, ModelRope};
pub use notes::Source;
pub use spec::Spec;
