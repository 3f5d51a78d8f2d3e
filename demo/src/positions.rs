//! Where the tokens of a file stand.

use crate::failure::Failure;
use crate::tensors::File;

/// The positions of `[batch, tokens]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Positions {
    /// Token `t` of every row stands at this plus `t`.
    Start(i32),
    /// Each token has its own, `[batch, tokens, axes]`.
    Each {
        /// The numbers, those of one token together.
        numbers: Vec<i32>,
        /// How many a token has: 1 for text.
        axes: usize,
    },
}

impl Positions {
    /// The file's own `positions`, which win over `start`: one for each token, or one for each of its axes.
    pub fn of(file: &File, start: i32, [batch, tokens]: [usize; 2], axes: usize) -> Result<Self, Failure> {
        match file.integers_if_any("positions")? {
            None => Ok(Self::Start(start)),
            Some((shape, numbers)) if shape == [batch, tokens] => Ok(Self::Each { numbers, axes: 1 }),
            Some((shape, numbers)) if shape == [batch, tokens, axes] => Ok(Self::Each { numbers, axes }),
            Some((shape, _)) => {
                let text = format!("[{batch}, {tokens}]: one number for each batch row and token of q");
                let may_be = match axes {
                    1 => text,
                    _ => format!("{text}; or [{batch}, {tokens}, {axes}]: one for each of its axes"),
                };
                Err(file.wrong("positions", &format!("{shape:?}"), &may_be))
            }
        }
    }

    /// How many positions a token has.
    pub fn axes(&self) -> usize {
        match self {
            Self::Start(_) => 1,
            Self::Each { axes, .. } => *axes,
        }
    }

    /// One past the last position of rows of so many tokens.
    pub fn end(&self, tokens: usize) -> i64 {
        match self {
            Self::Start(start) => i64::from(*start).saturating_add(i64::try_from(tokens).unwrap_or(i64::MAX)),
            Self::Each { numbers, .. } => numbers.iter().max().map_or(0, |&last| i64::from(last) + 1),
        }
    }

    /// The position of each token on an axis, row after row.
    pub fn list(&self, axis: usize, [batch, tokens]: [usize; 2]) -> Result<Vec<i32>, Failure> {
        match self {
            Self::Each { numbers, axes } => Ok(numbers.iter().copied().skip(axis).step_by(*axes).collect()),
            Self::Start(start) => {
                let row = range(*start, tokens)?;
                Ok((0..batch).flat_map(|_| row.clone()).collect())
            }
        }
    }
}

/// `tokens` positions from `start` on, all within an i32.
pub fn range(start: i32, tokens: usize) -> Result<impl Iterator<Item = i32> + Clone, Failure> {
    const END: i64 = i32::MAX as i64 + 1;
    let start = i64::from(start);
    let end = i64::try_from(tokens).ok().and_then(|n| start.checked_add(n));
    match end.filter(|&end| end <= END) {
        Some(end) => Ok((start..end).map(|position| position as i32)),
        None => {
            let most = i64::try_from(tokens).map_or(i64::MIN, |n| END - n);
            Err(Failure::new(format!("--start: was {start} with {tokens} tokens, may be at most {most} for so many")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_within_an_i32() {
        assert_eq!(range(-2, 3).unwrap().collect::<Vec<_>>(), [-2, -1, 0]);
        assert_eq!(range(i32::MAX, 1).unwrap().collect::<Vec<_>>(), [i32::MAX]);
        assert!(range(i32::MAX, 2).is_err());
        assert!(range(0, usize::MAX).is_err());
        assert_eq!(range(i32::MIN, 0).unwrap().count(), 0);
        assert_eq!(range(7, 0).unwrap().count(), 0);
    }
}
