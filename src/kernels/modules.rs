//! The pieces that kernels share, by name. A kernel's finished text is its pieces one after the other.

/// Declares a constant for each file in `shaders/shared`.
macro_rules! shared {
    ($($name:ident = $file:literal;)*) => {
        $(pub(crate) const $name: Module = Module {
            name: $file,
            wgsl: include_str!(concat!("../../shaders/shared/", $file, ".wgsl")),
        };)*
    };
}

/// A piece of WGSL and the name that stands for it in a variant's name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Module {
    pub name: &'static str,
    pub wgsl: &'static str,
}

shared! {
    ANGLES_TABLE = "angles_table";
    ANGLES_TURNS = "angles_turns";
    DATA_COPY = "data_copy";
    DATA_COPY_Q = "data_copy_q";
    DATA_IN_PLACE = "data_in_place";
    DATA_ONE = "data_one";
    LANE1 = "lane1";
    LANE4 = "lane4";
    PAIRS = "pairs";
    POSITIONS_BUFFER = "positions_buffer";
    POSITIONS_NONE = "positions_none";
    STORE_F32 = "store_f32";
    TURN = "turn";
}

/// How many pairs one lane holds: the vector path or the one for any layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Lane {
    One,
    Four,
}

impl Lane {
    pub(crate) fn pairs(self) -> usize {
        match self {
            Self::One => 1,
            Self::Four => 4,
        }
    }

    pub(crate) fn module(self) -> Module {
        match self {
            Self::One => LANE1,
            Self::Four => LANE4,
        }
    }
}
