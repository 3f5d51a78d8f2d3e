//! The keys of a GGUF file, whoever reads the file.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;

use crate::{Error, Result};

/// A value of GGUF metadata, as far as ropes are concerned.
#[derive(Debug, Clone, PartialEq)]
pub enum MetadataValue {
    /// A number of any type.
    Number(f64),
    /// A boolean.
    Flag(bool),
    /// A string.
    Text(String),
    /// A list of numbers of any type, or of booleans as 1 and 0.
    Numbers(Vec<f64>),
}

/// Anything that knows the values of metadata keys: one's own GGUF reader, or a map.
pub trait Metadata {
    /// The value of a key such as `llama.rope.freq_base`; `None` if it is absent or of a type that no rope has.
    fn get(&self, key: &str) -> Option<MetadataValue>;
}

impl<S: BuildHasher> Metadata for HashMap<String, MetadataValue, S> {
    fn get(&self, key: &str) -> Option<MetadataValue> {
        HashMap::get(self, key).cloned()
    }
}

impl Metadata for BTreeMap<String, MetadataValue> {
    fn get(&self, key: &str) -> Option<MetadataValue> {
        BTreeMap::get(self, key).cloned()
    }
}

/// The keys of one architecture, by their names without it.
pub(super) struct Keys<'a> {
    metadata: &'a dyn Metadata,
    architecture: String,
}

impl<'a> Keys<'a> {
    pub fn new(metadata: &'a dyn Metadata) -> Result<Self> {
        match metadata.get("general.architecture") {
            Some(MetadataValue::Text(architecture)) => Ok(Self { metadata, architecture }),
            Some(other) => Err(Error::setting("general.architecture", format!("{other:?}"), "a string")),
            None => Err(Error::setting("general.architecture", "missing", "an architecture of llama.cpp")),
        }
    }

    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    /// The whole name of a key.
    pub fn path(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    /// The finite number under a key.
    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        match self.metadata.get(&self.path(key)) {
            None => Ok(None),
            Some(MetadataValue::Number(number)) if number.is_finite() => Ok(Some(number)),
            Some(other) => Err(self.wrong(key, &other, "a finite number")),
        }
    }

    /// The whole number under a key.
    pub fn count(&self, key: &str) -> Result<Option<u32>> {
        match self.number(key)? {
            None => Ok(None),
            Some(n) if n.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&n) => Ok(Some(n as u32)),
            Some(n) => Err(Error::setting(self.path(key), n, "a whole number from 0 to 4294967295")),
        }
    }

    /// The whole number under a key that must be there.
    pub fn required_count(&self, key: &str) -> Result<u32> {
        self.count(key)?.ok_or_else(|| Error::setting(self.path(key), "missing", "a whole number"))
    }

    /// The string under a key.
    pub fn word(&self, key: &str) -> Result<Option<String>> {
        match self.metadata.get(&self.path(key)) {
            None => Ok(None),
            Some(MetadataValue::Text(word)) => Ok(Some(word)),
            Some(other) => Err(self.wrong(key, &other, "a string")),
        }
    }

    /// The list under a key; `None` also where there is a single value instead.
    pub fn list(&self, key: &str) -> Result<Option<Vec<f64>>> {
        match self.metadata.get(&self.path(key)) {
            Some(MetadataValue::Numbers(list)) => match list.iter().find(|number| !number.is_finite()) {
                Some(bad) => Err(Error::setting(self.path(key), bad, "a list of finite numbers")),
                None => Ok(Some(list)),
            },
            _ => Ok(None),
        }
    }

    fn wrong(&self, key: &str, was: &MetadataValue, may_be: &str) -> Error {
        let was = match was {
            MetadataValue::Number(number) => number.to_string(),
            MetadataValue::Flag(flag) => flag.to_string(),
            MetadataValue::Text(text) => format!("{:?}", text.chars().take(60).collect::<String>()),
            MetadataValue::Numbers(list) => format!("a list of {}", list.len()),
        };
        Error::setting(self.path(key), was, may_be)
    }
}
