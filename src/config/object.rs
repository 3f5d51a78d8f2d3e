//! A JSON object that knows its path in the file and remembers which of its keys were read.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::LazyLock;

use super::json::{self, Map, Value};
use crate::{Error, Result};

/// A view of one object of a file. A key with the value `null` counts as absent, as it does for transformers.
///
/// Clones share what they have read.
#[derive(Clone)]
pub(super) struct Object<'a> {
    path: String,
    map: &'a Map,
    read: Rc<RefCell<Vec<&'a str>>>,
}

/// JSON text as a value, in the dialect that Python writes: see [`quote_non_finite`].
pub(super) fn parse(what: &str, text: &str) -> Result<Value> {
    json::parse(&quote_non_finite(text))
        .map_err(|error| Error::setting(what, format!("no JSON ({error})"), "a JSON object"))
}

/// Puts quotes around the numbers that Python writes and JSON does not have: `NaN`, `Infinity` and `-Infinity`.
///
/// Configs of hybrid models hold them (`"time_step_limit": [0.0, Infinity]`). They are no reason to refuse a file, and
/// as strings they are still refused where a rope needs a number.
fn quote_non_finite(text: &str) -> Cow<'_, str> {
    const WORDS: [&str; 3] = ["NaN", "-Infinity", "Infinity"];
    if !WORDS.iter().any(|word| text.contains(word)) {
        return Cow::Borrowed(text);
    }
    let mut quoted = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut in_string = false;
    while let Some(next) = rest.chars().next() {
        let word = WORDS.iter().find(|word| !in_string && rest.starts_with(**word));
        let taken = match (word, next) {
            (Some(word), _) => word.len(),
            // An escaped character, a quote perhaps, is part of the string.
            (None, '\\') => rest.chars().take(2).map(char::len_utf8).sum(),
            (None, other) => {
                in_string ^= other == '"';
                other.len_utf8()
            }
        };
        let (head, tail) = rest.split_at(taken);
        match word {
            Some(word) => quoted.extend(["\"", word, "\""]),
            None => quoted.push_str(head),
        }
        rest = tail;
    }
    Cow::Owned(quoted)
}

impl<'a> Object<'a> {
    /// An object that errors and warnings know by `path`; empty for the top of a file.
    pub fn at(path: impl Into<String>, value: &'a Value) -> Result<Self> {
        let path = path.into();
        match value {
            Value::Object(map) => Ok(Self { path, map, read: Rc::default() }),
            other if path.is_empty() => Err(Error::setting("JSON text", brief(other), "an object")),
            other => Err(Error::setting(path, brief(other), "an object")),
        }
    }

    /// The path of a key, as errors and warnings name it.
    pub fn path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// An object without keys.
    pub fn empty(path: impl Into<String>) -> Self {
        static NOTHING: LazyLock<Map> = LazyLock::new(Map::new);
        Self { path: path.into(), map: &NOTHING, read: Rc::default() }
    }

    /// Whether there is no key at all.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Whether some key holds an object.
    pub fn has_objects(&self) -> bool {
        self.map.values().any(Value::is_object)
    }

    /// Whether a key is there, with whatever value.
    pub fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// Whether a key is there with the value `null`.
    pub fn is_null(&self, key: &str) -> bool {
        self.map.get(key).is_some_and(Value::is_null)
    }

    /// The value of a key, which now counts as read.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        let (key, value) = self.map.get_key_value(key)?;
        let mut read = self.read.borrow_mut();
        if !read.contains(&key.as_str()) {
            read.push(key);
        }
        Some(value).filter(|value| !value.is_null())
    }

    /// Counts keys as read that are known and have no effect here.
    pub fn pass_over(&self, keys: &[&str]) {
        for key in keys {
            self.get(key);
        }
    }

    /// The keys that nothing has read, by their paths.
    pub fn unread(&self) -> Vec<String> {
        let read = self.read.borrow();
        self.map.keys().filter(|key| !read.contains(&key.as_str())).map(|key| self.path(key)).collect()
    }

    /// The object under a key.
    pub fn object(&self, key: &str) -> Result<Option<Self>> {
        self.get(key).map(|value| Self::at(self.path(key), value)).transpose()
    }

    /// The finite number under a key.
    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a finite number", number)
    }

    /// The number under a key, of which every sensible value lies above 0.
    pub fn positive(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a finite number above 0", positive)
    }

    /// The share under a key, from 0 to 1.
    pub fn share(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a number from 0 to 1", |value| number(value).filter(|share| (0.0..=1.0).contains(share)))
    }

    /// The base under a key: the powers of anything up to 1 do not fall.
    pub fn base(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a finite number above 1", |value| number(value).filter(|&number| number > 1.0))
    }

    /// The number of tokens, channels or layers under a key: a whole number below 2^32, also where written as `4096.0`.
    pub fn count(&self, key: &str) -> Result<Option<u32>> {
        self.typed(key, "a whole number from 1 to 4294967295", |value| count(value).filter(|&count| count > 0))
    }

    /// The number under the first of several names that is there, and that name.
    pub fn count_of(&self, keys: &[&'static str]) -> Result<Option<(u32, &'static str)>> {
        for &key in keys {
            if let Some(count) = self.count(key)? {
                return Ok(Some((count, key)));
            }
        }
        Ok(None)
    }

    /// The list of finite numbers under a key.
    pub fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>> {
        self.typed(key, "a list of finite numbers", |value| value.as_array()?.iter().map(number).collect())
    }

    /// The list of numbers above 0 under a key.
    pub fn positives(&self, key: &str) -> Result<Option<Vec<f64>>> {
        self.typed(key, "a list of finite numbers above 0", |value| value.as_array()?.iter().map(positive).collect())
    }

    /// The list of whole numbers under a key; `true` and `false` count as 1 and 0.
    pub fn counts(&self, key: &str) -> Result<Option<Vec<u32>>> {
        let whole = |value: &Value| value.as_bool().map(u32::from).or_else(|| count(value));
        self.typed(key, "a list of whole numbers", |value| value.as_array()?.iter().map(whole).collect())
    }

    /// The list of strings under a key.
    pub fn words(&self, key: &str) -> Result<Option<Vec<&'a str>>> {
        self.typed(key, "a list of strings", |value| value.as_array()?.iter().map(Value::as_str).collect())
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

    /// An error that a law gave, its field named by its path if it is a key of this object.
    pub fn locate(&self, error: Error) -> Error {
        match self.map.contains_key(error.argument()) {
            true => error.about(|key| self.path(key)),
            false => error,
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}

fn positive(value: &Value) -> Option<f64> {
    number(value).filter(|&number| number > 0.0)
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
