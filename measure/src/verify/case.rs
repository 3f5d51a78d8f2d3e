//! The rotations to check: which settings meet which.

use phasor::{Direction, ElementType, Pairing};
use std::collections::HashSet;
use std::fmt;

/// The last position of the promise.
pub(super) const LAST: i32 = (1 << 24) - 1;

/// Where tokens begin: at and around the places where other kernels go wrong. Twenty positions follow each.
pub(super) const ANCHORS: [i32; 9] = [0, 4_090, 131_065, 1_000_000, LAST - 19, -10, -LAST, i32::MIN, i32::MAX - 20];

/// Declares an enum whose values can be listed and have a name in words.
macro_rules! choices {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $words:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            #[allow(dead_code, reason = "not every choice is walked through")]
            const ALL: &[Self] = &[$(Self::$variant,)*];
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
        /// Keys alone, to rows of a cache.
        CacheK = "k into a cache",
        CacheBoth = "q copied, k into a cache",
    }
}

impl Data {
    /// Whether the last output is a cache, with rows that a buffer names.
    pub fn has_cache(self) -> bool {
        matches!(self, Self::CacheK | Self::CacheBoth)
    }
}

choices! {
    /// How elements are stored.
    Elements {
        F32 = "f32",
        F16 = "f16",
        Bf16 = "bf16",
        /// Queries stay f32, keys become f16.
        Converting = "f32 with k to f16",
    }
}

impl Elements {
    /// Of q, its output, k, and its output.
    pub fn types(self) -> [ElementType; 4] {
        use ElementType::{BF16, F16, F32};
        match self {
            Self::F32 => [F32; 4],
            Self::F16 => [F16; 4],
            Self::Bf16 => [BF16; 4],
            Self::Converting => [F32, F32, F32, F16],
        }
    }
}

choices! {
    /// Where cosines, sines and positions come from.
    Angles {
        TurnsFromStart = "no table, from a start",
        TurnsPerRow = "no table, a start per row",
        TurnsPerToken = "no table, a position per token",
        TurnsPerAxis = "no table, three positions per token",
        TableFromStart = "table, from a start",
        TablePerRow = "table, a start per row",
        TablePerToken = "table, a position per token",
        /// The table itself was made for a buffer of positions.
        TableOfTokens = "table for these tokens",
    }
}

impl Angles {
    /// Whether positions may be anywhere: no range bounds them, neither a table's nor that of tokens in a row.
    pub fn are_free(self) -> bool {
        matches!(self, Self::TurnsPerRow | Self::TurnsPerToken | Self::TurnsPerAxis | Self::TableOfTokens)
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
    pub elements: Elements,
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
        let Self { lanes, data, elements, angles, pairing, direction, channels, rows, anchor } = self;
        let at = ANCHORS[*anchor];
        write!(
            f,
            "{lanes}, {data}, {elements}, {angles}, {pairing:?}, {direction:?}, {channels}, {rows}, near position {at}"
        )
    }
}

const DIRECTIONS: [Direction; 3] = [Direction::Forward, Direction::Inverse, Direction::Adjoint];

/// The settings that choose the kernel's text.
#[derive(Debug, Clone, Copy)]
struct Text {
    lanes: Lanes,
    data: Data,
    elements: Elements,
    angles: Angles,
    pairing: Pairing,
}

/// Buffers in a common case, buffers in a case that needs all of the kernel's branches, and the types of both.
const STORAGE: [(&[Data], &[Data], &[Elements]); 4] = {
    use Data::{Alone, Arena, CacheBoth, CacheK, Copy, CopyQ, InPlace, Packed};
    use Elements::{Bf16, Converting, F16, F32};
    [
        (&[Alone, Packed, Arena], &[Arena, Alone, Packed], &[F32, F16, Bf16]),
        (&[InPlace], &[InPlace], &[F32, F16, Bf16]),
        (&[CopyQ], &[CacheK], &[F32, F16, Bf16, Converting]),
        (&[Copy], &[CacheBoth], &[F32, F16, Bf16, Converting]),
    ]
};

/// Every finished shader's text; in f32 every way to lay out tensors with every way to find angles, in one pairing or the
/// other so that both meet every text. All combinations would be thousands of pipelines to compile, which is what takes
/// the time.
fn texts() -> Vec<Text> {
    use Angles::{TableFromStart, TableOfTokens, TablePerRow, TablePerToken};
    use Angles::{TurnsFromStart, TurnsPerAxis, TurnsPerRow, TurnsPerToken};
    let mut texts = Vec::new();
    for &lanes in Lanes::ALL {
        for (n, (common, full, elements)) in
            STORAGE.iter().flat_map(|(c, f, all)| all.iter().map(move |e| (c, f, *e))).enumerate()
        {
            let pick = |list: &[Data]| list[n % list.len()];
            for angles in [&[TurnsFromStart][..], &[TableFromStart, TableOfTokens]] {
                let angles = angles[n % angles.len()];
                texts.push(Text { lanes, data: pick(common), elements, angles, pairing: Pairing::HalfSplit });
            }
            for angles in [&[TurnsPerRow, TurnsPerToken, TurnsPerAxis][..], &[TablePerRow, TablePerToken]] {
                let angles = angles[n % angles.len()];
                texts.push(Text { lanes, data: pick(full), elements, angles, pairing: Pairing::Interleaved });
            }
        }
        for &data in Data::ALL {
            let mut push = |angles, pairing| texts.push(Text { lanes, data, elements: Elements::F32, angles, pairing });
            for angles in [TurnsFromStart, TurnsPerRow, TurnsPerAxis, TableOfTokens, TablePerToken] {
                push(angles, Pairing::HalfSplit);
            }
            for angles in [TurnsFromStart, TurnsPerToken, TableFromStart, TablePerRow] {
                push(angles, Pairing::Interleaved);
            }
        }
    }
    texts
}

/// The cases. Directions, channels, rows and anchors are chosen for each text so that as many values as can be of one
/// setting meet, somewhere, those of another for the first time.
pub(super) fn cases() -> Vec<Case> {
    let mut met = HashSet::new();
    texts()
        .into_iter()
        .map(|text| {
            let new = |case: &Case| pairs(case).filter(|pair| !met.contains(pair)).count();
            let case = candidates(text).max_by_key(new);
            met.extend(case.iter().flat_map(pairs));
            case
        })
        .collect::<Option<_>>()
        .unwrap_or_default()
}

fn candidates(text: Text) -> impl Iterator<Item = Case> {
    let Text { lanes, data, elements, angles, pairing } = text;
    let case = move |direction, &channels: &Channels, &rows: &Rows, anchor| Case {
        lanes,
        data,
        elements,
        angles,
        pairing,
        direction,
        channels,
        rows,
        anchor,
    };
    let settings = DIRECTIONS.into_iter().flat_map(|d| Channels::ALL.iter().map(move |c| (d, c)));
    let settings = settings.flat_map(|(d, c)| Rows::ALL.iter().map(move |r| (d, c, r)));
    settings.flat_map(move |(d, c, r)| (0..ANCHORS.len()).map(move |a| case(d, c, r, a)))
}

/// Every two settings of a case with their values.
fn pairs(case: &Case) -> impl Iterator<Item = [(usize, usize); 2]> + use<> {
    let values = case.values();
    (0..values.len()).flat_map(move |i| (0..i).map(move |j| [(i, values[i]), (j, values[j])]))
}

impl Case {
    /// Each setting's value as a number.
    fn values(&self) -> [usize; 9] {
        [
            self.lanes as usize,
            self.data as usize,
            self.elements as usize,
            self.angles as usize,
            self.pairing as usize,
            self.direction as usize,
            self.channels as usize,
            self.rows as usize,
            self.anchor,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_a_free_setting_meets_every_value_of_the_others() {
        let extents = [2, 8, 4, 8, 2, 3, 3, 4, 9];
        let met: HashSet<_> = cases().iter().flat_map(pairs).collect();
        for i in 5..9 {
            for j in (0..i).filter(|&j| (i, j) != (8, 2)) {
                for (a, b) in (0..extents[i]).flat_map(|a| (0..extents[j]).map(move |b| (a, b))) {
                    assert!(met.contains(&[(i, a), (j, b)]), "settings {i} and {j}: {a} and {b} never meet");
                }
            }
        }
    }

    #[test]
    fn in_f32_every_layout_meets_every_way_to_find_angles() {
        let all = cases();
        for &lanes in Lanes::ALL {
            for &data in Data::ALL {
                for &angles in Angles::ALL {
                    assert!(all.iter().any(|c| (c.lanes, c.data, c.angles) == (lanes, data, angles)));
                }
            }
        }
        assert!(all.len() < 260, "{} pipelines take long to compile", all.len());
    }

    #[test]
    fn anchors_leave_room() {
        assert!(ANCHORS.iter().all(|anchor| anchor.checked_add(20).is_some()));
        assert!(ANCHORS.contains(&(LAST - 19)), "a range of 20 positions ends at the last one");
    }
}
