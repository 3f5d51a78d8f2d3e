//! Where the tokens of a file stand.

use crate::failure::Failure;
use crate::tensors::{File, Integers};

/// The positions of `[batch, tokens]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Positions {
    /// Token `t` of every row stands at this plus `t`.
    Start(i32),
    /// Each token has its own, `[batch, tokens]`.
    Each(Vec<i32>),
}

impl Positions {
    /// The file's own `positions`, which win over `start`.
    pub fn of(file: &File, start: i32, [batch, tokens]: [usize; 2]) -> Result<Self, Failure> {
        match file.integers_if_any("positions")? {
            Some(Integers { shape, values }) if shape == [batch, tokens] => Ok(Self::Each(values)),
            Some(other) => Err(file.wrong(
                "positions",
                &format!("{:?}", other.shape),
                &format!("[{batch}, {tokens}]: one number for each batch row and token of q"),
            )),
            None => Ok(Self::Start(start)),
        }
    }

    /// One past the last position of rows of so many tokens.
    pub fn end(&self, tokens: usize) -> i64 {
        match self {
            Self::Start(start) => i64::from(*start).saturating_add(i64::try_from(tokens).unwrap_or(i64::MAX)),
            Self::Each(numbers) => numbers.iter().max().map_or(0, |&last| i64::from(last) + 1),
        }
    }

    /// The position of each token, row after row.
    pub fn list(&self, [batch, tokens]: [usize; 2]) -> Result<Vec<i32>, Failure> {
        match self {
            Self::Each(numbers) => Ok(numbers.clone()),
            Self::Start(start) => {
                let row = range(*start, tokens)?;
                Ok((0..batch).flat_map(|_| row.clone()).collect())
            }
        }
    }
}

/// `tokens` positions from `start` on, all within an i32.
pub fn range(start: i32, tokens: usize) -> Result<impl Iterator<Item = i32> + Clone, Failure> {
    let room = i64::from(i32::MAX) - i64::from(start) + 1;
    match i64::try_from(tokens).ok().filter(|&tokens| tokens <= room) {
        Some(tokens) => Ok((0..tokens).map(move |t| (i64::from(start) + t) as i32)),
        None => Err(Failure::new(format!("--start: was {start} with {tokens} tokens, may be so for up to {room}"))),
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
