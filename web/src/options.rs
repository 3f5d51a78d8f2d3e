//! Reads what a page hands over: options objects, numbers, words, typed arrays. Whatever it is, it is an answer or an
//! error that names the argument.

use crate::error::{Result, refused};
use js_sys::{Array, Float32Array, Float64Array, Int32Array, Object, Reflect};
use phasor::{Direction, Pairing};
use wasm_bindgen::prelude::*;

/// The names of pairings.
pub const PAIRINGS: [(&str, Pairing); 2] = [("half-split", Pairing::HalfSplit), ("interleaved", Pairing::Interleaved)];

/// The names of directions.
pub const DIRECTIONS: [(&str, Direction); 3] =
    [("forward", Direction::Forward), ("inverse", Direction::Inverse), ("adjoint", Direction::Adjoint)];

/// One argument, or one property of an options object.
pub struct Value {
    name: String,
    value: JsValue,
}

impl Value {
    /// An argument of a call.
    pub fn argument(name: &str, value: &JsValue) -> Self {
        Self { name: name.into(), value: value.clone() }
    }

    /// A property, known by the whole path if it lies within another one.
    pub fn property(&self, name: &str) -> Self {
        // Fails only for what is no object, and then there is no property.
        let value = Reflect::get(&self.value, &name.into()).unwrap_or_default();
        let path = if self.name.is_empty() { name.into() } else { format!("{}.{name}", self.name) };
        Self { name: path, value }
    }

    /// A property, read, if it is given.
    pub fn get<T>(&self, name: &str, read: fn(&Self) -> Result<T>) -> Result<Option<T>> {
        self.property(name).given().map(|value| read(&value)).transpose()
    }

    /// An options object, none of whose properties is unknown: a misspelt one should not go unnoticed.
    pub fn options(name: &str, value: &JsValue, known: &[&str]) -> Result<Self> {
        let options = Self::argument(name, value);
        options.expect_known(known).map(|()| options)
    }

    /// Refuses what is neither left out nor an object of these properties.
    pub fn expect_known(&self, known: &[&str]) -> Result<()> {
        if !self.is_given() {
            return Ok(());
        }
        let Some(object) = self.value.dyn_ref::<Object>() else {
            return Err(self.refuse("an object"));
        };
        match Object::keys(object).iter().filter_map(|key| key.as_string()).find(|key| !known.contains(&&**key))
        {
            Some(unknown) => Err(refused(&self.property(&unknown).name, "given", known.join(", "))),
            None => Ok(()),
        }
    }

    /// Whether it is neither `undefined` nor `null`.
    pub fn is_given(&self) -> bool {
        !self.value.is_undefined() && !self.value.is_null()
    }

    /// Itself, if it is given.
    pub fn given(self) -> Option<Self> {
        self.is_given().then_some(self)
    }

    /// A finite number.
    pub fn number(&self) -> Result<f64> {
        self.value.as_f64().filter(|n| n.is_finite()).ok_or_else(|| self.refuse("a finite number"))
    }

    /// A whole number within the range of an i32.
    pub fn whole(&self) -> Result<i32> {
        let whole = self.value.as_f64().filter(|n| *n == f64::from(*n as i32));
        whole.map(|n| n as i32).ok_or_else(|| self.refuse("a whole number within the range of an i32"))
    }

    /// A whole number, not negative.
    pub fn count(&self) -> Result<usize> {
        let count = self.value.as_f64().filter(|n| *n == f64::from(*n as u32));
        count.map(|n| n as usize).ok_or_else(|| self.refuse("a whole number, not negative"))
    }

    /// A truth value.
    pub fn flag(&self) -> Result<bool> {
        self.value.as_bool().ok_or_else(|| self.refuse("true or false"))
    }

    /// One of some words, with what each stands for.
    pub fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T> {
        let word = self.value.as_string();
        let found = words.iter().find(|(name, _)| Some(*name) == word.as_deref());
        found.map(|&(_, meaning)| meaning).ok_or_else(|| {
            let names: Vec<_> = words.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            self.refuse(&names.join(" or "))
        })
    }

    /// `[batch, tokens, heads, channels]`, or another list of so many whole numbers.
    pub fn counts<const N: usize>(&self) -> Result<[usize; N]> {
        let wrong = || self.refuse(&format!("an array of {N} whole numbers"));
        if !Array::is_array(&self.value) && !js_sys::Uint32Array::is_type_of(&self.value) {
            return Err(wrong());
        }
        let list = Array::from(&self.value);
        let numbers: Vec<_> = list
            .iter()
            .map(|value| Self { name: String::new(), value }.count().ok())
            .collect::<Option<_>>()
            .ok_or_else(wrong)?;
        numbers.try_into().map_err(|_| wrong())
    }

    /// A `Float32Array`.
    pub fn floats(&self) -> Result<Vec<f32>> {
        self.value.dyn_ref().map(Float32Array::to_vec).ok_or_else(|| self.refuse("a Float32Array"))
    }

    /// A `Float64Array`, a `Float32Array` or an array of numbers, as f64.
    pub fn doubles(&self) -> Result<Vec<f64>> {
        if let Some(doubles) = self.value.dyn_ref::<Float64Array>() {
            return Ok(doubles.to_vec());
        }
        if let Some(floats) = self.value.dyn_ref::<Float32Array>() {
            return Ok(floats.to_vec().into_iter().map(f64::from).collect());
        }
        let numbers = Array::is_array(&self.value)
            .then(|| Array::from(&self.value).iter().map(|value| value.as_f64()).collect::<Option<_>>());
        numbers.flatten().ok_or_else(|| self.refuse("a Float64Array, a Float32Array or an array of numbers"))
    }

    /// An `Int32Array`.
    pub fn integers(&self) -> Result<Vec<i32>> {
        self.value.dyn_ref().map(Int32Array::to_vec).ok_or_else(|| self.refuse("an Int32Array"))
    }

    /// The value itself.
    pub fn js(&self) -> &JsValue {
        &self.value
    }

    /// An error about this value.
    pub fn refuse(&self, may_be: &str) -> crate::error::JsError {
        let was = match &self.value {
            value if value.is_undefined() => "left out".into(),
            value => match (value.as_f64(), value.as_string()) {
                (Some(_), _) => value.unchecked_ref::<Object>().to_string().into(),
                (_, Some(text)) => format!("\"{text}\""),
                // An object's own words may be long, or fail.
                _ if Array::is_array(value) => "an array".into(),
                _ => value.js_typeof().as_string().unwrap_or_default(),
            },
        };
        refused(&self.name, was, may_be)
    }
}
