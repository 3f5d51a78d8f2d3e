//! GGUF metadata: a rope for each layer, with the meaning that llama.cpp gives the keys at run time.
//!
//! Differences to the same model's `config.json` are the format's own: llama.cpp rounds YaRN's ramp to whole pairs, has
//! no dynamic scaling, and finds Llama 3's and LongRoPE's numbers in tensors instead of keys. Where llama.cpp decides
//! by the context size it was started with, phasor decides by the sequence length that is asked for.

mod architectures;
mod kinds;
mod metadata;
mod rope;

use self::architectures::Rotation;
use self::metadata::Keys;
pub use self::metadata::{Metadata, MetadataValue};
use super::layer::ModelRope;
use super::notes::Notes;
use crate::{Error, Result};

/// The tensors that belong to a rope, as f32, where the file has them (also under `blk.N.`).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RopeTensors<'a> {
    /// `rope_freqs.weight`: a divisor for each pair. It wins over the other two.
    pub freqs: Option<&'a [f32]>,
    /// `rope_factors_long.weight`: a divisor for each pair, for sequences beyond the original context.
    pub factors_long: Option<&'a [f32]>,
    /// `rope_factors_short.weight`: a divisor for each pair, for sequences within the original context.
    pub factors_short: Option<&'a [f32]>,
}

impl ModelRope {
    /// Reads the metadata of a GGUF file.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use phasor::config::{MetadataValue, ModelRope, RopeTensors};
    ///
    /// let metadata: BTreeMap<String, MetadataValue> = [
    ///     ("general.architecture", MetadataValue::Text("llama".into())),
    ///     ("llama.block_count", MetadataValue::Number(16.0)),
    ///     ("llama.embedding_length", MetadataValue::Number(2048.0)),
    ///     ("llama.attention.head_count", MetadataValue::Number(32.0)),
    ///     ("llama.rope.freq_base", MetadataValue::Number(500_000.0)),
    /// ]
    /// .into_iter()
    /// .map(|(key, value)| (key.to_owned(), value))
    /// .collect();
    /// let model = ModelRope::from_gguf(&metadata, RopeTensors::default())?;
    /// assert_eq!(model.layer(0)?.pairing, phasor::Pairing::Interleaved);
    /// # Ok::<(), phasor::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming the key, its value, and what it may be; also for an architecture that
    /// llama.cpp does not know, since its pairing cannot be told.
    pub fn from_gguf(metadata: &dyn Metadata, tensors: RopeTensors<'_>) -> Result<Self> {
        let keys = Keys::new(metadata)?;
        let unknown = || Error::setting("general.architecture", keys.architecture(), "an architecture of llama.cpp");
        let rotation = architectures::rotation(keys.architecture()).ok_or_else(unknown)?;
        let file = File { keys: &keys, rotation, tensors };
        let kinds = file.kinds()?;
        let mut notes = Notes::default();
        let mut rope = Self::assemble(keys.architecture(), kinds, true, |kind| file.layer(*kind, &mut notes))?;
        rope.context = keys.count("context_length")?;
        rope.warnings = notes.warnings;
        Ok(rope)
    }
}

/// The metadata of a file, its architecture's rotation, and its tensors.
struct File<'a> {
    keys: &'a Keys<'a>,
    rotation: Rotation,
    tensors: RopeTensors<'a>,
}

impl File<'_> {
    fn architecture(&self) -> &str {
        self.keys.architecture()
    }
}
