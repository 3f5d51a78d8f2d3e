//! A whole layer of self-attention: a file's inputs and weights.

use super::{Attention, Turn};
use crate::adapter;
use crate::failure::Failure;
use crate::operand::Operand;
use crate::outcome::Outcome;
use crate::tensors::{self, File, Floats};
use phasor::Gpu;
use phasor::attention::{Module, SelfAttention, SelfAttentionWeights};
use phasor::reference::self_attention;
use std::collections::BTreeMap;

/// What stands before the names of a state dict.
const PREFIX: &str = "weights.";
const EMBEDDINGS: &str = "cope.position_embeddings";
const QUERY: &str = "query_proj.weight";

/// The file's tensors, weights by their names in a state dict.
struct Layer<T> {
    inputs: T,
    weights: BTreeMap<String, T>,
    heads: usize,
    kv_heads: usize,
}

pub fn run(asked: &Attention, file: &File, adapter: Option<&str>) -> Result<Outcome, Failure> {
    let layer = Layer::read(asked, file)?;
    let [batch, tokens, _, width] = layer.inputs.layout.shape();
    let channels = layer.channels(file)?;
    let turn = Turn::of(asked, file, channels, tokens)?;
    let scale = asked.scale(channels, turn.as_ref());
    let (out, by) = if asked.cpu {
        (layer.on_cpu(asked, scale, turn.as_ref())?, "the CPU, in float64".to_owned())
    } else {
        let gpu = adapter::open(adapter)?;
        (layer.on_device(asked, &gpu, scale, turn.as_ref())?, gpu.info().name.clone())
    };
    let shape = vec![batch, tokens, layer.outputs()];
    tensors::write(&asked.output, &[("out", &Floats::new(layer.inputs.tensor.dtype, shape, out))])?;
    let Layer { heads, kv_heads, .. } = layer;
    let attention = format!(
        "self-attention of {batch} x {tokens} inputs of {width} numbers, {heads} over {kv_heads} heads of {channels} \
         channels, scale {scale:.6}"
    );
    let positions = layer.weights.get(EMBEDDINGS).map(|embeddings| embeddings.layout.shape()[3]);
    Ok(asked.told(&attention, turn.as_ref(), positions, &by))
}

impl<T> Layer<T> {
    fn map<'a, U>(&'a self, of: impl Fn(&'a T) -> phasor::Result<U>) -> phasor::Result<Layer<U>> {
        let weights = self.weights.iter().map(|(name, weight)| Ok((name.clone(), of(weight)?)));
        Ok(Layer {
            inputs: of(&self.inputs)?,
            weights: weights.collect::<phasor::Result<_>>()?,
            heads: self.heads,
            kv_heads: self.kv_heads,
        })
    }
}

impl<T: Clone> Layer<T> {
    fn request(&self, asked: &Attention, scale: f64, turn: Option<&Turn>) -> phasor::Result<SelfAttention<T>> {
        let weights = SelfAttentionWeights::from_state_dict(|name| self.weights.get(name).cloned())?;
        let layer = SelfAttention::new(&self.inputs, &weights, self.heads, self.kv_heads);
        Ok(layer.attend(|attention| {
            let attention = asked.settings(attention, scale, turn);
            match &weights.position_embeddings {
                Some(embeddings) => attention.cope(asked.contextual(embeddings)),
                None => attention,
            }
        }))
    }
}

impl Layer<Operand> {
    fn read(asked: &Attention, file: &File) -> Result<Self, Failure> {
        let heads = asked.heads.ok_or_else(|| {
            Failure::new("--heads: was missing, may be the number of query heads that the weights make")
        })?;
        let names = file.names()?;
        let weights = names.iter().filter_map(|name| name.strip_prefix(PREFIX)).map(|name| {
            let weight = match name {
                EMBEDDINGS => Operand::position_embeddings(file, &format!("{PREFIX}{name}"))?,
                _ => Some(Operand::matrix(file, &format!("{PREFIX}{name}"))?),
            };
            Ok(weight.map(|weight| (name.to_owned(), weight)))
        });
        let weights = weights.filter_map(Result::transpose).collect::<Result<_, Failure>>()?;
        let kv_heads = asked.kv_heads.unwrap_or(heads);
        Ok(Self { inputs: Operand::sequence(file, "inputs")?, weights, heads, kv_heads })
    }

    /// The channels of a head.
    fn channels(&self, file: &File) -> Result<usize, Failure> {
        let rows = self.weights.get(QUERY).map(|weight| weight.layout.shape()[1]);
        match rows.and_then(|rows| rows.checked_div(self.heads)) {
            Some(channels) if Some(channels * self.heads) == rows => Ok(channels),
            Some(_) => {
                let was = format!("{} of weights with {} rows", self.heads, rows.unwrap_or_default());
                Err(Failure::new(format!("--heads: was {was}, may be a divisor of the rows")))
            }
            None if self.heads == 0 => Err(Failure::new("--heads: was 0, may be 1 or more")),
            None => Err(file.wrong(&format!("{PREFIX}{QUERY}"), "missing", "a matrix [heads * channels, width]")),
        }
    }

    /// How many numbers the last projection makes.
    fn outputs(&self) -> usize {
        self.weights.get("output_proj.weight").map_or(0, |weight| weight.layout.shape()[1])
    }

    fn on_cpu(&self, asked: &Attention, scale: f64, turn: Option<&Turn>) -> Result<Vec<f64>, Failure> {
        let wide = self.map(|operand| Ok(operand.wide()))?;
        let layer = wide.map(|wide| wide.tensor())?.request(asked, scale, turn)?;
        // Attention rotates queries and keys itself.
        Ok(self_attention(&layer, |_, _| Ok(()))?)
    }

    fn on_device(&self, asked: &Attention, gpu: &Gpu, scale: f64, turn: Option<&Turn>) -> Result<Vec<f64>, Failure> {
        let layer = self.map(|operand| operand.view(gpu))?.request(asked, scale, turn)?;
        let [batch, tokens, ..] = self.inputs.layout.shape();
        let out = gpu.zeros(phasor::ElementType::F32, [batch, tokens, 1, self.outputs()])?;
        let module = Module::new(&layer, &out);
        let prepared = if asked.unfused { module.unfused() } else { module }.prepare(gpu)?;
        gpu.submit(|pass| prepared.record(pass))?;
        Ok(gpu.read_blocking(&out)?.into_iter().map(f64::from).collect())
    }
}
