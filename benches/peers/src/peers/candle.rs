//! candle, on the CPU's cores: its own rotation, and attention in the operations that its models are made of.

use super::Prepared;
use crate::Failure;
use crate::task::{ATTENTION, BASE, Operation, ROTATION, Task};
use candle_core::{DType, Device, Result, Tensor};
use candle_nn::ops::softmax_last_dim;
use candle_nn::rotary_emb::rope_i;

/// What a run does with the inputs.
type Compute = Box<dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>>;

struct Candle {
    inputs: Vec<Tensor>,
    results: Vec<Tensor>,
    compute: Compute,
}

pub fn prepare(task: Task) -> std::result::Result<Box<dyn Prepared>, Failure> {
    let inputs = task.inputs().into_iter();
    let inputs: Vec<_> = inputs
        .map(|(values, shape)| Tensor::from_vec(values, shape.as_slice(), &Device::Cpu))
        .collect::<Result<_>>()?;
    let compute = match task.operation {
        Operation::Rotation => rotation(task)?,
        Operation::Attention => attention(task)?,
        Operation::Cope => return Err("candle has no contextual position encoding".into()),
    };
    Ok(Box::new(Candle { inputs, results: Vec::new(), compute }))
}

/// Angles in f32, as candle's models make them.
fn rotation(task: Task) -> Result<Compute> {
    let [_, _, channels] = ROTATION;
    let frequencies: Vec<_> =
        (0..channels).step_by(2).map(|i| 1.0 / (BASE as f32).powf(i as f32 / channels as f32)).collect();
    let frequencies = Tensor::from_vec(frequencies, (1, channels / 2), &Device::Cpu)?;
    let positions = Tensor::arange(task.start as u32, (task.start + task.tokens) as u32, &Device::Cpu)?;
    let angles = positions.to_dtype(DType::F32)?.reshape((task.tokens, 1))?.matmul(&frequencies)?;
    let (cos, sin) = (angles.cos()?, angles.sin()?);
    Ok(Box::new(move |inputs| inputs.iter().map(|x| rope_i(x, &cos, &sin)).collect()))
}

fn attention(task: Task) -> Result<Compute> {
    let mask = (0..task.tokens * task.tokens).map(|i| match i % task.tokens > i / task.tokens {
        true => f32::NEG_INFINITY,
        false => 0.0,
    });
    let mask = Tensor::from_vec(mask.collect(), (task.tokens, task.tokens), &Device::Cpu)?;
    Ok(Box::new(move |inputs| {
        let [q, k, v] = inputs else { candle_core::bail!("attention takes queries, keys and values") };
        let logits = (q.matmul(&k.t()?)? * (ATTENTION[1] as f64).sqrt().recip())?;
        Ok(vec![softmax_last_dim(&logits.broadcast_add(&mask)?)?.matmul(v)?])
    }))
}

impl Prepared for Candle {
    fn run(&mut self) -> std::result::Result<(), Failure> {
        self.results = (self.compute)(&self.inputs)?;
        Ok(())
    }

    fn answer(&self) -> std::result::Result<Vec<f32>, Failure> {
        let read = self.results.iter().map(|result| result.flatten_all()?.to_vec1());
        Ok(read.collect::<Result<Vec<_>>>()?.concat())
    }
}
