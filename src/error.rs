//! The one error type: what kind it is, which argument, what that was, what it may be.

use crate::shown::Shown;
use std::fmt;

/// What went wrong, with enough to mend the call.
///
/// As a message most read *argument: was …, may be …*; for programs there are a [`kind`](Self::kind) and the parts. It is as
/// large as a pointer, so that results are moved about at little cost.
///
/// ```
/// use phasor::ErrorKind;
/// use phasor::frequencies::Linear;
///
/// let error = Linear::new(10_000.0, -2.0).frequencies(128).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Setting);
/// assert_eq!(error.argument(), "factor");
/// assert_eq!(error.was(), "-2");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Parts>);

#[derive(Clone, PartialEq, Eq)]
struct Parts {
    kind: ErrorKind,
    argument: String,
    was: String,
    may_be: String,
}

/// What kind of thing went wrong, and what an error's parts are then. In a browser its name is the error's `code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A number or word is impossible: of a rope's settings, of an operation's, or in a model file. The argument has the
    /// name of the file's or struct's field, or of the parameter (`factor`, `rope_scaling.type`, `scale`).
    Setting,
    /// A tensor or table does not fit the operation: its shape, strides, offset, element type or length, what it was made
    /// for, or that it is there at all. Where a view is made, the argument is a part of it (`layout`, `shape`, `heads`).
    Tensor,
    /// Two views stand in each other's way, where at least one of them is written: they share elements, or a buffer of
    /// which one dispatch cannot do both. The argument is one of the two, what it was is the name of the other; what it may
    /// be says which of them may share what.
    Overlap,
    /// A buffer lacks a usage flag that the operation needs: what it was are its flags, what it may be those with the
    /// missing one.
    Usage,
    /// Positions (argument `positions` or `tokens`) are outside of the table that is to serve them, or no i32, or not as
    /// many to a token as there are axes: those that were asked for, and those that may be.
    Position,
    /// The device's limits do not allow this. The argument is the limit, by wgpu's name for it
    /// (`max_storage_buffer_binding_size`), what it was is what the operation would need, what it may be what the device
    /// has.
    Limit,
    /// There is no adapter to compute on. What it was says what was looked for, and what to install or set; no more parts.
    NoAdapter,
    /// The device is gone: nothing that lives on it can be used any more. What it was says what could not be done, and what
    /// the driver said where it said something; no more parts.
    DeviceLost,
    /// The device has no memory left. The argument is what was to be allocated, what it was is its size, as `64 bytes`;
    /// no more parts.
    OutOfMemory,
    /// wgpu refused something that phasor's own checks had passed: most often a buffer that was destroyed, or that another
    /// device made. The argument is the one to blame if there is one, else what phasor was doing; what it was is what wgpu
    /// said, in one line or several; no more parts.
    Device,
}

/// A `Result` with phasor's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of an engine's own that reads as phasor's do. Parts that a kind does not have are empty, and the message
    /// leaves them out.
    pub fn new(
        kind: ErrorKind,
        argument: impl Into<String>,
        was: impl Into<String>,
        may_be: impl Into<String>,
    ) -> Self {
        Self(Box::new(Parts { kind, argument: argument.into(), was: was.into(), may_be: may_be.into() }))
    }

    /// An impossible setting: its field, the value, and what it may be.
    pub(crate) fn setting(field: impl Into<String>, was: impl Shown, may_be: impl Into<String>) -> Self {
        Self::new(ErrorKind::Setting, field, was.shown(), may_be)
    }

    /// A tensor that does not fit: its name in the call, what it was, and what it may be.
    pub(crate) fn tensor(argument: impl Into<String>, was: impl Into<String>, may_be: impl Into<String>) -> Self {
        Self::new(ErrorKind::Tensor, argument, was, may_be)
    }

    /// What kind of thing went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The argument's name in the call (`q`, `k.output`, `positions`), the field's, the limit's, or what was being done.
    #[must_use]
    pub fn argument(&self) -> &str {
        &self.0.argument
    }

    /// The value, shape, size or name that it was, or the reason: words for a person, which may change.
    #[must_use]
    pub fn was(&self) -> &str {
        &self.0.was
    }

    /// What would have been accepted: words for a person, which may change.
    #[must_use]
    pub fn may_be(&self) -> &str {
        &self.0.may_be
    }

    /// The same with the argument's name in a file's words.
    #[cfg(feature = "config")]
    pub(crate) fn about(mut self, name: impl FnOnce(&str) -> String) -> Self {
        self.0.argument = name(&self.0.argument);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { kind, argument, was, may_be } = &*self.0;
        match kind {
            ErrorKind::Overlap => write!(f, "{argument}: meets {was}, may be {may_be}"),
            ErrorKind::NoAdapter => write!(f, "no adapter to compute on: {was}"),
            ErrorKind::DeviceLost => write!(f, "the device is lost: {was}"),
            ErrorKind::OutOfMemory => write!(f, "{argument}: the device has no room for {was}"),
            ErrorKind::Device => write!(f, "{argument}: {was}"),
            ErrorKind::Setting | ErrorKind::Tensor | ErrorKind::Usage | ErrorKind::Position | ErrorKind::Limit => {
                write!(f, "{argument}: was {was}, may be {may_be}")
            }
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind())
    }
}

impl std::error::Error for Error {}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
