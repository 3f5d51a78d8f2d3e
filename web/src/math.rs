//! Functions of numbers that every browser has: a copy of the standard library's would be downloaded.
//!
//! The standard library calls them by C's names, and means its own copies only where nobody else provides them.
#![allow(unsafe_code, reason = "a symbol's name is a promise that no other has it")]

use js_sys::Math;

macro_rules! functions {
    ($($name:ident($($x:ident),+);)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($x: f64),+) -> f64 {
            Math::$name($($x),+)
        }
    )*};
}

functions! {
    cos(x);
    exp(x);
    log(x);
    log1p(x);
    hypot(x, y);
    pow(x, y);
    sin(x);
}
