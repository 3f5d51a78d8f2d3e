//! A rope's settings on their own, as one writes them on a command line.

use super::law::{self, Around};
use super::notes::{Notes, Source};
use super::object::{self, Object};
use crate::Result;
use crate::frequencies::Law;

/// The base where the text names none, as in the papers and in transformers.
const BASE: f64 = 10_000.0;

/// A scaling law read from JSON that has nothing around it, with what to know about it.
///
/// The keys are those of Hugging Face's `rope_parameters`, `rope_theta` (10,000 if absent) among them; also `alpha` for
/// [`NtkAware`](crate::frequencies::NtkAware), `attn_factor` as YaRN's multiplier, and `max_position_embeddings`
/// where a law needs it.
///
/// ```
/// let text = r#"{"rope_type": "yarn", "factor": 16, "original_max_position_embeddings": 2048, "attn_factor": 0.707}"#;
/// let spec = phasor::config::Spec::parse(text)?;
/// assert_eq!(spec.law().name(), "yarn");
/// assert!((spec.law().frequencies(64)?.attention_factor() - 0.903_022_023).abs() < 1e-9);
/// # Ok::<(), phasor::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Spec {
    law: Law,
    partial_rotary_factor: f64,
    notes: Notes,
}

impl Spec {
    /// Reads the settings from JSON text.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming the field and its value: no JSON, an unknown type, a missing or
    /// impossible field. What is impossible only for some head dims, [`Law::frequencies`] refuses.
    pub fn parse(text: &str) -> Result<Self> {
        let value = object::parse("rope", text)?;
        let rope = Object::at("", &value)?;
        if let Some(inner) = ["rope_scaling", "rope_parameters"].into_iter().find(|key| value.get(key).is_some()) {
            let may_be = format!("the settings inside of {inner} alone; ModelRope::from_hugging_face reads the whole");
            return Err(crate::Error::setting(inner, "beside the settings, as in a whole config.json", may_be));
        }
        let mut notes = Notes::default();
        let base = match rope.base("rope_theta")? {
            Some(base) => notes.source("rope_theta", base, "rope_theta"),
            None => notes.source("rope_theta", BASE, "the default"),
        };
        let partial_rotary_factor = rope.share("partial_rotary_factor")?.unwrap_or(1.0);
        let around = Around {
            base,
            partial_rotary_factor,
            max_position_embeddings: rope.count("max_position_embeddings")?,
            ..Around::default()
        };
        let law = law::law(&rope, around, &mut notes)?;
        notes.unread(&rope);
        Ok(Self { law, partial_rotary_factor, notes })
    }

    /// The law with its settings.
    #[must_use]
    pub fn law(&self) -> &Law {
        &self.law
    }

    /// How many channels of a head turn by these settings, cut down to a whole number; all of them for a law that
    /// pairs the whole head, and where there is no `partial_rotary_factor`.
    #[must_use]
    pub fn rotary_dim(&self, head_dim: u32) -> u32 {
        law::rotary_dim(&self.law, head_dim, self.partial_rotary_factor)
    }

    /// Where each number came from.
    #[must_use]
    pub fn sources(&self) -> &[Source] {
        &self.notes.sources
    }

    /// What looked wrong without making the settings impossible.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.notes.warnings
    }
}
