//! Which keys a query sees by their places alone.

use std::ops::Range;

/// Which keys a query sees by where the two stand. The default sees all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Mask {
    /// Whether keys to the right of a query's own place are hidden from it.
    pub causal: bool,
    /// How many keys a query sees at most up to its own place, that one included (a sliding window). Keys to its right
    /// are a matter of `causal`. `None`: all.
    pub window: Option<usize>,
    /// Where queries stand among the keys.
    pub standing: Standing,
}

/// Where queries stand among the keys. A matter of causal masks and windows only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Standing {
    /// The last query stands at the last key (aligned bottom-right): right for a prompt, and for one or several tokens
    /// whose keys were just added to a cache.
    #[default]
    Last,
    /// The last query of each row stands at the last key of that row's range (`Attention::key_ranges`): rows of a batch
    /// whose caches are filled to different lengths.
    RowLast,
    /// Query 0 stands at this key: 0 for prompts that are padded on the right. Negative, or past the last key, where the
    /// keys are a part of a sequence.
    From(i64),
}

impl Mask {
    /// The keys that query `t` of `tokens` sees among `keys`, in a row that has keys only in `row`.
    ///
    /// ```
    /// use phasor::attention::Mask;
    /// let mask = Mask { causal: true, window: Some(3), ..Mask::default() };
    /// // Two new tokens at the end of ten: the first of them stands at key 8.
    /// assert_eq!(mask.visible(0, 2, 10, 0..10), 6..9);
    /// ```
    #[must_use]
    pub fn visible(&self, t: usize, tokens: usize, keys: usize, row: Range<usize>) -> Range<usize> {
        // Lengths are below 2^63; 128 bits hold every sum of three of them.
        let place = t as i128 + self.first_place(tokens, keys, row.end);
        let (start, end) = (row.start.min(keys), row.end.min(keys));
        let clamped = |place: i128| place.clamp(start as i128, end.max(start) as i128) as usize;
        let end = if self.causal { clamped(place + 1) } else { clamped(end as i128) };
        let start = self.window.map_or(start, |window| clamped(place + 1 - window as i128));
        start..end.max(start)
    }

    /// [`Mask::visible`] as a shader computes it: for query `t` counted from `first`.
    #[cfg(any(feature = "gpu", test))]
    pub(crate) fn visible_keys(&self, first: usize, tokens: usize, keys: usize) -> VisibleKeys {
        let from_row_end = self.standing == Standing::RowLast;
        let place = first as i128 + if from_row_end { -(tokens as i128) } else { self.first_place(tokens, keys, keys) };
        let near = |place: i128| place.clamp(-VisibleKeys::FAR, VisibleKeys::FAR) as i32;
        VisibleKeys {
            start: near(self.window.map_or(-VisibleKeys::FAR, |window| place + 1 - window as i128)),
            end: near(if self.causal { place + 1 } else { VisibleKeys::FAR }),
            place: near(place),
            from_row_end,
        }
    }

    /// Where query 0 stands, in a row whose keys end there.
    pub(crate) fn first_place(&self, tokens: usize, keys: usize, row_end: usize) -> i128 {
        match self.standing {
            Standing::Last => keys as i128 - tokens as i128,
            Standing::RowLast => row_end.min(keys) as i128 - tokens as i128,
            Standing::From(place) => place.into(),
        }
    }
}

/// Query `t` stands at `place + t` and sees the keys from `start + t` to `end + t` among those of its row, all counted from
/// the row's end if so said.
#[cfg(any(feature = "gpu", test))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VisibleKeys {
    pub start: i32,
    pub end: i32,
    /// Where query 0 stands itself.
    pub place: i32,
    pub from_row_end: bool,
}

#[cfg(any(feature = "gpu", test))]
impl VisibleKeys {
    /// Farther than any key, with room to add numbers of keys and tokens.
    const FAR: i128 = 1 << 30;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shaders_see_the_same_keys() {
        let standings = [Standing::Last, Standing::RowLast, Standing::From(0), Standing::From(-2), Standing::From(3)];
        for (causal, window) in
            [(false, None), (true, None), (true, Some(2)), (false, Some(2)), (true, Some(usize::MAX))]
        {
            for standing in standings.into_iter().chain([i64::MIN, i64::MAX].map(Standing::From)) {
                let mask = Mask { causal, window, standing };
                for (tokens, keys, row) in [(4, 7, 0..7), (7, 4, 0..4), (4, 7, 1..5), (3, 7, 2..2)] {
                    for t in 0..tokens {
                        let visible = mask.visible_keys(t / 2, tokens, keys);
                        let by = (t - t / 2) as i32 + if visible.from_row_end { row.end as i32 } else { 0 };
                        let start = (row.start as i32).max(visible.start + by);
                        let end = (row.end as i32).min(visible.end + by);
                        let expected = mask.visible(t, tokens, keys, row.clone());
                        let got: Vec<_> = (start..end).collect();
                        assert_eq!(got, expected.map(|s| s as i32).collect::<Vec<_>>(), "{mask:?} {t} {tokens} {keys}");
                    }
                }
            }
        }
    }

    #[test]
    fn all_keys_are_seen_unless_something_is_said() {
        assert_eq!(Mask::default().visible(3, 5, 9, 0..9), 0..9);
        assert_eq!(Mask::default().visible(3, 5, 9, 2..7), 2..7);
        assert_eq!(Mask::default().visible(3, 5, 9, 2..70), 2..9);
    }

    #[test]
    fn causal_is_aligned_at_the_end_unless_queries_stand_elsewhere() {
        let causal = Mask { causal: true, ..Mask::default() };
        assert_eq!(causal.visible(0, 5, 5, 0..5), 0..1);
        assert_eq!(causal.visible(0, 2, 9, 0..9), 0..8);
        // More queries than keys: the first ones see nothing.
        assert_eq!(causal.visible(0, 5, 3, 0..3), 0..0);
        let row_last = Mask { standing: Standing::RowLast, ..causal };
        assert_eq!(row_last.visible(0, 1, 9, 0..4), 0..4);
        assert_eq!(row_last.visible(0, 2, 9, 0..4), 0..3);
        for (first, expected) in [(0, 0..2), (-5, 0..0), (20, 0..9), (i64::MIN, 0..0), (i64::MAX, 0..9)] {
            assert_eq!(Mask { standing: Standing::From(first), ..causal }.visible(1, 2, 9, 0..9), expected);
        }
    }

    #[test]
    fn a_window_counts_the_querys_own_place() {
        let window = Mask { causal: true, window: Some(1), ..Mask::default() };
        assert_eq!(window.visible(4, 9, 9, 0..9), 4..5);
        assert_eq!(Mask { causal: false, ..window }.visible(4, 9, 9, 0..9), 4..9);
        assert_eq!(Mask { window: Some(0), ..window }.visible(4, 9, 9, 0..9), 5..5);
        assert_eq!(Mask { window: Some(usize::MAX), ..window }.visible(4, 9, 9, 2..9), 2..5);
        // A window that ends before the row's keys begin.
        assert!(window.visible(1, 9, 9, 5..9).is_empty());
    }
}
