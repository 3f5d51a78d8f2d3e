//! The pieces that kernels share, by name. A kernel's finished text is its pieces one after the other.

use crate::Pairing;

/// A file in `shaders`, or in a folder there, as a module: whole, or for a download without what only people read.
macro_rules! module {
    ($file:literal) => {
        $crate::kernels::modules::module!("", $file)
    };
    ($folder:literal, $file:literal) => {{
        const TEXT: &str = include_str!(concat!("../../shaders/", $folder, $file, ".wgsl"));
        #[cfg(not(target_family = "wasm"))]
        const WGSL: &str = TEXT;
        #[cfg(target_family = "wasm")]
        const WGSL: &str = {
            const BYTES: &[u8] =
                &$crate::kernels::stripped::stripped::<{ $crate::kernels::stripped::stripped::<0>(TEXT).1 }>(TEXT).0;
            match str::from_utf8(BYTES) {
                Ok(text) => text,
                Err(_) => panic!("comments were cut within a character"),
            }
        };
        $crate::kernels::modules::Module { name: $file, wgsl: WGSL }
    }};
}
pub(crate) use module;

/// Declares a constant for each file in `shaders/shared`.
macro_rules! shared {
    ($($name:ident = $file:literal;)*) => {
        $(pub(crate) const $name: Module = module!("shared/", $file);)*
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
    ATTENTION = "attention";
    BIAS_BUFFER = "bias_buffer";
    BIAS_NONE = "bias_none";
    COUNT = "count";
    DECODE_CONTEXTUAL = "decode_contextual";
    DECODE_COUNTS = "decode_counts";
    DECODE_COUNTS_OF_INVOCATIONS = "decode_counts_of_invocations";
    DECODE_COUNTS_OF_SPLITS = "decode_counts_of_splits";
    DECODE_FOUR = "decode_four";
    DECODE_FOUR_PRODUCTS = "decode_four_products";
    DECODE_GATES_APART = "decode_gates_apart";
    DECODE_GATES_FROM_LOGITS = "decode_gates_from_logits";
    DECODE_NO_COUNTS = "decode_no_counts";
    DECODE_ONE = "decode_one";
    DECODE_ONE_PRODUCTS = "decode_one_products";
    DECODE_PLAIN = "decode_plain";
    DECODE_ROWS = "decode_rows";
    FOUR_COUNTS = "four_counts";
    FOUR_ROWS = "four_rows";
    FOUR_TOKENS = "four_tokens";
    GATES_FROM_KEYS = "gates_from_keys";
    GATES_FROM_VALUES = "gates_from_values";
    GATE_SUM_BUFFER = "gate_sum_buffer";
    GATE_SUM_NONE = "gate_sum_none";
    GATE_SUM_OUT_BUFFER = "gate_sum_out_buffer";
    GATE_SUM_OUT_NONE = "gate_sum_out_none";
    HALVES_LANE1 = "halves_lane1";
    HALVES_LANE4 = "halves_lane4";
    KEEP_BUFFER = "keep_buffer";
    KEEP_NONE = "keep_none";
    KEY_RANGE_BUFFER = "key_range_buffer";
    KEY_RANGE_NONE = "key_range_none";
    LANE1 = "lane1";
    LANE4 = "lane4";
    LANES_ALONE = "lanes_alone";
    LANES_SUBGROUP = "lanes_subgroup";
    LSE_BUFFER = "lse_buffer";
    LSE_NONE = "lse_none";
    MASKED = "masked";
    MERGE_COUNTS = "merge_counts";
    MERGE_NO_COUNTS = "merge_no_counts";
    PAIRS = "pairs";
    PAIRS_HALF_SPLIT = "pairs_half_split";
    PAIRS_INTERLEAVED = "pairs_interleaved";
    PLACE = "place";
    POSITIONS_LANE1 = "positions_lane1";
    POSITIONS_LANE4 = "positions_lane4";
    POSITIONS_NONE = "positions_none";
    ROTATION = "rotation";
    ROTATION_CHANNELS = "rotation_channels";
    ROTATION_LANES = "rotation_lanes";
    ROTATION_NONE = "rotation_none";
    ROTATION_WORDS = "rotation_words";
    PROJECTION = "projection";
    PROJECTION_BIAS = "projection_bias";
    PROJECTION_LANE1 = "projection_lane1";
    PROJECTION_LANE4 = "projection_lane4";
    PROJECTION_NO_BIAS = "projection_no_bias";
    ROWS_BUFFER = "rows_buffer";
    ROWS_CONTEXTUAL = "rows_contextual";
    ROWS_NONE = "rows_none";
    ROWS_PLAIN = "rows_plain";
    TILES_CONTEXTUAL = "tiles_contextual";
    TILES_GATES_APART = "tiles_gates_apart";
    TILES_GATES_FROM_LOGITS = "tiles_gates_from_logits";
    TILES_PLAIN = "tiles_plain";
    TURN = "turn";
    WORDS_SCALAR = "words_scalar";
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

    /// How a lane's two words hold its pairs.
    pub(crate) fn pairing(self, pairing: Pairing) -> Module {
        match (self, pairing) {
            (Self::Four, Pairing::Interleaved) => PAIRS_INTERLEAVED,
            _ => PAIRS_HALF_SPLIT,
        }
    }

    /// Where positions come from: a buffer, or nowhere.
    pub(crate) fn positions(self, from_buffer: bool) -> Module {
        match (self, from_buffer) {
            (_, false) => POSITIONS_NONE,
            (Self::One, true) => POSITIONS_LANE1,
            (Self::Four, true) => POSITIONS_LANE4,
        }
    }
}
