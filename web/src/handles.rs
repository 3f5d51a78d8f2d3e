//! Objects of this package inside of what a page hands over.

use crate::error::Result;
use crate::options::Value;
use crate::tensor::Tensor;
use js_sys::{Function, Reflect};
use wasm_bindgen::convert::TryFromJsValue;
use wasm_bindgen::prelude::*;

/// A class of this package whose objects can be handed over inside of other objects.
pub trait Shared: TryFromJsValue {
    /// The class's name.
    const CLASS: &'static str;
}

impl Value {
    /// An object of this package, which the page keeps.
    pub fn shared<T: Shared>(&self) -> Result<T> {
        // Converting an object takes it away from the page: a second handle to the same thing is converted instead.
        let handle =
            Reflect::get(self.js(), &"__share".into()).ok().and_then(|share| share.dyn_into::<Function>().ok());
        let handle = handle.and_then(|share| share.call0(self.js()).ok());
        let shared = handle.and_then(|handle| T::try_from_js_value(handle).ok());
        shared.ok_or_else(|| self.refuse(&format!("a {} that has not been freed", T::CLASS)))
    }

    /// A tensor on the device.
    pub fn tensor(&self) -> Result<Tensor> {
        self.shared()
    }
}
