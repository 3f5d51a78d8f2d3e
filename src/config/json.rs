//! JSON text as a tree: serde_json's, or in a browser the one that is there already.

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub(super) use browser::{Map, Value, parse};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub(super) use native::{Map, Value, parse};

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod native {
    pub type Map = serde_json::Map<String, Value>;
    pub use serde_json::Value;

    /// The tree, or what is wrong with the text.
    pub fn parse(text: &str) -> Result<Value, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}

/// serde_json's parser and its tables of powers of ten would be a fifth of a download.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod browser {
    use crate::shown::Shown;
    use js_sys::wasm_bindgen::{JsCast, JsValue};
    use js_sys::{Array, Error, JSON, Object};
    use std::fmt;

    /// serde_json's `Value`, as far as it is needed.
    #[derive(Debug, Clone)]
    pub enum Value {
        Null,
        Bool(bool),
        Number(f64),
        String(String),
        Array(Vec<Value>),
        Object(Map),
    }

    /// serde_json's `Map`, in the order of the text. Objects of configs are small.
    #[derive(Debug, Clone, Default)]
    pub struct Map(Vec<(String, Value)>);

    /// As deep as serde_json goes.
    const DEEPEST: u32 = 128;

    /// The tree, or what is wrong with the text.
    pub fn parse(text: &str) -> Result<Value, String> {
        let parsed = JSON::parse(text)
            .map_err(|error| error.dyn_ref::<Error>().map(|error| String::from(error.message())).unwrap_or_default())?;
        tree(&parsed, DEEPEST).ok_or_else(|| "recursion limit exceeded".into())
    }

    fn tree(value: &JsValue, depth: u32) -> Option<Value> {
        let below = depth.checked_sub(1)?;
        if let Some(flag) = value.as_bool() {
            return Some(Value::Bool(flag));
        }
        if let Some(number) = value.as_f64() {
            return Some(Value::Number(number));
        }
        if let Some(text) = value.as_string() {
            return Some(Value::String(text));
        }
        if Array::is_array(value) {
            let list: Option<_> = value.unchecked_ref::<Array>().iter().map(|item| tree(&item, below)).collect();
            return list.map(Value::Array);
        }
        let Some(object) = value.dyn_ref::<Object>() else { return Some(Value::Null) };
        let entries = Object::entries(object);
        let entries = entries.iter().map(|entry| {
            let entry: &Array = entry.unchecked_ref();
            Some((entry.get(0).as_string()?, tree(&entry.get(1), below)?))
        });
        entries.collect::<Option<_>>().map(|entries| Value::Object(Map(entries)))
    }

    impl Map {
        pub const fn new() -> Self {
            Self(Vec::new())
        }

        pub fn is_empty(&self) -> bool {
            self.0.is_empty()
        }

        pub fn keys(&self) -> impl Iterator<Item = &String> {
            self.0.iter().map(|(key, _)| key)
        }

        pub fn values(&self) -> impl Iterator<Item = &Value> {
            self.0.iter().map(|(_, value)| value)
        }

        pub fn get_key_value(&self, key: &str) -> Option<(&String, &Value)> {
            self.0.iter().find(|(other, _)| other == key).map(|(key, value)| (key, value))
        }

        pub fn get(&self, key: &str) -> Option<&Value> {
            self.get_key_value(key).map(|(_, value)| value)
        }

        pub fn contains_key(&self, key: &str) -> bool {
            self.get(key).is_some()
        }
    }

    impl Value {
        pub fn is_null(&self) -> bool {
            matches!(self, Self::Null)
        }

        pub fn is_object(&self) -> bool {
            matches!(self, Self::Object(_))
        }

        pub fn as_bool(&self) -> Option<bool> {
            if let Self::Bool(flag) = self { Some(*flag) } else { None }
        }

        pub fn as_f64(&self) -> Option<f64> {
            if let Self::Number(number) = self { Some(*number) } else { None }
        }

        pub fn as_str(&self) -> Option<&str> {
            if let Self::String(text) = self { Some(text) } else { None }
        }

        pub fn as_array(&self) -> Option<&Vec<Value>> {
            if let Self::Array(list) = self { Some(list) } else { None }
        }

        /// The value of a key, if this is an object that has it.
        pub fn get(&self, key: &str) -> Option<&Value> {
            if let Self::Object(map) = self { map.get(key) } else { None }
        }
    }

    /// As JSON, for people: nothing is escaped.
    impl fmt::Display for Value {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let comma = |i: usize| if i == 0 { "" } else { "," };
            match self {
                Self::Null => f.write_str("null"),
                Self::Bool(flag) => write!(f, "{flag}"),
                Self::Number(number) => f.write_str(&number.shown()),
                Self::String(text) => write!(f, "\"{text}\""),
                Self::Array(list) => {
                    f.write_str("[")?;
                    list.iter().enumerate().try_for_each(|(i, value)| write!(f, "{}{value}", comma(i)))?;
                    f.write_str("]")
                }
                Self::Object(Map(entries)) => {
                    f.write_str("{")?;
                    let mut entries = entries.iter().enumerate();
                    entries.try_for_each(|(i, (key, value))| write!(f, "{}\"{key}\":{value}", comma(i)))?;
                    f.write_str("}")
                }
            }
        }
    }
}
