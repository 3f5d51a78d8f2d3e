//! phasor, on wgpu.

use super::Prepared;
use crate::Failure;
use crate::task::{Operation, Task, frequencies, heads_first};
use phasor::attention::{Attention, ContextualPe, Fused};
use phasor::{ElementType, Gpu, Pairing, Positions, Rope, Rotate, View};

pub struct Phasor {
    gpu: Gpu,
    prepared: phasor::Prepared,
    /// As their memory goes.
    results: Vec<View>,
}

pub fn prepare(task: Task) -> Result<Phasor, Failure> {
    let gpu = Gpu::request_blocking()?;
    let inputs = task.inputs().into_iter().map(|(values, shape)| gpu.upload(&values, shape));
    let inputs: Vec<View> = inputs.collect::<phasor::Result<_>>()?;
    let views: Vec<View> = inputs.iter().map(seen).collect::<phasor::Result<_>>()?;
    let (prepared, results) = match (task.operation, views.as_slice()) {
        (Operation::Rotation, [q, k]) => {
            let rope = Rope::new(&gpu, &frequencies()?, Pairing::Interleaved)?;
            let rotate = Rotate::in_place(q).and_in_place(k).positions(Positions::Start(task.start as i32));
            (rope.prepare(&rotate)?, inputs)
        }
        (Operation::Attention | Operation::Cope, [q, k, v, embeddings @ ..]) => {
            let mut request = Attention::new(q, k, v).causal();
            if let [embeddings] = embeddings {
                request = request.cope(ContextualPe::new(embeddings));
            }
            let out = gpu.zeros(ElementType::F32, task.attended_shape())?;
            (Fused::new(&request, &seen(&out)?).prepare(&gpu)?, vec![out])
        }
        _ => return Err("an operation takes the inputs of its task".into()),
    };
    Ok(Phasor { gpu, prepared, results })
}

/// A tensor whose shape is that of its memory, `[batch, heads, tokens, channels]`, by the axes of phasor.
fn seen(tensor: &View) -> phasor::Result<View> {
    View::new(tensor.buffer(), ElementType::F32, heads_first(tensor.shape())?)
}

impl Prepared for Phasor {
    fn run(&mut self) -> Result<(), Failure> {
        self.gpu.submit(|pass| self.prepared.record(pass))?;
        Ok(self.gpu.wait()?)
    }

    fn answer(&self) -> Result<Vec<f32>, Failure> {
        let read = self.results.iter().map(|result| self.gpu.read_blocking(result));
        Ok(read.collect::<phasor::Result<Vec<_>>>()?.concat())
    }
}
