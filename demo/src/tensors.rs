//! Tensors in safetensors files: read with checks, written with the dtype they came with.

use crate::failure::{self, Failure};
use half::{bf16, f16};
use phasor::ElementType;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors, View};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// A tensor of integers: its shape and its numbers.
pub type Integers = (Vec<usize>, Vec<i32>);

/// A file in memory.
pub struct File {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl File {
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let bytes = std::fs::read(path).map_err(|e| Failure::file(path, e))?;
        let file = Self { path: path.to_owned(), bytes };
        file.parse().map(|_| ())?;
        Ok(file)
    }

    fn parse(&self) -> Result<SafeTensors<'_>, Failure> {
        SafeTensors::deserialize(&self.bytes)
            .map_err(|e| Failure::file(&self.path, format!("was no whole safetensors file ({e})")))
    }

    /// Writes a file with all that this one has, some of its tensors replaced.
    pub fn write_with(&self, path: &Path, replaced: &[(&str, &Floats)]) -> Result<(), Failure> {
        let old = self.parse()?;
        let mut tensors = Vec::new();
        for (name, tensor) in old.tensors() {
            let new = replaced.iter().find(|(replaced, _)| *replaced == name);
            let view = match new {
                Some((_, floats)) => TensorView::new(floats.dtype, floats.shape.clone(), &floats.bytes),
                None => TensorView::new(tensor.dtype(), tensor.shape().to_vec(), tensor.data()),
            };
            tensors.push((name, view.map_err(|e| Failure::file(path, e))?));
        }
        let metadata = SafeTensors::read_metadata(&self.bytes).ok().and_then(|(_, read)| read.metadata().clone());
        save(path, safetensors::serialize(tensors, metadata))
    }

    /// The floating-point tensor of this name.
    pub fn floats(&self, name: &str) -> Result<Floats, Failure> {
        let tensors = self.parse()?;
        self.find(&tensors, name)?.ok_or_else(|| {
            let names = tensors.names();
            let has = if names.is_empty() { "no tensor".to_owned() } else { names.join(", ") };
            self.wrong(name, "missing", &format!("a tensor of that name (the file has {has})"))
        })
    }

    /// The floating-point tensor of this name, if there is one.
    pub fn floats_if_any(&self, name: &str) -> Result<Option<Floats>, Failure> {
        self.find(&self.parse()?, name)
    }

    /// Says which tensors are none of those that are read.
    pub fn note_unread(&self, is_read: impl Fn(&str) -> bool) -> Result<(), Failure> {
        let mut unread: Vec<_> = self.names()?.into_iter().filter(|name| !is_read(name)).collect();
        unread.sort_unstable();
        if !unread.is_empty() {
            failure::say(&format!("note: {} has more, which is not read: {}", self.path.display(), unread.join(", ")));
        }
        Ok(())
    }

    /// Refuses to write over the file.
    pub fn expect_other(&self, output: &Path) -> Result<(), Failure> {
        Failure::if_same(output, &self.path)
    }

    /// The names of all tensors.
    pub fn names(&self) -> Result<Vec<String>, Failure> {
        Ok(self.parse()?.names().into_iter().map(ToString::to_string).collect())
    }

    fn find(&self, tensors: &SafeTensors<'_>, name: &str) -> Result<Option<Floats>, Failure> {
        let Ok(tensor) = tensors.tensor(name) else { return Ok(None) };
        if !matches!(tensor.dtype(), Dtype::F32 | Dtype::F16 | Dtype::BF16) {
            return Err(self.wrong(name, &tensor.dtype().to_string(), "F32, F16 or BF16"));
        }
        self.expect_worth(name, tensor.shape())?;
        Ok(Some(Floats { dtype: tensor.dtype(), shape: tensor.shape().to_vec(), bytes: tensor.data().to_vec() }))
    }

    /// Refuses a tensor without elements whose other extents are larger than its file: nothing but these extents would bound
    /// what is made from it.
    fn expect_worth(&self, name: &str, shape: &[usize]) -> Result<(), Failure> {
        let all = shape.iter().filter(|&&extent| extent != 0).try_fold(1usize, |all, &extent| all.checked_mul(extent));
        let bytes = self.bytes.len();
        if !shape.contains(&0) || all.is_some_and(|all| all <= bytes) {
            return Ok(());
        }
        let may_be = format!("without a 0, or with other extents whose product is at most {bytes}, the file's size");
        Err(self.wrong(name, &format!("{shape:?}"), &may_be))
    }

    /// The integer tensor of this name, if there is one, each of its numbers within an i32.
    pub fn integers_if_any(&self, name: &str) -> Result<Option<Integers>, Failure> {
        let tensors = self.parse()?;
        let Ok(tensor) = tensors.tensor(name) else { return Ok(None) };
        let Some(wide) = integers(tensor.dtype(), tensor.data()) else {
            return Err(self.wrong(name, &tensor.dtype().to_string(), "I32, I64 or U32"));
        };
        let narrow = |n: i64| {
            i32::try_from(n).map_err(|_| self.wrong(name, &n.to_string(), &format!("{} to {}", i32::MIN, i32::MAX)))
        };
        let values = wide.into_iter().map(narrow).collect::<Result<_, _>>()?;
        Ok(Some((tensor.shape().to_vec(), values)))
    }

    /// The failure that a tensor of this file is.
    pub fn wrong(&self, name: &str, was: &str, may_be: &str) -> Failure {
        Failure::file(&self.path, format!("{name}: was {was}, may be {may_be}"))
    }
}

/// A tensor of floating-point numbers, held as the file has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Floats {
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Floats {
    /// A tensor of F32, F16 or BF16, each number rounded once.
    pub fn new(dtype: Dtype, shape: Vec<usize>, values: impl IntoIterator<Item = f64>) -> Self {
        Self { dtype, shape, bytes: rounded(dtype, values.into_iter()) }
    }

    /// Other numbers of the same type and shape.
    pub fn replace(&mut self, values: impl IntoIterator<Item = f64>) {
        self.bytes = rounded(self.dtype, values.into_iter());
    }

    /// The numbers. Each of the three types widens to f32 without rounding.
    pub fn values(&self) -> Vec<f32> {
        match self.dtype {
            Dtype::F16 => numbers(&self.bytes, |b| f16::from_le_bytes(b).to_f32()),
            Dtype::BF16 => numbers(&self.bytes, |b| bf16::from_le_bytes(b).to_f32()),
            _ => numbers(&self.bytes, f32::from_le_bytes),
        }
    }

    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.element().bytes()
    }

    /// How much room they take.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// How a device stores it.
    pub fn element(&self) -> ElementType {
        match self.dtype {
            Dtype::F16 => ElementType::F16,
            Dtype::BF16 => ElementType::BF16,
            _ => ElementType::F32,
        }
    }
}

impl View for &Floats {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.bytes.as_slice().into()
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

fn rounded(dtype: Dtype, values: impl Iterator<Item = f64>) -> Vec<u8> {
    match dtype {
        Dtype::F16 => values.flat_map(|x| f16::from_f64_const(tie_broken(x)).to_le_bytes()).collect(),
        Dtype::BF16 => values.flat_map(|x| bf16::from_f64(tie_broken(x)).to_le_bytes()).collect(),
        _ => values.flat_map(|x| (x as f32).to_le_bytes()).collect(),
    }
}

/// `half` looks at the upper half of a double alone. What lies below decides only where that is a tie, and there any bit
/// will do.
fn tie_broken(x: f64) -> f64 {
    let bits = x.to_bits();
    f64::from_bits(bits | u64::from(bits as u32 != 0) << 32)
}

/// Writes tensors to a file.
pub fn write(path: &Path, tensors: &[(&str, &Floats)]) -> Result<(), Failure> {
    save(path, safetensors::serialize(tensors.iter().copied(), None))
}

/// Writes in place: what else the path may be, a device, a pipe or a link, stays what it is.
fn save(path: &Path, bytes: Result<Vec<u8>, safetensors::SafeTensorError>) -> Result<(), Failure> {
    std::fs::write(path, bytes.map_err(|e| Failure::file(path, e))?).map_err(|e| Failure::file(path, e))
}

fn integers(dtype: Dtype, bytes: &[u8]) -> Option<Vec<i64>> {
    Some(match dtype {
        Dtype::I32 => numbers(bytes, |b| i32::from_le_bytes(b).into()),
        Dtype::U32 => numbers(bytes, |b| u32::from_le_bytes(b).into()),
        Dtype::I64 => numbers(bytes, i64::from_le_bytes),
        _ => return None,
    })
}

fn numbers<const N: usize, T>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|&chunk| read(chunk)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_once() {
        // A little above the middle of two neighbours, by less than an f32 can tell.
        let above = |half_unit: f64| 1.0 + half_unit + 2f64.powi(-40);
        let values = |dtype, x: f64| Floats::new(dtype, vec![1], [x]).values()[0];
        assert_eq!(values(Dtype::F16, above(2f64.powi(-11))), 1.0 + 2f32.powi(-10));
        assert_eq!(values(Dtype::BF16, above(2f64.powi(-8))), 1.0 + 2f32.powi(-7));
        assert_eq!(values(Dtype::F32, above(2f64.powi(-24))), 1.0 + 2f32.powi(-23));
        // The middle itself goes to the even one.
        assert_eq!(values(Dtype::F16, 1.0 + 2f64.powi(-11)), 1.0);
        assert_eq!(values(Dtype::BF16, 1.0 + 2f64.powi(-8)), 1.0);
    }
}
