//! What one element of a tensor is.

use std::fmt;

/// How one element is stored. Arithmetic is f32 whatever the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16. Works on devices with the f16 extension and without it.
    F16,
    /// The upper half of a binary32.
    BF16,
    /// Two's-complement 32-bit integers: positions, rows.
    I32,
}

impl ElementType {
    /// Bytes of one element.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::BF16 => 2,
        }
    }

    /// How queries, keys and values may be stored.
    #[cfg(feature = "gpu")]
    pub(crate) const FLOATS: [Self; 3] = [Self::F32, Self::F16, Self::BF16];

    /// Whether queries, keys and values may be stored so.
    #[must_use]
    pub const fn is_float(self) -> bool {
        !matches!(self, Self::I32)
    }

    /// The name that safetensors, GGUF and PyTorch users know, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::I32 => "i32",
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
