//! The rotations to check: which settings meet which.

use phasor::{Direction, Pairing};
use std::fmt;

/// The last position of the promise.
pub(super) const LAST: i32 = (1 << 24) - 1;

/// Where tokens begin: at and around the places where other kernels go wrong. Twenty positions follow each.
pub(super) const ANCHORS: [i32; 9] =
    [0, 4_090, 131_065, 1_000_000, LAST - 19, -10, -LAST, i32::MIN, i32::MAX - 20];

/// Declares an enum whose values can be listed and have a name in words.
macro_rules! choices {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $words:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $words,)* })
            }
        }
    };
}

choices! {
    /// Which path the layout allows.
    Lanes {
        Vector = "vector layout",
        /// Odd offsets and strides, channels two elements apart.
        Any = "odd layout",
    }
}

choices! {
    /// Which buffers the tensors lie in.
    Data {
        Alone = "q alone in place",
        Packed = "q and k packed in one buffer",
        /// Inputs and outputs in one buffer.
        Arena = "q and k moved within one buffer",
        InPlace = "q and k in place",
        CopyQ = "q copied",
        Copy = "q and k copied",
    }
}

choices! {
    /// Where cosines, sines and positions come from.
    Angles {
        TurnsFromStart = "no table, from a start",
        TurnsPerRow = "no table, a start per row",
        TurnsPerToken = "no table, a position per token",
        TableFromStart = "table, from a start",
        TablePerRow = "table, a start per row",
        TablePerToken = "table, a position per token",
        /// The table itself was made for a buffer of positions.
        TableOfTokens = "table for these tokens",
    }
}

impl Angles {
    /// The starts or positions that a buffer holds may be anywhere, since no range of a table bounds them.
    pub fn are_free(self) -> bool {
        matches!(self, Self::TurnsPerRow | Self::TurnsPerToken | Self::TableOfTokens)
    }
}

choices! {
    /// Which channels of the 32 turn.
    Channels {
        All = "all channels",
        First = "the first 16 channels",
        Last = "the last 16 channels",
    }
}

impl Channels {
    /// The first channel that turns, and how many do.
    pub fn range(self) -> (usize, usize) {
        match self {
            Self::All => (0, 32),
            Self::First => (0, 16),
            Self::Last => (16, 16),
        }
    }
}

choices! {
    /// How rows of the batch follow each other.
    Rows {
        One = "1 row",
        Following = "2 rows",
        Apart = "2 rows with a gap",
        Decode = "3 rows of 1 token",
    }
}

impl Rows {
    /// Batch rows, and tokens in each.
    pub fn extent(self) -> [usize; 2] {
        match self {
            Self::One => [1, 5],
            Self::Following | Self::Apart => [2, 5],
            Self::Decode => [3, 1],
        }
    }
}

/// One rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    pub lanes: Lanes,
    pub data: Data,
    pub angles: Angles,
    pub pairing: Pairing,
    pub direction: Direction,
    pub channels: Channels,
    pub rows: Rows,
    /// Which of [`ANCHORS`] the tokens stand at; others follow from it.
    pub anchor: usize,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lanes, data, angles, pairing, direction, channels, rows, anchor } = self;
        let at = ANCHORS[anchor % ANCHORS.len()];
        write!(f, "{lanes}, {data}, {angles}, {pairing:?}, {direction:?}, {channels}, {rows}, near position {at}")
    }
}

const PAIRINGS: [Pairing; 2] = [Pairing::HalfSplit, Pairing::Interleaved];
const DIRECTIONS: [Direction; 3] = [Direction::Forward, Direction::Inverse, Direction::Adjoint];

/// Every text of the rotation kernel in both pairings and every way to reach it. Directions, channels, rows and anchors
/// take turns, so that every value of a setting meets every value of every other: all combinations would be thousands of
/// pipelines to compile, which is what takes the time.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &lanes in Lanes::ALL {
        for &data in Data::ALL {
            for &angles in Angles::ALL {
                for pairing in PAIRINGS {
                    let n = cases.len();
                    // Found by trying; the test below says whether they do.
                    cases.push(Case {
                        lanes,
                        data,
                        angles,
                        pairing,
                        direction: DIRECTIONS[(n + n / 4) % 3],
                        channels: Channels::ALL[(n / 2 + n / 3) % 3],
                        rows: Rows::ALL[(n + n / 4) % 4],
                        anchor: n + n / 7,
                    });
                }
            }
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_a_setting_meets_every_value_of_the_others() {
        let keys = |case: &Case| {
            [
                case.lanes.to_string(),
                case.data.to_string(),
                case.angles.to_string(),
                format!("{:?}", case.pairing),
                format!("{:?}", case.direction),
                case.channels.to_string(),
                case.rows.to_string(),
                ANCHORS[case.anchor % ANCHORS.len()].to_string(),
            ]
        };
        let cases: Vec<_> = cases().iter().map(keys).collect();
        let distinct = |pick: &dyn Fn(&[String; 8]) -> String| {
            cases.iter().map(pick).collect::<std::collections::BTreeSet<_>>().len()
        };
        for i in 0..8 {
            for j in 0..i {
                let alone = distinct(&|case| case[i].clone()) * distinct(&|case| case[j].clone());
                assert_eq!(distinct(&|case| format!("{} {}", case[i], case[j])), alone, "settings {i} and {j}");
            }
        }
    }

    #[test]
    fn anchors_leave_room() {
        assert!(ANCHORS.iter().all(|anchor| anchor.checked_add(20).is_some()));
        assert!(ANCHORS.contains(&(LAST - 19)), "a range of 20 positions ends at the last one");
    }
}
