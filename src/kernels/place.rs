//! `shaders/shared/place.wgsl`: where a tensor's words lie in its binding.

use crate::{ElementType, Layout};
use bytemuck::{Pod, Zeroable};

/// Distances in words, as the shader declares them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Place {
    offset: u32,
    batch: u32,
    token: u32,
    head: u32,
    channel: u32,
    _pad: [u32; 3],
}

impl Place {
    /// Of a layout in a binding that begins at a byte of its buffer. A word holds one channel or several.
    pub(crate) fn new(layout: Layout, element: ElementType, word: usize, bound_from: u64) -> Self {
        let (shape, strides) = (layout.shape(), layout.strides());
        // An axis of one index may have any stride: it is never taken, and might not fit.
        let step = |axis: usize| if shape[axis] > 1 { (strides[axis] / word) as u32 } else { 0 };
        Self {
            offset: ((layout.offset() as u64 - bound_from / element.bytes() as u64) / word as u64) as u32,
            batch: step(0),
            token: step(1),
            head: step(2),
            channel: if word == 1 { step(3) } else { 1 },
            _pad: [0; 3],
        }
    }

    /// The same places, where the first token there is has this number. Its offset may wrap: so do the sums that are made
    /// of it.
    pub(crate) fn counted_from(self, first_token: usize) -> Self {
        Self { offset: self.offset.wrapping_sub((first_token as u32).wrapping_mul(self.token)), ..self }
    }
}
