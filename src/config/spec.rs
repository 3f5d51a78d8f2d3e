//! A rope's settings on their own, as one writes them on a command line.

use serde_json::Value;

use super::law::{self, Around};
use super::notes::{Notes, Source};
use super::object::Object;
use crate::frequencies::Law;
use crate::{Error, Result};

/// The base where the text names none, as in the papers and in transformers.
const BASE: f64 = 10_000.0;

/// A scaling law read from JSON that has nothing around it, with what to know about it.
///
/// The keys are those of Hugging Face's `rope_parameters`, `rope_theta` (10,000 if absent) among them; also `alpha` for
/// [`NtkAware`](crate::frequencies::NtkAware) and `attn_factor` as YaRN's multiplier.
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
    notes: Notes,
}

impl Spec {
    /// Reads the settings from JSON text.
    ///
    /// # Errors
    /// [`Error::Setting`] naming the field and its value: no JSON, an unknown type, a missing or impossible field. What is
    /// impossible only for some head dims, [`Law::frequencies`] refuses.
    pub fn parse(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text).map_err(|error| {
            Error::setting("rope", format!("no JSON ({error})"), r#"such as {"rope_type":"default"}"#)
        })?;
        let rope = Object::root(&value)?;
        let mut notes = Notes::default();
        let base = match rope.base("rope_theta")? {
            Some(base) => notes.source("rope_theta", base, "rope_theta"),
            None => notes.source("rope_theta", BASE, "the default"),
        };
        let law = law::law(&rope, rope_type(&rope)?, Around { base }, &mut notes)?;
        notes.warnings.extend(rope.unread().iter().map(|key| format!("{key} is not known here and changes nothing")));
        Ok(Self { law, notes })
    }

    /// The law with its settings.
    #[must_use]
    pub fn law(&self) -> &Law {
        &self.law
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

/// The type by either of its names; both at once is common, and `rope_type` wins.
fn rope_type<'a>(rope: &Object<'a>) -> Result<&'a str> {
    let legacy = rope.word("type")?;
    Ok(rope.word("rope_type")?.or(legacy).unwrap_or("default"))
}
