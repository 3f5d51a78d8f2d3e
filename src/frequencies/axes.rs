//! Which of a token's positions each pair turns by: text has one, a picture's patch has a time, a row and a column.
//!
//! How pairs are laid out in a head ([`Pairing`](crate::Pairing)) is another matter: "interleaved" in `mrope_interleaved`
//! speaks of axes only. Axes are numbered in the order in which positions are given: 0 time, 1 height, 2 width unless
//! said otherwise.

use crate::{Error, Result};

/// The axis of every pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axes {
    axis_of_pair: Vec<u8>,
    count: u8,
}

/// The axes of multimodal rotary encoding, as positions are given.
const TIME: u8 = 0;
const HEIGHT: u8 = 1;
const WIDTH: u8 = 2;

impl Axes {
    /// Any pattern: the axis of each pair, with `count` axes.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming the pair whose axis does not exist.
    pub fn new(axis_of_pair: Vec<u8>, count: u8) -> Result<Self> {
        match axis_of_pair.iter().enumerate().find(|&(_, &axis)| axis >= count) {
            Some((i, axis)) => Err(Error::setting(format!("axis_of_pair[{i}]"), axis, format!("below {count}"))),
            None => Ok(Self { axis_of_pair, count }),
        }
    }

    /// One axis: text.
    #[must_use]
    pub fn one(pairs: usize) -> Self {
        Self { axis_of_pair: vec![0; pairs], count: 1 }
    }

    /// Consecutive sections, one for each axis: Qwen2-VL's `[16, 24, 24]`, HunYuan-VL's four.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming `mrope_section` if the sections do not add up to the pairs.
    pub fn sections(sections: &[u32], pairs: usize) -> Result<Self> {
        check_sum(sections, pairs)?;
        let count = u8::try_from(sections.len()).map_err(|_| {
            Error::setting("mrope_section", format!("a list of {}", sections.len()), "at most 255 long")
        })?;
        let axes = (0..count).zip(sections);
        let axis_of_pair = axes.flat_map(|(axis, &n)| std::iter::repeat_n(axis, n as usize)).collect();
        Ok(Self { axis_of_pair, count })
    }

    /// Axes taking turns, time, height, width, until height and width have their share: Qwen3-VL, as in transformers.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming `mrope_section` if there are not three sections that add up to the
    /// pairs.
    pub fn interleaved(sections: &[u32], pairs: usize) -> Result<Self> {
        let shares = three(sections, pairs)?;
        Ok(Self::by_pair(pairs, 3, |i| match i % 3 {
            1 if i < 3 * shares[1] => HEIGHT,
            2 if i < 3 * shares[2] => WIDTH,
            _ => TIME,
        }))
    }

    /// The same as ggml computes it (`IMROPE`): a pair whose axis has had its share turns by a fourth axis, which
    /// llama.cpp fills with 0 for text. With Qwen3-VL's `[24, 20, 20]` these are pairs 61 and 62, both very slow.
    ///
    /// # Errors
    /// As [`Axes::interleaved`].
    pub fn interleaved_ggml(sections: &[u32], pairs: usize) -> Result<Self> {
        const EXTRA: u8 = 3;
        let shares = three(sections, pairs)?;
        Ok(Self::by_pair(pairs, 4, |i| match i % 3 {
            0 if i < 3 * shares[0] => TIME,
            1 if i < 3 * shares[1] => HEIGHT,
            2 if i < 3 * shares[2] => WIDTH,
            _ => EXTRA,
        }))
    }

    /// Axes taking turns, each pair going to the next axis that still has a share left: SGLang's
    /// `mrope_interleaved_glm`.
    ///
    /// # Errors
    /// As [`Axes::interleaved`].
    pub fn interleaved_glm(sections: &[u32], pairs: usize) -> Result<Self> {
        let mut left = three(sections, pairs)?;
        Ok(Self::by_pair(pairs, 3, |i| {
            let turn = (i % 3..i % 3 + 3).map(|axis| axis % 3).find(|&axis| left[axis] > 0).unwrap_or(0);
            left[turn] = left[turn].saturating_sub(1);
            turn as u8
        }))
    }

    /// ERNIE 4.5-VL's order: height and width alternate first, time comes last; its sections are `[height, width, time]`.
    ///
    /// # Errors
    /// As [`Axes::interleaved`].
    pub fn ernie(sections: &[u32], pairs: usize) -> Result<Self> {
        let space = three(sections, pairs)?[..2].iter().sum::<usize>();
        Ok(Self::by_pair(pairs, 3, |i| match i < space {
            true if i % 2 == 0 => HEIGHT,
            true => WIDTH,
            false => TIME,
        }))
    }

    /// A picture: the first half of the pairs turns by axis 0, the second by axis 1. See
    /// [`Axial`](super::Axial).
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming `pairs` if there is no half of them.
    pub fn axial(pairs: usize) -> Result<Self> {
        if pairs == 0 || !pairs.is_multiple_of(2) {
            return Err(Error::setting("pairs", pairs, "an even number, half of it for each axis"));
        }
        Ok(Self::by_pair(pairs, 2, |i| u8::from(i >= pairs / 2)))
    }

    fn by_pair(pairs: usize, count: u8, axis: impl FnMut(usize) -> u8) -> Self {
        Self { axis_of_pair: (0..pairs).map(axis).collect(), count }
    }

    /// The axis of each pair: `[pairs]`.
    #[must_use]
    pub fn axis_of_pair(&self) -> &[u8] {
        &self.axis_of_pair
    }

    /// How many positions a token has.
    #[must_use]
    pub fn count(&self) -> u8 {
        self.count
    }
}

fn check_sum(sections: &[u32], pairs: usize) -> Result<()> {
    let sum: u64 = sections.iter().map(|&n| u64::from(n)).sum();
    if sum == pairs as u64 {
        return Ok(());
    }
    Err(Error::setting("mrope_section", format!("{sections:?}"), format!("numbers that add up to {pairs} pairs")))
}

/// Three shares that add up to the pairs; a fourth of 0, as GGUF writes it, is no share.
fn three(sections: &[u32], pairs: usize) -> Result<[usize; 3]> {
    check_sum(sections, pairs)?;
    match *sections {
        [a, b, c] | [a, b, c, 0] => Ok([a, b, c].map(|n| n as usize)),
        _ => Err(Error::setting("mrope_section", format!("{sections:?}"), "three numbers")),
    }
}
