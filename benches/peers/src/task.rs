//! What is computed, the same by everyone: sizes, inputs, and the answer in f64.

use crate::Failure;
use clap::ValueEnum;
use phasor::attention::{Attention, ContextualPe};
use phasor::frequencies::{Frequencies, Plain};
use phasor::reference::{self, Tensor, rope_rotate};
use phasor::{Direction, Layout, Pairing};
use serde::{Deserialize, Serialize};

/// Query and key heads of a rotation, and the channels of each.
pub const ROTATION: [usize; 3] = [32, 8, 128];
/// Heads of attention, and the channels of each.
pub const ATTENTION: [usize; 2] = [8, 64];
/// Contextual positions.
pub const POSITIONS: usize = 64;
/// Of the rotation's frequencies.
pub const BASE: f64 = 10_000.0;

/// Which operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Of queries and keys, in interleaved pairs: the pairing that burn has
    Rotation,
    /// Causal, without an encoding
    Attention,
    /// Causal, with contextual position encoding
    Cope,
}

/// An operation on so many tokens. Tensors are `[1, heads, tokens, channels]`, as burn, candle and PyTorch have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub operation: Operation,
    pub tokens: usize,
    /// Where the first of them stands, for a rotation.
    pub start: usize,
}

/// Numbers from -1 to 1, which a script makes just so: the bits of a number's index, mixed.
pub fn noise(seed: u32, shape: [usize; 4]) -> Vec<f32> {
    let elements = shape.iter().product::<usize>() as u32;
    let mixed = (0..elements).map(|i| {
        let mut x = (seed << 24 | i).wrapping_mul(0x9E37_79B1);
        x = (x ^ x >> 16).wrapping_mul(0x85EB_CA6B);
        x ^ x >> 13
    });
    mixed.map(|x| (x >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
}

impl Task {
    /// The shapes of queries and keys of a rotation, as they lie in memory.
    pub fn rotated_shapes(&self) -> [[usize; 4]; 2] {
        let [heads, kv_heads, channels] = ROTATION;
        [heads, kv_heads].map(|heads| [1, heads, self.tokens, channels])
    }

    /// The shape of queries, keys, values and output of attention, as they lie in memory.
    pub fn attended_shape(&self) -> [usize; 4] {
        let [heads, channels] = ATTENTION;
        [1, heads, self.tokens, channels]
    }

    /// The inputs of the operation: queries and keys; values and position embeddings `[1, 1, channels, positions]` where
    /// it has them. Each has a seed of its own, by its place.
    pub fn inputs(&self) -> Vec<(Vec<f32>, [usize; 4])> {
        let attended = self.attended_shape();
        let shapes = match self.operation {
            Operation::Rotation => self.rotated_shapes().to_vec(),
            Operation::Attention => vec![attended; 3],
            Operation::Cope => vec![attended, attended, attended, [1, 1, ATTENTION[1], POSITIONS]],
        };
        shapes.into_iter().zip(0..).map(|(shape, seed)| (noise(seed, shape), shape)).collect()
    }

    /// The answer in f64, in the order of memory: queries and then keys, or the output of attention.
    pub fn reference(&self) -> Result<Vec<f64>, Failure> {
        let inputs: Vec<(Vec<f64>, Layout)> = self
            .inputs()
            .into_iter()
            .map(|(values, shape)| Ok((values.into_iter().map(f64::from).collect(), heads_first(shape)?)))
            .collect::<phasor::Result<_>>()?;
        match self.operation {
            Operation::Rotation => self.rotated(inputs),
            Operation::Attention | Operation::Cope => attended(&inputs),
        }
    }

    fn rotated(&self, inputs: Vec<(Vec<f64>, Layout)>) -> Result<Vec<f64>, Failure> {
        let frequencies = frequencies()?;
        let position = |_, t| (self.start + t) as i32;
        let mut answer = Vec::new();
        for (mut x, layout) in inputs {
            rope_rotate(&mut x, layout, &frequencies, Pairing::Interleaved, 0, Direction::Forward, position)?;
            answer.extend(x);
        }
        Ok(answer)
    }
}

/// Attention as phasor's reference computes it, brought from the order of its axes to that of memory.
fn attended(inputs: &[(Vec<f64>, Layout)]) -> Result<Vec<f64>, Failure> {
    let tensors: Vec<_> = inputs.iter().map(|(x, layout)| Tensor::new(x, *layout)).collect::<phasor::Result<_>>()?;
    let [q, k, v, embeddings @ ..] = tensors.as_slice() else {
        return Err("attention takes queries, keys and values".into());
    };
    let mut request = Attention::new(q, k, v).causal();
    if let [embeddings] = embeddings {
        request = request.cope(ContextualPe::new(embeddings));
    }
    let out = reference::attention(&request)?.out;
    let mut answer = vec![0.0; out.len()];
    for (value, place) in out.into_iter().zip(q.layout().places()) {
        answer[place] = value;
    }
    Ok(answer)
}

/// Of the rotation.
pub fn frequencies() -> phasor::Result<Frequencies> {
    Plain::new(BASE).frequencies(ROTATION[2] as u32)
}

/// phasor's layout of a tensor whose memory goes `[batch, heads, tokens, channels]`.
pub fn heads_first([batch, heads, tokens, channels]: [usize; 4]) -> phasor::Result<Layout> {
    Layout::heads_first([batch, tokens, heads, channels])
}
