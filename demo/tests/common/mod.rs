//! Running the command, and files for it.

// Each test file uses some of these.
#![allow(dead_code)]

pub mod models;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs `phasor` in a directory.
pub fn phasor(directory: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_phasor")).current_dir(directory).args(args).output().expect("the command starts")
}

/// Runs `phasor`, which must succeed, and gives its standard output.
#[track_caller]
pub fn well(directory: &Path, args: &[&str]) -> String {
    let output = phasor(directory, args);
    assert!(output.status.success(), "phasor {args:?}: {}\n{}", output.status, told(&output.stderr));
    told(&output.stdout)
}

/// Runs `phasor`, which must fail with this code and say each of these words on standard error.
#[track_caller]
pub fn refused(directory: &Path, args: &[&str], code: i32, words: &[&str]) {
    let output = phasor(directory, args);
    let error = told(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "phasor {args:?}: {error}");
    for word in words {
        assert!(error.contains(word), "phasor {args:?} should have said {word:?}: {error}");
    }
}

/// Runs `phasor`, which must succeed and print JSON.
#[track_caller]
pub fn json(directory: &Path, args: &[&str]) -> serde_json::Value {
    let text = well(directory, args);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("phasor {args:?}: {e}: {text}"))
}

fn told(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A tensor of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

impl Tensor {
    pub fn f32(shape: &[usize], values: &[f32]) -> Self {
        Self::new(Dtype::F32, shape, values.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    pub fn i64(shape: &[usize], values: &[i64]) -> Self {
        Self::new(Dtype::I64, shape, values.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    pub fn new(dtype: Dtype, shape: &[usize], bytes: Vec<u8>) -> Self {
        Self { dtype, shape: shape.to_vec(), bytes }
    }

    /// The values of an F32 tensor.
    pub fn values(&self) -> Vec<f32> {
        assert_eq!(self.dtype, Dtype::F32);
        self.bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
    }
}

/// Numbers from -1 to 1, the same on every run.
pub fn noise(n: usize) -> Vec<f32> {
    let next = |x: &u32| Some(x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    std::iter::successors(Some(7), next).map(|x| (x >> 8) as f32 / (1 << 23) as f32 - 1.0).take(n).collect()
}

pub fn write(path: &Path, tensors: &[(&str, &Tensor)]) {
    let views = tensors.iter().map(|(name, tensor)| {
        (name.to_string(), TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.bytes).expect("a whole tensor"))
    });
    safetensors::serialize_to_file(views, None, path).expect("the file is written");
}

pub fn read(path: &Path, name: &str) -> Tensor {
    tensor(&std::fs::read(path).expect("the file is there"), name)
}

fn tensor(bytes: &[u8], name: &str) -> Tensor {
    let file = SafeTensors::deserialize(bytes).expect("a safetensors file");
    let tensor = file.tensor(name).expect("the tensor is there");
    Tensor { dtype: tensor.dtype(), shape: tensor.shape().to_vec(), bytes: tensor.data().to_vec() }
}

/// A tensor that the article's own functions gave, or were given.
pub fn article(name: &str) -> Tensor {
    tensor(include_bytes!("../../../tests/data/article.safetensors"), name)
}

/// The names of the article's tensors that begin so.
pub fn article_names(prefix: &str) -> Vec<String> {
    let file = SafeTensors::deserialize(include_bytes!("../../../tests/data/article.safetensors")).expect("a file");
    file.names().into_iter().filter(|name| name.starts_with(prefix)).map(|name| name.to_string()).collect()
}

/// A tensor of the bundled activations.
pub fn smollm2(name: &str) -> Tensor {
    tensor(include_bytes!("../../../tests/data/smollm2.safetensors"), name)
}

/// Asserts that no number is farther from its counterpart than this.
#[track_caller]
pub fn assert_close(got: &[f32], expected: &[f32], bound: f64) {
    assert_eq!(got.len(), expected.len());
    for (i, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        let off = (f64::from(got) - f64::from(expected)).abs();
        assert!(off <= bound, "number {i}: {got} instead of {expected}, off by {off:e}, may be {bound:e}");
    }
}

/// The largest absolute value.
pub fn largest(values: &[f32]) -> f64 {
    values.iter().map(|&x| f64::from(x).abs()).fold(0.0, f64::max)
}

/// The relative error of one f32 operation.
pub const U: f64 = 1.0 / (1u32 << 24) as f64;

/// How far a rotation in f32 may be from the exact one, for numbers up to `x` and a factor up to `a`: 2e-7 for cosine and
/// sine, 2 u for the factor, 2 u for the arithmetic, each on a sum of two such numbers.
pub fn rotation_bound(x: f64, a: f64) -> f64 {
    a * 2.0 * x * (2e-7 + 4.0 * U)
}

/// The same for a program that computes angles up to `angle` in float32: each of power, blend and product errs by u or
/// two of the angle, cosine and sine by u or so of one.
pub fn float32_bound(x: f64, a: f64, angle: f64) -> f64 {
    a * 2.0 * x * ((8.0 * angle + 2.0) * U + 2.0 * U)
}

/// A directory that goes when the test ends, and paths in it.
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}
