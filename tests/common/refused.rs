//! That a call was refused, and about what.

use phasor::{Error, ErrorKind, Result};

/// The error, which must be of this kind and about this argument.
#[track_caller]
pub fn expect_refused<T>(result: Result<T>, kind: ErrorKind, argument: &str) -> Error {
    let Err(error) = result else { panic!("{argument} should have been refused") };
    assert_eq!((error.kind(), error.argument()), (kind, argument), "{error}");
    error
}
