//! Values as messages show them.
//!
//! What the standard library needs to print an f64 is a twentieth of a download, and a browser has it already: nothing else
//! in the library formats one.

/// What messages show.
pub(crate) trait Shown {
    /// The shortest text that tells the value from any other.
    fn shown(&self) -> String;
}

/// A number with an exponent: `2e38`.
pub(crate) fn with_exponent(number: f64) -> String {
    float::with_exponent(number)
}

impl Shown for f64 {
    fn shown(&self) -> String {
        float::plain(*self)
    }
}

impl<T: Shown + ?Sized> Shown for &T {
    fn shown(&self) -> String {
        (*self).shown()
    }
}

/// What the standard library may print.
macro_rules! printed {
    ($($type:ty),*) => {
        $(impl Shown for $type {
            fn shown(&self) -> String {
                self.to_string()
            }
        })*
    };
}

printed!(str, String, bool, u8, u32, usize, crate::Pairing);

#[cfg(not(all(target_family = "wasm", target_os = "unknown", feature = "config")))]
mod float {
    pub fn plain(number: f64) -> String {
        number.to_string()
    }

    pub fn with_exponent(number: f64) -> String {
        format!("{number:e}")
    }
}

#[cfg(all(target_family = "wasm", target_os = "unknown", feature = "config"))]
mod float {
    use js_sys::Object;
    use js_sys::wasm_bindgen::{JsCast, JsValue};

    /// With an exponent where there would be many zeros.
    pub fn plain(number: f64) -> String {
        JsValue::from(number).unchecked_ref::<Object>().to_string().into()
    }

    pub use plain as with_exponent;
}
