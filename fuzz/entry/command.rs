//! The command on any file and with any options: an answer or an error, never a panic, and no more memory than the file is
//! worth. What the corpus holds is read here too, by a test of the command.
//!
//! The first line of an input is the command's words, with `IN` and `OUT` for files. Lines of a name, a type and extents may
//! follow, which make `IN` a safetensors file; the bytes of its tensors are those behind the first empty line, as often as
//! they are needed. Without such lines those bytes are the file.

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use std::path::Path;

/// Larger files are described by few bytes, and take long.
const MOST_BYTES: usize = 1 << 16;

/// Writes an input's file into this directory, and gives the arguments for the command; `None` for an input that is none.
pub fn prepared(data: &[u8], directory: &Path) -> Option<Vec<String>> {
    let (text, bytes) = data.windows(2).position(|pair| pair == b"\n\n").map(|end| (&data[..end], &data[end + 2..]))?;
    let mut lines = std::str::from_utf8(text).ok()?.lines();
    let words = lines.next()?.split_ascii_whitespace().collect::<Vec<_>>();
    let [input, output] = ["in", "out"].map(|name| directory.join(name));
    let arguments = arguments(&words, &input, &output)?;
    let tensors = lines.map(|line| described(line, bytes)).collect::<Option<Vec<_>>>()?;
    // The crate that writes the file takes each name for another one.
    if tensors.iter().enumerate().any(|(i, tensor)| tensors[..i].iter().any(|other| other.name == tensor.name)) {
        return None;
    }
    let views = tensors.iter().map(|Tensor { name, dtype, shape, bytes }| {
        TensorView::new(*dtype, shape.clone(), bytes).ok().map(|view| (*name, view))
    });
    let file = match tensors.as_slice() {
        [] => bytes.to_vec(),
        _ => safetensors::serialize(views.collect::<Option<Vec<_>>>()?, None).ok()?,
    };
    std::fs::write(input, file).expect("the directory can be written to");
    Some(arguments)
}

/// Subcommands that read a file, by themselves, without a device, and write `OUT` alone.
fn arguments(words: &[&str], input: &Path, output: &Path) -> Option<Vec<String>> {
    let more: &[&str] = match words {
        ["rotate" | "cope" | "attention", "IN", "OUT", ..] => &["--cpu"],
        ["explain", "--config" | "--gguf", "IN", ..] | ["report", "IN", ..] => &[],
        ["tables", "--config" | "--gguf", "IN", "--json", ..] | ["tables", "--rope", _, "--json", ..] => &[],
        _ => return None,
    };
    let elsewhere = |word: &&str| word.contains('/') || ["--ratios=", "--curves="].iter().any(|o| word.starts_with(o));
    let drawn = words.windows(2).find(|pair| ["--ratios", "--curves"].contains(&pair[0]) && pair[1] != "OUT");
    if words.iter().any(elsewhere) || drawn.is_some() {
        return None;
    }
    let placed = |word: &&str| match *word {
        "IN" => input.display().to_string(),
        "OUT" => output.display().to_string(),
        word => word.to_owned(),
    };
    Some(["phasor"].iter().chain(words).chain(more).map(placed).collect())
}

struct Tensor<'a> {
    name: &'a str,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// The tensor of a line.
fn described<'a>(line: &'a str, bytes: &[u8]) -> Option<Tensor<'a>> {
    let mut words = line.split_ascii_whitespace();
    let (name, dtype) = (words.next()?, words.next()?);
    let all = [Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::F64, Dtype::I32, Dtype::I64, Dtype::U32, Dtype::BOOL];
    let dtype = all.into_iter().find(|known| known.to_string() == dtype)?;
    let shape = words.map(|extent| extent.parse().ok()).collect::<Option<Vec<usize>>>()?;
    let elements = shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent))?;
    let size = elements.checked_mul(dtype.bitsize() / 8).filter(|&size| size <= MOST_BYTES)?;
    let bytes = if bytes.is_empty() { &[0] } else { bytes };
    Some(Tensor { name, dtype, shape, bytes: bytes.iter().copied().cycle().take(size).collect() })
}
