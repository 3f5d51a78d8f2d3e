//! A tensor in host memory.

use crate::attention::HasLayout;
use crate::{Error, Layout, Result};

/// Numbers and where in them a tensor's elements lie: the reference's counterpart of a view of a device's buffer.
#[derive(Debug, Clone, Copy)]
pub struct Tensor<'a> {
    data: &'a [f64],
    layout: Layout,
}

impl<'a> Tensor<'a> {
    /// A tensor in these numbers.
    ///
    /// # Errors
    /// [`ErrorKind::Tensor`](crate::ErrorKind::Tensor) if its last element lies past their end.
    pub fn new(data: &'a [f64], layout: Layout) -> Result<Self> {
        if layout.span().end > data.len() {
            return Err(Error::tensor(
                "layout",
                format!("{layout:?}, which ends at element {}", layout.span().end),
                format!("one within {} elements", data.len()),
            ));
        }
        Ok(Self { data, layout })
    }

    /// Shape, strides and offset.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// One element, whose index is within the shape.
    pub(super) fn get(&self, index: [usize; 4]) -> f64 {
        self.data[self.layout.at(index)]
    }

    /// One element of a tensor that is the same along axes of extent 1.
    pub(super) fn get_broadcast(&self, index: [usize; 4]) -> f64 {
        let shape = self.layout.shape();
        self.get(std::array::from_fn(|axis| if shape[axis] == 1 { 0 } else { index[axis] }))
    }

    /// All elements, in the order of the axes.
    pub(super) fn in_order(&self) -> Vec<f64> {
        self.layout.places().map(|place| self.data[place]).collect()
    }

    /// The channels of a token's head.
    pub(super) fn row(&self, b: usize, t: usize, h: usize) -> impl Iterator<Item = f64> + Clone + '_ {
        (0..self.layout.shape()[3]).map(move |c| self.get([b, t, h, c]))
    }
}

impl HasLayout for Tensor<'_> {
    fn layout(&self) -> Layout {
        self.layout
    }
}

/// `sum of a[i] * b[i]`.
pub(super) fn dot(a: impl Iterator<Item = f64>, b: impl Iterator<Item = f64>) -> f64 {
    a.zip(b).map(|(a, b)| a * b).sum()
}
