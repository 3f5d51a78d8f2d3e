//! The one error type: which argument, what it was, what it may be.

use crate::shown::Shown;
use std::fmt;

/// Everything that can go wrong, each with enough to mend the call.
///
/// The message of every variant reads *argument: was …, may be …*.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A number or word of a rope's settings, or a field of a model file, is impossible.
    Setting {
        /// The field's name, in the words of the file or struct it came from (`factor`, `rope_scaling.type`).
        field: String,
        /// The value that was given.
        was: String,
        /// What would have been accepted.
        may_be: String,
    },
    /// A tensor's shape, strides, offset or element type does not fit the operation.
    Tensor {
        /// The argument's name in the call (`q`, `k.output`, `positions`).
        argument: String,
        /// The shape, strides, offset or type that was given.
        was: String,
        /// What would have been accepted.
        may_be: String,
    },
    /// Two views share elements where at least one of them is written.
    Overlap {
        /// The view that is written.
        argument: String,
        /// The view that it meets.
        other: String,
        /// Why this is refused and what to do instead.
        may_be: String,
    },
    /// A buffer lacks a usage flag that the operation needs.
    Usage {
        /// The argument's name in the call.
        argument: String,
        /// The flags that the buffer was made with.
        was: String,
        /// The flag that is missing.
        may_be: String,
    },
    /// A position lies outside of the table that is to serve it.
    Position {
        /// The argument's name in the call.
        argument: String,
        /// The positions that were asked for.
        was: String,
        /// The positions that the table holds.
        may_be: String,
    },
    /// The device's limits do not allow this.
    Limit {
        /// The limit, by wgpu's name for it (`max_storage_buffer_binding_size`).
        limit: String,
        /// What the operation would need.
        was: String,
        /// What the device allows.
        may_be: String,
    },
    /// There is no adapter to compute on.
    NoAdapter {
        /// What was looked for, and what to install or set.
        reason: String,
    },
    /// The device is gone: nothing that lives on it can be used any more.
    DeviceLost {
        /// What the driver said.
        reason: String,
    },
    /// The device has no memory left for this.
    OutOfMemory {
        /// What was to be allocated.
        argument: String,
        /// Its size in bytes.
        bytes: u64,
    },
    /// wgpu refused something that phasor's own checks had passed: most often a buffer that was destroyed, or that another
    /// device made.
    Device {
        /// The argument's name in the call, if one is to blame, else what phasor was doing.
        argument: String,
        /// What wgpu said.
        reason: String,
    },
}

/// A `Result` with phasor's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An impossible setting: its field, the value, and what it may be.
    pub(crate) fn setting(field: impl Into<String>, was: impl Shown, may_be: impl Into<String>) -> Self {
        Self::Setting { field: field.into(), was: was.shown(), may_be: may_be.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting { field: name, was, may_be }
            | Self::Tensor { argument: name, was, may_be }
            | Self::Usage { argument: name, was, may_be }
            | Self::Position { argument: name, was, may_be }
            | Self::Limit { limit: name, was, may_be } => write!(f, "{name}: was {was}, may be {may_be}"),
            Self::Overlap { argument, other, may_be } => {
                write!(f, "{argument}: meets {other}, may be {may_be}")
            }
            Self::NoAdapter { reason } => write!(f, "no adapter to compute on: {reason}"),
            Self::DeviceLost { reason } => write!(f, "the device is lost: {reason}"),
            Self::OutOfMemory { argument, bytes } => write!(f, "{argument}: the device has no room for {bytes} bytes"),
            Self::Device { argument, reason } => write!(f, "{argument}: {reason}"),
        }
    }
}

impl std::error::Error for Error {}
