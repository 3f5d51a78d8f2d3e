//! The library's errors as JavaScript's.

use wasm_bindgen::prelude::*;

#[wasm_bindgen(module = "/src/options.js")]
extern "C" {
    fn failed(code: &str, argument: &str, message: &str) -> JsValue;
}

/// A result whose error a page can catch.
pub type Result<T> = std::result::Result<T, JsError>;

/// A JavaScript `Error` named `PhasorError`, with the library's message, its kind as `code`, and what it is about as
/// `argument`.
#[derive(Debug)]
pub struct JsError(JsValue);

impl JsError {
    /// For what JavaScript itself handed back.
    pub fn other(argument: &str, value: &JsValue) -> Self {
        let message = value.dyn_ref::<js_sys::Error>().map(|error| error.message().into());
        let reason = message.or_else(|| value.as_string()).unwrap_or_default();
        phasor::Error::new(phasor::ErrorKind::Device, argument, reason, "").into()
    }
}

impl From<phasor::Error> for JsError {
    fn from(error: phasor::Error) -> Self {
        Self(failed(&error.kind().to_string(), error.argument(), &error.to_string()))
    }
}

/// What JavaScript has thrown.
impl From<JsValue> for JsError {
    fn from(thrown: JsValue) -> Self {
        Self(thrown)
    }
}

impl From<JsError> for JsValue {
    fn from(error: JsError) -> Self {
        error.0
    }
}

/// A tensor, number or word that cannot be: the argument's name, what it was, what it may be.
pub fn refused(argument: &str, was: impl Into<String>, may_be: impl Into<String>) -> JsError {
    phasor::Error::new(phasor::ErrorKind::Tensor, argument, was, may_be).into()
}
