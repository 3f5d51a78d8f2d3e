//! Queries and keys of a real model, before and after the rotation as transformers computes it.

use phasor::{Error, ErrorKind, Result};
use safetensors::{Dtype, SafeTensors};

/// What a file of activations holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Activations {
    /// The rope's base.
    pub rope_theta: f64,
    /// Channels of a head.
    pub head_dim: u32,
    /// The text that the model read.
    pub text: String,
    /// Layer by layer, queries and keys.
    pub tensors: Vec<Activation>,
}

/// One tensor `[batch, tokens, heads, channels]`, its channels paired half-split, its tokens from position 0 on.
#[derive(Debug, Clone, PartialEq)]
pub struct Activation {
    /// Its name in the file, such as `layer0.q`.
    pub name: String,
    /// `[batch, tokens, heads, channels]`.
    pub shape: [usize; 4],
    /// Before the rotation.
    pub before: Vec<f32>,
    /// After it, by transformers in f32.
    pub after: Vec<f32>,
}

impl Activations {
    /// Reads a safetensors file with tensors `NAME` and `NAME_rotated`, and `rope_theta`, `head_dim` and `text` in its
    /// metadata.
    ///
    /// # Errors
    /// [`Tensor`](phasor::ErrorKind::Tensor) or [`Setting`](phasor::ErrorKind::Setting) naming what is missing or of the
    /// wrong kind.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let unreadable = |e: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Tensor, "activations", format!("unreadable ({e})"), "a safetensors file")
        };
        let file = SafeTensors::deserialize(bytes).map_err(|e| unreadable(&e))?;
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| unreadable(&e))?;
        let word = |key: &str| header.metadata().as_ref().and_then(|metadata| metadata.get(key)).cloned();
        let mut names: Vec<_> = file.names().into_iter().filter_map(|name| name.strip_suffix("_rotated")).collect();
        names.sort_unstable();
        let tensors = names.into_iter().map(|name| activation(&file, name)).collect::<Result<_>>()?;
        Ok(Self {
            rope_theta: number("rope_theta", word("rope_theta"))?,
            head_dim: number("head_dim", word("head_dim"))?,
            text: word("text").unwrap_or_default(),
            tensors,
        })
    }
}

fn activation(file: &SafeTensors<'_>, name: &str) -> Result<Activation> {
    let (shape, before) = floats(file, name)?;
    let (shape_after, after) = floats(file, &format!("{name}_rotated"))?;
    if shape != shape_after {
        return Err(Error::new(
            ErrorKind::Tensor,
            format!("{name}_rotated"),
            format!("{shape_after:?}"),
            format!("{shape:?}, as {name} is"),
        ));
    }
    Ok(Activation { name: name.into(), shape, before, after })
}

fn floats(file: &SafeTensors<'_>, name: &str) -> Result<([usize; 4], Vec<f32>)> {
    let wrong =
        |was: String| Error::new(ErrorKind::Tensor, name, was, "an F32 tensor [batch, tokens, heads, channels]");
    let tensor = file.tensor(name).map_err(|_| wrong("missing".into()))?;
    match (tensor.dtype(), <[usize; 4]>::try_from(tensor.shape())) {
        (Dtype::F32, Ok(shape)) => {
            let values = tensor.data().as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
            Ok((shape, values))
        }
        (dtype, _) => Err(wrong(format!("{dtype} {:?}", tensor.shape()))),
    }
}

fn number<T: std::str::FromStr>(key: &str, word: Option<String>) -> Result<T> {
    let parsed = word.as_ref().and_then(|word| word.parse().ok());
    parsed.ok_or_else(|| {
        Error::new(ErrorKind::Setting, key, word.unwrap_or_else(|| "missing".into()), "a number in the file's metadata")
    })
}
