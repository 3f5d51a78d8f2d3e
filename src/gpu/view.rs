//! A tensor in a caller's buffer: which buffer, where in it, and of what elements.

use crate::attention::HasLayout;
use crate::{ElementType, Error, ErrorKind, Layout, Result};
use std::ops::Range;
use std::sync::Arc;

/// A tensor that lies in a caller's buffer. Cloning it clones a handle, not the data.
///
/// Made only if every element lies within the buffer, so that nothing done through it can touch anything else.
///
/// ```no_run
/// use phasor::{ElementType, Layout, View};
/// # fn engine(packed: wgpu::Buffer) -> phasor::Result<()> {
/// // A [batch, tokens, q | k | v] projection with 32 query heads and 8 + 8 others of 128 channels:
/// let all = View::new(&packed, ElementType::F32, Layout::contiguous([1, 512, 48, 128])?)?;
/// let (q, k) = (all.heads(0..32)?, all.heads(32..40)?);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct View(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    buffer: wgpu::Buffer,
    element: ElementType,
    layout: Layout,
}

impl View {
    /// A tensor in this buffer, for devices of the instance that made it: see [`Gpu::adopt`](crate::Gpu::adopt).
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) if its last element lies past the buffer's end.
    pub fn new(buffer: &wgpu::Buffer, element: ElementType, layout: Layout) -> Result<Self> {
        // Bindings are made of whole words, so that what a buffer has beyond its last one cannot be reached.
        let holds = buffer.size() / 4 * 4 / element.bytes() as u64;
        if layout.span().end as u64 > holds {
            return Err(Error::tensor(
                "layout",
                format!("{layout:?}, which ends at element {}", layout.span().end),
                format!("one within the {holds} {element} elements of its buffer"),
            ));
        }
        Ok(Self::of(buffer, element, layout))
    }

    fn of(buffer: &wgpu::Buffer, element: ElementType, layout: Layout) -> Self {
        Self(Arc::new(Inner { buffer: buffer.clone(), element, layout }))
    }

    /// Some of this tensor's elements.
    fn part(&self, layout: Layout) -> Self {
        Self::of(self.buffer(), self.element(), layout)
    }

    /// An f32 tensor of this layout that lies nowhere yet, to plan with. Never to be bound: it names this one's buffer.
    pub(crate) fn planned(&self, layout: Layout) -> Self {
        Self::of(self.buffer(), ElementType::F32, layout)
    }

    /// Some of the heads of this tensor, in the same buffer.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) if the range is not within the heads.
    pub fn heads(&self, range: Range<usize>) -> Result<Self> {
        Ok(self.part(self.layout().heads(range)?))
    }

    /// Some of the tokens of this tensor, in the same buffer.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) if the range is not within the tokens.
    pub fn tokens(&self, range: Range<usize>) -> Result<Self> {
        Ok(self.part(self.layout().tokens(range)?))
    }

    /// Some of the rows of the batch, in the same buffer.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) if the range is not within the batch.
    pub fn batch(&self, range: Range<usize>) -> Result<Self> {
        Ok(self.part(self.layout().batch(range)?))
    }

    /// The buffer.
    #[must_use]
    pub fn buffer(&self) -> &wgpu::Buffer {
        &self.0.buffer
    }

    /// How an element is stored.
    #[must_use]
    pub fn element(&self) -> ElementType {
        self.0.element
    }

    /// Shape, strides and offset, in elements.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.0.layout
    }

    /// `[batch, tokens, heads, channels]`.
    #[must_use]
    pub fn shape(&self) -> [usize; 4] {
        self.layout().shape()
    }

    /// Refuses what a kernel cannot read as a tensor of floats: another element type, or a buffer without `STORAGE`.
    pub(crate) fn expect_floats(&self, argument: &str) -> Result<()> {
        if !self.element().is_float() {
            let (was, may_be) = (self.element().to_string(), "f32, f16 or bf16");
            return Err(Error::tensor(argument, was, may_be));
        }
        self.expect_usage(argument, wgpu::BufferUsages::STORAGE)
    }

    /// Refuses what a kernel cannot write: what it cannot read, or a layout that names an element twice.
    pub(crate) fn expect_written(&self, argument: &str) -> Result<()> {
        self.expect_floats(argument)?;
        if !self.layout().repeats_elements() {
            return Ok(());
        }
        Err(Error::tensor(
            argument,
            format!("{:?}, where several indices name one element", self.layout()),
            "one that names each element once, since it is written",
        ))
    }

    /// Refuses a written view that shares elements with another one.
    pub(crate) fn expect_apart(&self, argument: &str, other: &Self, name: &str) -> Result<()> {
        if self.buffer() != other.buffer() || !self.may_overlap(other) {
            return Ok(());
        }
        let may_be = "views that share no element";
        Err(Error::new(ErrorKind::Overlap, argument, name, may_be))
    }

    /// Refuses a written view in the buffer of one that the same dispatch reads.
    pub(crate) fn expect_other_buffer(&self, argument: &str, other: &Self, name: &str) -> Result<()> {
        if self.buffer() != other.buffer() {
            return Ok(());
        }
        let may_be = "in another buffer: one dispatch may not read and write the same one";
        Err(Error::new(ErrorKind::Overlap, argument, name, may_be))
    }

    /// Whether the two may share a byte of their buffer, if it is the same one.
    pub(crate) fn may_overlap(&self, other: &Self) -> bool {
        if self.element().bytes() == other.element().bytes() {
            return self.layout().may_overlap(&other.layout());
        }
        // Elements of different sizes: by the bytes from the first element to the last.
        let bytes = |view: &Self| {
            let (span, size) = (view.layout().span(), view.element().bytes() as u64);
            span.start as u64 * size..span.end as u64 * size
        };
        let (a, b) = (bytes(self), bytes(other));
        a.start < b.end && b.start < a.end
    }

    /// Refuses another element type than the one wanted.
    pub(crate) fn expect_element(&self, argument: &str, wanted: ElementType) -> Result<()> {
        if self.element() == wanted {
            return Ok(());
        }
        Err(Error::tensor(argument, self.element().to_string(), wanted.to_string()))
    }

    /// Refuses a buffer that was made without a usage.
    pub(crate) fn expect_usage(&self, argument: &str, wanted: wgpu::BufferUsages) -> Result<()> {
        if self.buffer().usage().contains(wanted) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Usage,
            argument,
            format!("{:?}", self.buffer().usage()),
            format!("{:?} | {wanted:?}", self.buffer().usage()),
        ))
    }
}

impl HasLayout for View {
    fn layout(&self) -> Layout {
        self.0.layout
    }
}
