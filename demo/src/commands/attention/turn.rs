//! The rotation that queries and keys take on their way in.

use super::Attention;
use crate::encoding::Encoding;
use crate::failure::{self, Failure};
use crate::rope_args::{Named, encoding_of, pairing};
use crate::tensors::File;
use phasor::attention::Rotation;
use phasor::frequencies::Law;

/// A rope, and what it makes of heads of some size.
pub struct Turn {
    encoding: Encoding,
    rotation: Option<Rotation>,
}

impl Turn {
    /// What the options name, if anything, for heads of so many channels and so many keys.
    pub fn of(asked: &Attention, file: &File, channels: usize, keys: usize) -> Result<Option<Self>, Failure> {
        let Some(named) = asked.rope.named()? else { return Ok(None) };
        if matches!(named, Named::Settings(_)) && asked.pairing.is_none() {
            return Err(Failure::new("--pairing: was missing, may be interleaved or half-split")
                .next("the checkpoint decides: half-split in Hugging Face's files, interleaved in most GGUF files"));
        }
        let encoding = encoding_of(file, named, channels)?;
        if matches!(encoding.law, Law::Axial(_)) {
            return Err(Failure::new("--rope: was axial, may be a rope of text")
                .next("`phasor rotate` takes rows and columns; attend to what it wrote, without --rope"));
        }
        let frequencies = encoding.frequencies(asked.rope.seq_len(i64::try_from(keys).unwrap_or(i64::MAX)))?;
        let rotation = Rotation::new(&encoding.for_text(&frequencies)?, pairing(asked.pairing, &encoding))
            .from_channel(encoding.rotary.offset() as usize);
        if encoding.query_scale.is_some() {
            failure::say("note: the model's factor on queries by position, which is no rotation, is left out");
        }
        Ok(Some(Self { rotation: encoding.rotates.then_some(rotation), encoding }))
    }

    pub fn rotation(&self) -> Option<&Rotation> {
        self.rotation.as_ref()
    }

    pub fn softmax_scale_multiplier(&self) -> f64 {
        self.encoding.softmax_scale_multiplier
    }

    pub fn told(&self) -> String {
        match &self.rotation {
            Some(rotation) => format!("{}, {} pairs", self.encoding.law.name(), rotation.pairing()),
            None => "nothing: this layer does not rotate (NoPE)".to_owned(),
        }
    }
}
