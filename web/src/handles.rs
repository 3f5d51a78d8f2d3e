//! Objects of this package inside of what a page hands over: `options.js` passes second handles on.

use crate::options::{Answer, Properties};
use crate::tensor::Tensor;
use wasm_bindgen::convert::TryFromJsValue;

impl Answer {
    /// The object, if there is one.
    pub fn handle<T: TryFromJsValue>(self) -> Option<T> {
        self.given().and_then(|handle| T::try_from_js_value(handle).ok())
    }
}

impl Properties {
    /// The next one, a tensor.
    pub fn tensor(&mut self) -> Option<Tensor> {
        self.next().handle()
    }

    /// The next one, a tensor that `options.js` lets nobody leave out.
    pub fn needed(&mut self) -> Tensor {
        self.tensor().expect("a tensor, as options.js has looked")
    }
}
