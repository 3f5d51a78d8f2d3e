//! Pieces of a batch of queries, for work that does not fit into a device's limits at once.

use crate::{Layout, Result};
use std::ops::Range;

/// Some rows of the batch, tokens and heads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region {
    pub batch: Range<usize>,
    pub tokens: Range<usize>,
    pub heads: Range<usize>,
}

impl Region {
    /// Cuts this region in halves until each piece is accepted, and gives what accepting made of the pieces.
    ///
    /// # Errors
    /// What a piece of a single query and head was refused with.
    pub(crate) fn cover<R>(self, accept: &dyn Fn(&Self) -> Result<R>) -> Result<Vec<(Self, R)>> {
        match accept(&self) {
            Ok(made) => Ok(vec![(self, made)]),
            Err(error) => {
                let (left, right) = self.halves().ok_or(error)?;
                let mut pieces = left.cover(accept)?;
                pieces.extend(right.cover(accept)?);
                Ok(pieces)
            }
        }
    }

    /// Rows of the batch apart while there are several, then heads, then tokens: so pieces stay long in memory.
    fn halves(&self) -> Option<(Self, Self)> {
        let (mut left, mut right) = (self.clone(), self.clone());
        let (a, b) = match (self.batch.len(), self.heads.len(), self.tokens.len()) {
            (2.., _, _) => (&mut left.batch, &mut right.batch),
            (_, 2.., _) => (&mut left.heads, &mut right.heads),
            (_, _, 2..) => (&mut left.tokens, &mut right.tokens),
            _ => return None,
        };
        let middle = a.start + a.len() / 2;
        a.end = middle;
        b.start = middle;
        Some((left, right))
    }

    /// The shape of a tensor over this region.
    pub(crate) fn shape(&self, channels: usize) -> [usize; 4] {
        [self.batch.len(), self.tokens.len(), self.heads.len(), channels]
    }

    /// This region of a `[batch, tokens, heads, …]` tensor, which may have an extent of 1 on each of the three.
    ///
    /// # Errors
    /// None for a tensor of such a shape.
    pub(crate) fn of(&self, layout: Layout) -> Result<Layout> {
        let shape = layout.shape();
        let ranges = [&self.batch, &self.tokens, &self.heads];
        ranges.into_iter().enumerate().try_fold(layout, |layout, (axis, range)| match shape[axis] {
            1 => Ok(layout),
            _ => layout.narrow(axis, range.clone()),
        })
    }

    /// The position embeddings `[1, channels, 1 or heads, positions]` of this region's heads.
    ///
    /// # Errors
    /// None for a tensor of such a shape.
    pub(crate) fn of_embeddings(&self, layout: Layout) -> Result<Layout> {
        if layout.shape()[2] == 1 { Ok(layout) } else { layout.narrow(2, self.heads.clone()) }
    }

    /// The key heads that serve this region's query heads, `group` of these to each: all of a `[batch, keys, kv heads,
    /// channels]` tensor's tokens.
    ///
    /// # Errors
    /// None for a tensor of such a shape.
    pub(crate) fn of_keys(&self, layout: Layout, group: usize) -> Result<Layout> {
        let group = group.max(1);
        layout.narrow(0, self.batch.clone())?.narrow(2, self.heads.start / group..self.heads.end.div_ceil(group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    fn at_most(queries: usize) -> impl Fn(&Region) -> Result<()> {
        move |region| {
            let n = region.shape(1).iter().product::<usize>();
            if n <= queries { Ok(()) } else { Err(Error::setting("queries", n, queries.to_string())) }
        }
    }

    #[test]
    fn pieces_cover_each_query_once() {
        for most in [1, 3, 7, 20, 1000] {
            let pieces = Region { batch: 0..3, tokens: 0..7, heads: 0..5 }.cover(&at_most(most)).unwrap();
            let mut seen = vec![0; 3 * 7 * 5];
            for (piece, ()) in &pieces {
                assert!(at_most(most)(piece).is_ok());
                for b in piece.batch.clone() {
                    for t in piece.tokens.clone() {
                        for h in piece.heads.clone() {
                            seen[(b * 7 + t) * 5 + h] += 1;
                        }
                    }
                }
            }
            assert!(seen.iter().all(|&n| n == 1), "{most}: {seen:?}");
        }
        assert!(Region { batch: 0..3, tokens: 0..7, heads: 0..5 }.cover(&at_most(0)).is_err());
    }

    #[test]
    fn key_heads_are_those_of_the_query_heads() {
        let keys = Layout::contiguous([2, 10, 3, 4]).unwrap();
        let region = Region { batch: 1..2, tokens: 0..1, heads: 1..5 };
        let of = region.of_keys(keys, 2).unwrap();
        assert_eq!((of.shape(), of.offset()), ([1, 10, 3, 4], keys.at([1, 0, 0, 0])));
        let of = Region { heads: 2..4, ..region }.of_keys(keys, 2).unwrap();
        assert_eq!((of.shape(), of.offset()), ([1, 10, 1, 4], keys.at([1, 0, 1, 0])));
    }
}
