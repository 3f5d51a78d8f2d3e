//! A tensor of a file, and how its elements lie by phasor's axes `[batch, tokens, heads, channels]`.

use crate::failure::Failure;
use crate::tensors::{File, Floats};
use clap::ValueEnum;
use phasor::reference::Tensor;
use phasor::{Gpu, Layout, View};
use safetensors::Dtype;

/// The order of a tensor's axes in the file.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Order {
    /// [batch, tokens, heads, channels]
    Bthd,
    /// [batch, heads, tokens, channels]
    Bhtd,
}

impl Order {
    pub fn layout(self, shape: [usize; 4]) -> phasor::Result<Layout> {
        match self {
            Self::Bthd => Layout::contiguous(shape),
            Self::Bhtd => {
                let [batch, heads, tokens, channels] = shape;
                Layout::heads_first([batch, tokens, heads, channels])
            }
        }
    }

    pub fn axes(self) -> &'static str {
        match self {
            Self::Bthd => "[batch, tokens, heads, channels]",
            Self::Bhtd => "[batch, heads, tokens, channels]",
        }
    }
}

/// A tensor and its layout.
pub struct Operand {
    pub name: String,
    pub tensor: Floats,
    pub layout: Layout,
}

impl Operand {
    /// The tensor of this name, which must be there and have four axes.
    pub fn read(file: &File, name: &str, order: Order) -> Result<Self, Failure> {
        Self::of(file, name, file.floats(name)?, order)
    }

    /// The tensor of this name, if it is there.
    pub fn read_if_any(file: &File, name: &str, order: Order) -> Result<Option<Self>, Failure> {
        file.floats_if_any(name)?.map(|tensor| Self::of(file, name, tensor, order)).transpose()
    }

    fn of(file: &File, name: &str, tensor: Floats, order: Order) -> Result<Self, Failure> {
        let Ok(shape) = <[usize; 4]>::try_from(tensor.shape.as_slice()) else {
            return Err(file.wrong(name, &format!("{:?}", tensor.shape), &format!("four axes, {}", order.axes())));
        };
        Ok(Self { name: name.to_owned(), layout: order.layout(shape)?, tensor })
    }

    /// Position embeddings, if they are there: `[channels, positions]`, or `[heads, channels, positions]`.
    pub fn position_embeddings(file: &File, name: &str) -> Result<Option<Self>, Failure> {
        let Some(tensor) = file.floats_if_any(name)? else { return Ok(None) };
        let [heads, channels, positions] = match *tensor.shape.as_slice() {
            [channels, positions] => [1, channels, positions],
            [heads, channels, positions] => [heads, channels, positions],
            _ => {
                let was = format!("{:?}", tensor.shape);
                return Err(file.wrong(name, &was, "[channels, positions] or [heads, channels, positions]"));
            }
        };
        let layout = Order::Bhtd.layout([1, heads, channels, positions])?;
        Ok(Some(Self { name: name.to_owned(), tensor, layout }))
    }

    /// A matrix `[rows, columns]`, or a vector, as a row of one: what linear layers have.
    pub fn matrix(file: &File, name: &str) -> Result<Self, Failure> {
        Self::flat(file, name, "[rows, columns] or [columns]", |shape| match *shape {
            [columns] => Some([1, 1, 1, columns]),
            [rows, columns] => Some([1, rows, 1, columns]),
            _ => None,
        })
    }

    /// Tokens of one head, `[batch, tokens, channels]`.
    pub fn sequence(file: &File, name: &str) -> Result<Self, Failure> {
        Self::flat(file, name, "[batch, tokens, channels]", |shape| match *shape {
            [batch, tokens, channels] => Some([batch, tokens, 1, channels]),
            _ => None,
        })
    }

    fn flat(
        file: &File,
        name: &str,
        may_be: &str,
        shape: impl Fn(&[usize]) -> Option<[usize; 4]>,
    ) -> Result<Self, Failure> {
        let tensor = file.floats(name)?;
        match shape(&tensor.shape) {
            Some(shape) => Ok(Self { name: name.to_owned(), layout: Layout::contiguous(shape)?, tensor }),
            None => Err(file.wrong(name, &format!("{:?}", tensor.shape), may_be)),
        }
    }

    /// The same numbers in f32, infinities as its largest.
    pub fn finite(&self) -> Self {
        let finite = self.tensor.values().into_iter().map(|x| f64::from(x.clamp(f32::MIN, f32::MAX)));
        let tensor = Floats::new(Dtype::F32, self.tensor.shape.clone(), finite);
        Self { name: self.name.clone(), tensor, layout: self.layout }
    }

    /// In float64, for the reference.
    pub fn wide(&self) -> Wide {
        Wide { values: self.tensor.values().into_iter().map(f64::from).collect(), layout: self.layout }
    }

    /// On a device.
    pub fn view(&self, gpu: &Gpu) -> phasor::Result<View> {
        let flat = gpu.upload_as(self.tensor.element(), &self.tensor.values(), [1, 1, 1, self.tensor.len()])?;
        View::new(flat.buffer(), flat.element(), self.layout)
    }
}

/// A tensor in float64.
pub struct Wide {
    values: Vec<f64>,
    layout: Layout,
}

impl Wide {
    pub fn tensor(&self) -> phasor::Result<Tensor<'_>> {
        Tensor::new(&self.values, self.layout)
    }
}

/// Values in the order of the axes, in the order in which a layout without gaps has them in memory.
pub fn in_memory_order(layout: Layout, values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut in_memory = vec![0.0; layout.elements()];
    for (place, value) in layout.places().zip(values) {
        if let Some(slot) = in_memory.get_mut(place) {
            *slot = value;
        }
    }
    in_memory
}
