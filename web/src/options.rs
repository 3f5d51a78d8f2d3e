//! What a page hands over, once `options.js` has read it: there it was refused, or here it is as the tables there say.

use crate::error::Result;
use js_sys::{Array, Float32Array, Float64Array, Int32Array, Uint32Array};
use phasor::{Direction, Pairing};
use wasm_bindgen::prelude::*;

#[wasm_bindgen(module = "/src/options.js")]
extern "C" {
    #[wasm_bindgen(catch, js_name = read)]
    fn read_as(kind: &str, value: &JsValue, name: &str) -> std::result::Result<JsValue, JsValue>;
    #[wasm_bindgen(catch, js_name = read)]
    fn read_number(kind: &str, value: &JsValue, name: &str) -> std::result::Result<f64, JsValue>;
    #[wasm_bindgen(catch, js_name = read)]
    fn read_text(kind: &str, value: &JsValue, name: &str) -> std::result::Result<String, JsValue>;
}

/// Pairings, in the order of their names.
const PAIRINGS: [Pairing; 2] = [Pairing::HalfSplit, Pairing::Interleaved];

/// Directions, in the order of their names.
pub const DIRECTIONS: [Direction; 3] = [Direction::Forward, Direction::Inverse, Direction::Adjoint];

/// What `options.js` makes of an argument.
///
/// # Errors
/// Its error, which names the argument.
pub fn read(kind: &str, value: &JsValue, name: &str) -> Result<Answer> {
    Ok(Answer(read_as(kind, value, name)?))
}

/// A number of the kind that a table calls so. What is declared a number in Rust would be made one of whatever comes.
///
/// # Errors
/// As [`read`].
pub fn number(kind: &str, value: &JsValue, name: &str) -> Result<f64> {
    Ok(read_number(kind, value, name)?)
}

/// A whole number, not negative.
///
/// # Errors
/// As [`read`].
pub fn count(value: &JsValue, name: &str) -> Result<u32> {
    Ok(number("count", value, name)? as u32)
}

/// As [`count`], and 0 if left out.
///
/// # Errors
/// As [`read`].
pub fn count_or_0(value: &JsValue, name: &str) -> Result<u32> {
    Ok(number("countOr0", value, name)? as u32)
}

/// A whole number.
///
/// # Errors
/// As [`read`].
pub fn whole(value: &JsValue, name: &str) -> Result<i32> {
    Ok(number("whole", value, name)? as i32)
}

/// A text.
///
/// # Errors
/// As [`read`].
pub fn text(value: &JsValue, name: &str) -> Result<String> {
    Ok(read_text("text", value, name)?)
}

/// One argument or property, or nothing where it was left out.
pub struct Answer(JsValue);

impl Answer {
    /// Whether it was not left out.
    pub fn is_given(&self) -> bool {
        !self.0.is_undefined()
    }

    /// The value itself, if there is one.
    pub fn given(self) -> Option<JsValue> {
        self.is_given().then_some(self.0)
    }

    /// Whatever number there is.
    pub fn number(&self) -> Option<f64> {
        self.0.as_f64()
    }

    /// A whole number, not negative.
    pub fn count(&self) -> Option<usize> {
        self.number().map(|count| count as usize)
    }

    /// A whole number.
    pub fn whole(&self) -> Option<i32> {
        self.number().map(|whole| whole as i32)
    }

    /// A truth value.
    pub fn flag(&self) -> Option<bool> {
        self.0.as_bool()
    }

    /// What a word stands for, by its place.
    pub fn word<T: Copy>(&self, meanings: &[T]) -> Option<T> {
        meanings.get(self.count()?).copied()
    }

    /// Which channels make a pair.
    pub fn pairing(&self) -> Pairing {
        self.word(&PAIRINGS).unwrap_or(Pairing::HalfSplit)
    }

    /// `[batch, tokens, heads, channels]`.
    pub fn shape(&self) -> [usize; 4] {
        let list: &Uint32Array = self.0.unchecked_ref();
        [0, 1, 2, 3].map(|axis| list.get_index(axis) as usize)
    }

    /// A `Float32Array`.
    pub fn floats(&self) -> Vec<f32> {
        self.0.unchecked_ref::<Float32Array>().to_vec()
    }

    /// A `Float64Array`.
    pub fn doubles(&self) -> Vec<f64> {
        self.0.unchecked_ref::<Float64Array>().to_vec()
    }

    /// An `Int32Array`.
    pub fn integers(&self) -> Vec<i32> {
        self.0.unchecked_ref::<Int32Array>().to_vec()
    }

    /// The answers for an options object's properties.
    pub fn properties(&self) -> Option<Properties> {
        self.0.is_object().then(|| Properties { answers: self.0.unchecked_ref::<Array>().clone(), next: 0 })
    }

    /// As [`Answer::properties`], of what cannot be left out.
    pub fn all(&self) -> Properties {
        Properties { answers: self.0.unchecked_ref::<Array>().clone(), next: 0 }
    }
}

/// The answers for an options object's properties, in the order of its table.
pub struct Properties {
    answers: Array,
    next: u32,
}

impl Properties {
    /// The next one.
    pub fn next(&mut self) -> Answer {
        self.next += 1;
        Answer(self.answers.get(self.next - 1))
    }
}
