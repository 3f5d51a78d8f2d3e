//! A JSON object that knows its path in the file and remembers which of its keys were read.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::{Error, Result};

/// A view of one object of a file. A key with the value `null` counts as absent, as it does for transformers.
pub(super) struct Object<'a> {
    path: String,
    map: &'a Map<String, Value>,
    read: RefCell<BTreeSet<&'a str>>,
}

impl<'a> Object<'a> {
    /// The object at the top of a file.
    pub fn root(value: &'a Value) -> Result<Self> {
        Self::at(String::new(), value)
    }

    fn at(path: String, value: &'a Value) -> Result<Self> {
        match value {
            Value::Object(map) => Ok(Self { path, map, read: RefCell::default() }),
            other if path.is_empty() => Err(Error::setting("JSON text", brief(other), "an object")),
            other => Err(Error::setting(path, brief(other), "an object")),
        }
    }

    /// The path of a key, as errors and warnings name it.
    pub fn path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The value of a key, which now counts as read.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        let (key, value) = self.map.get_key_value(key)?;
        self.read.borrow_mut().insert(key);
        Some(value).filter(|value| !value.is_null())
    }

    /// The keys that nothing has read, by their paths.
    pub fn unread(&self) -> Vec<String> {
        let read = self.read.borrow();
        self.map.keys().filter(|key| !read.contains(key.as_str())).map(|key| self.path(key)).collect()
    }

    /// The finite number under a key.
    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a finite number", number)
    }

    /// The number under a key, of which every sensible value lies above 0.
    pub fn positive(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a finite number above 0", |value| number(value).filter(|&number| number > 0.0))
    }

    /// The base under a key: the powers of anything up to 1 do not fall.
    pub fn base(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a finite number above 1", |value| number(value).filter(|&number| number > 1.0))
    }

    /// The number of tokens, channels or layers under a key: a whole number below 2^32, also where written as `4096.0`.
    pub fn count(&self, key: &str) -> Result<Option<u32>> {
        self.typed(key, "a whole number from 0 to 4294967295", count)
    }

    /// The boolean under a key.
    pub fn flag(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "true or false", Value::as_bool)
    }

    /// The string under a key.
    pub fn word(&self, key: &str) -> Result<Option<&'a str>> {
        self.typed(key, "a string", Value::as_str)
    }

    fn typed<T>(&self, key: &str, may_be: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| Error::setting(self.path(key), brief(value), may_be))
    }

    /// The error for a key that must be there and is not.
    pub fn missing(&self, key: &str, may_be: &str) -> Error {
        Error::setting(self.path(key), "missing", may_be)
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}

fn count(value: &Value) -> Option<u32> {
    let number = number(value).filter(|n| n.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(n))?;
    Some(number as u32)
}

/// A value as an error shows it: whole if short, since a wrong key may hold a whole file.
fn brief(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
