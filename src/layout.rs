//! Where a tensor's elements lie in its buffer: shape, strides and offset, counted in elements. Pure arithmetic.

use crate::{Error, Result};
use std::ops::Range;

/// The names of a view's four axes, in order.
pub(crate) const AXES: [&str; 4] = ["batch", "tokens", "heads", "channels"];

/// Shape, strides and offset of a `[batch, tokens, heads, channels]` tensor, counted in elements.
///
/// The order of the axes is fixed, the order in memory is not: a buffer laid out as `[batch, heads, tokens, channels]`
/// is the same tensor with other strides ([`Layout::heads_first`]).
///
/// ```
/// use phasor::Layout;
/// // Queries inside of a packed [batch, tokens, q | k | v] projection, 8 query heads and 2 + 2 others, 64 channels:
/// let packed = Layout::contiguous([1, 10, 8 + 2 + 2, 64])?;
/// let k = packed.heads(8..10)?;
/// assert_eq!(k.shape(), [1, 10, 2, 64]);
/// assert_eq!(k.at([0, 1, 0, 0]), 12 * 64 + 8 * 64);
/// # Ok::<(), phasor::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    shape: [usize; 4],
    strides: [usize; 4],
    offset: usize,
}

impl Layout {
    /// A tensor with its own strides: element `[b, t, h, c]` lies at `offset + b*strides[0] + … + c*strides[3]`.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) if an element's place does not fit a `usize`.
    pub fn strided(shape: [usize; 4], strides: [usize; 4], offset: usize) -> Result<Self> {
        let layout = Self { shape, strides, offset };
        layout.checked_end().map(|_| layout).ok_or_else(|| {
            Error::tensor(
                "layout",
                format!("shape {shape:?}, strides {strides:?}, offset {offset}"),
                "one whose last element's place fits a usize",
            )
        })
    }

    /// `[batch, tokens, heads, channels]` without gaps, from element 0.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) if the number of elements does not fit a `usize`.
    pub fn contiguous(shape: [usize; 4]) -> Result<Self> {
        let [_, t, h, c] = shape;
        Self::packed(shape, [&[t, h, c], &[h, c], &[c]])
    }

    /// The same axes, but memory goes `[batch, heads, tokens, channels]` without gaps, from element 0.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) if the number of elements does not fit a `usize`.
    pub fn heads_first(shape: [usize; 4]) -> Result<Self> {
        let [_, t, h, c] = shape;
        Self::packed(shape, [&[h, t, c], &[c], &[t, c]])
    }

    /// Strides as products of extents, for layouts without gaps.
    fn packed(shape: [usize; 4], factors: [&[usize]; 3]) -> Result<Self> {
        let product = |list: &[usize]| list.iter().try_fold(1usize, |a, &b| a.checked_mul(b));
        match [product(factors[0]), product(factors[1]), product(factors[2])] {
            [Some(b), Some(t), Some(h)] => Self::strided(shape, [b, t, h, 1], 0),
            _ => Err(Error::tensor("shape", format!("{shape:?}"), "one whose number of elements fits a usize")),
        }
    }

    /// The same tensor, `elements` further on in the buffer.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) if an element's place does not fit a `usize`.
    pub fn offset_by(self, elements: usize) -> Result<Self> {
        match self.offset.checked_add(elements) {
            Some(offset) => Self::strided(self.shape, self.strides, offset),
            None => Err(Error::tensor("offset", format!("{} + {elements}", self.offset), "a sum that fits a usize")),
        }
    }

    /// Some of the heads of this tensor, as in a packed `q | k | v` projection.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) if the range is not within the heads.
    pub fn heads(self, range: Range<usize>) -> Result<Self> {
        self.narrow(2, range)
    }

    /// Some of the tokens of this tensor, as in a cache whose first rows are filled.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) if the range is not within the tokens.
    pub fn tokens(self, range: Range<usize>) -> Result<Self> {
        self.narrow(1, range)
    }

    /// Some of the rows of the batch.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) if the range is not within the batch.
    pub fn batch(self, range: Range<usize>) -> Result<Self> {
        self.narrow(0, range)
    }

    pub(crate) fn narrow(self, axis: usize, range: Range<usize>) -> Result<Self> {
        if range.start > range.end || range.end > self.shape[axis] {
            return Err(Error::tensor(
                AXES[axis],
                format!("{range:?}"),
                format!("a range within 0..{}", self.shape[axis]),
            ));
        }
        let mut narrowed = self;
        narrowed.shape[axis] = range.end - range.start;
        // An empty range may start at the axis' end, past the last element.
        if !range.is_empty() {
            narrowed.offset += range.start * self.strides[axis];
        }
        Ok(narrowed)
    }

    /// `[batch, tokens, heads, channels]`.
    #[must_use]
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// Elements from one index of an axis to the next, axis by axis.
    #[must_use]
    pub fn strides(&self) -> [usize; 4] {
        self.strides
    }

    /// The place of element `[0, 0, 0, 0]`.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// How many elements the tensor has.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether an axis has no index at all, so that there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The place of one element.
    #[must_use]
    pub fn at(&self, index: [usize; 4]) -> usize {
        self.offset + index.iter().zip(self.strides).map(|(i, stride)| i * stride).sum::<usize>()
    }

    /// The places of the elements in the order of the axes, channels fastest.
    pub fn places(&self) -> impl Iterator<Item = usize> + use<> {
        let layout = *self;
        // An axis of no index at all ends every other one, however long.
        let [b, t, h, c] = if self.is_empty() { [0; 4] } else { layout.shape };
        (0..b).flat_map(move |b| {
            (0..t).flat_map(move |t| (0..h).flat_map(move |h| (0..c).map(move |c| layout.at([b, t, h, c]))))
        })
    }

    /// From the first element's place to one past the last one's; empty for an empty tensor.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        if self.is_empty() { self.offset..self.offset } else { self.offset..self.offset + self.reach() + 1 }
    }

    /// Whether two indices may name the same element, so that writing here would be a race. Exact for axes that nest,
    /// as those of slices of a tensor do; elsewhere it errs towards `true`.
    #[must_use]
    pub fn repeats_elements(&self) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut axes: Vec<_> = self.axes().collect();
        axes.sort_unstable_by_key(|&(stride, _)| stride);
        // Each axis must step over all that the smaller ones reach.
        let mut inner = 0;
        axes.into_iter().any(|(stride, extent)| {
            let repeats = stride <= inner;
            inner += (extent - 1) * stride;
            repeats
        })
    }

    /// Whether the two may share an element. Exact where both walk the same outer strides, as slices of one tensor do;
    /// elsewhere it errs towards `true`.
    #[must_use]
    pub fn may_overlap(&self, other: &Self) -> bool {
        if self.is_empty() || other.is_empty() {
            return false;
        }
        let sorted = |layout: &Self| {
            let mut axes: Vec<_> = layout.axes().collect();
            axes.sort_unstable_by_key(|&(stride, _)| std::cmp::Reverse(stride));
            axes
        };
        axes_meet(&sorted(self), &sorted(other), other.offset as Signed - self.offset as Signed)
    }

    /// Whether each head's channels lie in words of four, whole ones and aligned.
    #[cfg(feature = "gpu")]
    pub(crate) fn is_in_fours(&self) -> bool {
        let rows = self.strides.into_iter().zip(self.shape).take(3).filter(|&(_, extent)| extent > 1);
        let [.., channels] = self.shape;
        rows.map(|(stride, _)| stride).chain([self.offset, channels]).all(|n| n.is_multiple_of(4))
            && (self.strides[3] == 1 || channels <= 1)
    }

    /// The axes along which there is a step to take: `(stride, extent)`.
    fn axes(&self) -> impl Iterator<Item = (usize, usize)> {
        self.strides.into_iter().zip(self.shape).filter(|&(_, extent)| extent > 1)
    }

    /// The distance from the first element to the last one of a tensor that is not empty.
    fn reach(&self) -> usize {
        self.axes().map(|(stride, extent)| stride * (extent - 1)).sum()
    }

    /// One past the last element's place, if it fits.
    fn checked_end(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |n, &extent| n.checked_mul(extent))?;
        self.shape
            .iter()
            .zip(self.strides)
            .try_fold(self.offset, |end, (&extent, stride)| {
                end.checked_add(extent.saturating_sub(1).checked_mul(stride)?)
            })?
            .checked_add(1)
    }
}

/// What planning a dispatch takes.
#[cfg(feature = "gpu")]
impl Layout {
    /// Whether both name the same elements by the same indices. Strides of axes of one index do not matter.
    pub(crate) fn is_same_places(&self, other: &Self) -> bool {
        self.shape == other.shape && self.offset == other.offset && self.axes().eq(other.axes())
    }

    /// Batch and tokens exchanged, for work that treats every token alike.
    pub(crate) fn rows_exchanged(mut self) -> Self {
        self.shape.swap(0, 1);
        self.strides.swap(0, 1);
        self
    }

    /// Batch and tokens as one axis of tokens, if they follow each other in memory.
    pub(crate) fn rows_joined(mut self) -> Option<Self> {
        let [batch, tokens, ..] = self.shape;
        let follows = batch <= 1 || tokens <= 1 || self.strides[1].checked_mul(tokens) == Some(self.strides[0]);
        if tokens <= 1 && batch > 1 {
            self.strides[1] = self.strides[0];
        }
        self.shape = [1, batch * tokens, self.shape[2], self.shape[3]];
        follows.then_some(self)
    }

    /// The same elements for each of `extent` indices of an axis that has but one.
    pub(crate) fn repeated(mut self, axis: usize, extent: usize) -> Self {
        self.shape[axis] = extent;
        self.strides[axis] = 0;
        self
    }
}

/// Differences of places, and sums of a few.
#[cfg(target_pointer_width = "64")]
type Signed = i128;
#[cfg(not(target_pointer_width = "64"))]
type Signed = i64;

/// Whether two sets of places `sum of i*stride` meet when the second one is moved by `shift`.
///
/// Axes come with the largest stride first. Where both sets step by the same outer stride, only few of its multiples
/// bring the inner sets near each other, and those are looked at one by one.
fn axes_meet(a: &[(usize, usize)], b: &[(usize, usize)], shift: Signed) -> bool {
    let reach = |axes: &[(usize, usize)]| axes.iter().map(|&(s, n)| s as Signed * (n as Signed - 1)).sum::<Signed>();
    if shift > reach(a) || -shift > reach(b) {
        return false;
    }
    let (Some(&(stride_a, n_a)), Some(&(stride_b, n_b))) = (a.first(), b.first()) else {
        // One of the sets is a single place within the other's reach.
        return a.first().or(b.first()).is_none_or(|&(stride, _)| {
            let rest = if a.is_empty() { &b[1..] } else { &a[1..] };
            let place = shift.abs() % (stride.max(1) as Signed);
            place <= reach(rest)
        });
    };
    if stride_a != stride_b || stride_a == 0 {
        return true;
    }
    let (stride, inner_a, inner_b) = (stride_a as Signed, reach(&a[1..]), reach(&b[1..]));
    // Inner sets that reach over several outer steps are no slices of one tensor: looking at all steps could take forever.
    if inner_a + inner_b >= 4 * stride {
        return true;
    }
    // Step `j` of b stands beside step `i` of a at a distance of shift + (j - i) * stride.
    let nearest = (-inner_b - shift).div_euclid(stride) + Signed::from((-inner_b - shift).rem_euclid(stride) != 0);
    let farthest = (inner_a - shift).div_euclid(stride);
    (nearest.max(1 - n_a as Signed)..=farthest.min(n_b as Signed - 1))
        .any(|steps| axes_meet(&a[1..], &b[1..], shift + steps * stride))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn places(layout: &Layout) -> Vec<usize> {
        layout.places().collect()
    }

    #[test]
    fn heads_first_is_the_same_tensor_with_other_strides() {
        let layout = Layout::heads_first([2, 3, 4, 5]).unwrap();
        assert_eq!(layout.at([1, 2, 3, 4]), ((4 + 3) * 3 + 2) * 5 + 4);
        assert_eq!(layout.span(), 0..120);
    }

    #[test]
    fn a_span_holds_every_place_and_ends_at_the_last() {
        let layout = Layout::strided([2, 3, 2, 4], [100, 20, 7, 1], 9).unwrap();
        let all = places(&layout);
        assert_eq!(layout.span(), 9..all.iter().max().unwrap() + 1);
        assert_eq!(all.len(), layout.elements());
    }

    #[test]
    fn overlap_is_never_missed_and_slices_of_one_tensor_are_told_apart() {
        let packed = Layout::contiguous([2, 3, 6, 4]).unwrap();
        let mut all = vec![packed];
        for (a, b) in [(0, 3), (3, 6), (2, 4), (5, 6)] {
            all.push(packed.heads(a..b).unwrap());
        }
        for (a, b) in [(0, 1), (1, 3), (2, 3)] {
            all.push(packed.tokens(a..b).unwrap());
            all.push(packed.heads(0..2).unwrap().tokens(a..b).unwrap());
        }
        all.push(Layout::strided([1, 3, 2, 4], [0, 24, 8, 1], 4).unwrap());
        all.push(Layout::strided([1, 3, 2, 4], [0, 24, 8, 1], 0).unwrap());
        all.push(Layout::strided([1, 1, 1, 2], [0, 0, 0, 1], 143).unwrap());
        all.push(Layout::heads_first([1, 4, 3, 4]).unwrap().offset_by(7).unwrap());
        let mut exact = 0;
        for a in &all {
            for b in &all {
                let set: HashSet<_> = places(a).into_iter().collect();
                let meet = places(b).iter().any(|p| set.contains(p));
                assert!(a.may_overlap(b) || !meet, "{a:?} meets {b:?}");
                assert_eq!(a.may_overlap(b), b.may_overlap(a));
                exact += usize::from(a.may_overlap(b) == meet);
            }
        }
        let (q, k) = (packed.heads(0..3).unwrap(), packed.heads(3..6).unwrap());
        assert!(!q.may_overlap(&k));
        assert!(exact * 10 > all.len() * all.len() * 9, "{exact} of {}", all.len() * all.len());
    }

    #[test]
    fn repeated_elements_are_found() {
        let repeats = |shape, strides| Layout::strided(shape, strides, 0).unwrap().repeats_elements();
        assert!(!repeats([2, 3, 4, 5], [60, 20, 5, 1]));
        assert!(!repeats([1, 3, 4, 5], [0, 5, 15, 1]), "an axis of one index may have any stride");
        assert!(repeats([2, 3, 4, 5], [0, 20, 5, 1]));
        assert!(repeats([1, 3, 4, 5], [0, 20, 4, 1]));
        assert!(!repeats([1, 3, 0, 5], [0, 0, 5, 1]), "an empty tensor has none to repeat");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(Layout::contiguous([usize::MAX, 2, 1, 1]).is_err());
        assert!(Layout::strided([2, 1, 1, 1], [usize::MAX, 0, 0, 0], 1).is_err());
        assert!(Layout::contiguous([1, 2, 3, 4]).unwrap().heads(2..4).is_err());
        assert!(Layout::contiguous([1, 0, 3, 4]).unwrap().is_empty());
    }
}
