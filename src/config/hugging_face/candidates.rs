//! One setting under several names.

use crate::config::notes::Notes;
use crate::config::object::Object;
use crate::shown::Shown;

/// The values that a setting has under its names, strongest first.
pub(super) struct Candidates<T> {
    found: Vec<(T, String)>,
}

impl<T> Default for Candidates<T> {
    fn default() -> Self {
        Self { found: Vec::new() }
    }
}

impl<T: PartialEq + Shown> Candidates<T> {
    /// The value under the next name, if there is one.
    pub fn offer(&mut self, object: &Object, key: &str, value: Option<T>) {
        self.found.extend(value.map(|value| (value, object.path(key))));
    }

    /// The first that is there, or the default; others that differ from it are a warning.
    pub fn choose(self, setting: &str, notes: &mut Notes, default: impl FnOnce() -> (T, String)) -> T {
        let mut found = self.found.into_iter();
        let (value, from) = found.next().unwrap_or_else(default);
        for (other, path) in found.filter(|(other, _)| *other != value) {
            notes.warn(format!("{path} is {}, {from} is {}: the second holds", other.shown(), value.shown()));
        }
        notes.source(setting, value, from)
    }
}
