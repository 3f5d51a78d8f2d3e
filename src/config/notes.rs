//! What is said beside an answer: where each number came from, and what looked wrong.

use super::object::Object;
use crate::shown::Shown;

/// One setting of an answer, its value, and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The setting, in Hugging Face's words (`rope_theta`, `factor`).
    pub setting: String,
    /// Its value.
    pub value: String,
    /// The key it was read from (`rope_scaling.factor`), or the rule that gave it.
    pub from: String,
}

/// Sources and warnings, collected while a file is read.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    pub sources: Vec<Source>,
    pub warnings: Vec<String>,
}

impl Notes {
    /// Remembers where `setting` came from, and hands its value on.
    pub fn source<T: Shown>(&mut self, setting: &str, value: T, from: impl Into<String>) -> T {
        self.remember(setting, value.shown(), from.into());
        value
    }

    fn remember(&mut self, setting: &str, value: String, from: String) {
        self.sources.push(Source { setting: setting.into(), value, from });
    }

    /// Remembers something that the reader of the answer should know.
    pub fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Warns of every key of a rope's settings that nothing has read.
    pub fn unread(&mut self, rope: &Object) {
        for key in rope.unread() {
            self.warn(format!("{key} is not known for this type and changes nothing"));
        }
    }
}
