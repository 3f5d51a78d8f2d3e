//! A linear layer on the device, as attention's projections are.

use super::expect;
use super::self_attention::Layer;
use crate::gpu::{Gpu, Prepared, View};
use crate::kernels::grid::Limits;
use crate::kernels::plan::Plan;
use crate::kernels::projection::{Job, Kernel, MOST_INPUTS};
use crate::kernels::step::{Operand, Tensor};
use crate::{Error, ErrorKind, Result};

/// How a projection is cut into work for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProjectionSchedule {
    /// Workgroups take tiles of tokens by outputs, through workgroup memory: many tokens on a GPU. Up to 32,768 inputs.
    Tiles,
    /// Invocations take four tokens each and share what they load of the weights: many tokens on a device that is a CPU.
    /// Needs subgroups of four lanes or more. Up to 32,768 inputs.
    Rows,
    /// Workgroups take a few outputs of up to four tokens, and their invocations share the inputs: few tokens, or many
    /// inputs, up to 1,048,576.
    Dots,
}

impl ProjectionSchedule {
    /// Up to this many tokens, of all rows of the batch, the inputs are shared: on a device that is a CPU, and on a GPU,
    /// of which a tile of so few tokens would leave most idle.
    const FEW_TOKENS_ON_CPU: usize = 4;
    const FEW_TOKENS_ON_GPU: usize = 16;

    /// The one that suits a device.
    fn suitable(gpu: &Gpu, tokens: usize, inputs: usize) -> Self {
        let few = if gpu.is_software() { Self::FEW_TOKENS_ON_CPU } else { Self::FEW_TOKENS_ON_GPU };
        if tokens <= few || inputs > MOST_INPUTS {
            Self::Dots
        } else if gpu.is_software() && has_lanes(gpu) {
            Self::Rows
        } else {
            Self::Tiles
        }
    }
}

/// How many lanes of a subgroup share their weights.
const LANES: u32 = 4;

fn has_lanes(gpu: &Gpu) -> bool {
    gpu.has_subgroups() && gpu.info().subgroup_min_size >= LANES
}

/// `output = x Wᵀ + bias` for each token: a linear layer, whose weight has a row for each output as checkpoints hold it.
///
/// A token's inputs are its heads' channels one after the other, and so are its outputs: the layer makes queries of three
/// heads from inputs of one, and inputs of one from what three heads have attended to. Numbers may be stored as f32, f16
/// or bf16, each tensor its own way; sums are f32.
///
/// ```no_run
/// use phasor::attention::Projection;
/// use phasor::{Gpu, View};
/// # fn engine(gpu: Gpu, inputs: View, weight: View, bias: View, q: View, pass: &mut wgpu::ComputePass<'_>)
/// # -> phasor::Result<()> {
/// // inputs [1, 512, 1, 576] and weight [1, 576, 1, 576] to queries [1, 512, 9, 64]:
/// let prepared = Projection::new(&inputs, &weight, &q).bias(&bias).prepare(&gpu)?;
/// prepared.record(pass);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Projection {
    x: View,
    weight: View,
    bias: Option<View>,
    output: View,
    schedule: Option<ProjectionSchedule>,
    /// What goes before the names of weight and bias in errors.
    layer: &'static str,
}

impl Projection {
    /// Tokens `[batch, tokens, heads, channels]` and a weight `[1, outputs, 1, heads * channels]` to an output
    /// `[batch, tokens, any heads, channels]` of as many channels in all heads as there are outputs.
    pub fn new(x: &View, weight: &View, output: &View) -> Self {
        Self { x: x.clone(), weight: weight.clone(), bias: None, output: output.clone(), schedule: None, layer: "" }
    }

    /// What is added to each output, `[1, 1, 1, outputs]`.
    pub fn bias(mut self, bias: &View) -> Self {
        self.bias = Some(bias.clone());
        self
    }

    /// How to cut the work, instead of as the device's kind suggests: to measure, or to check one against another.
    pub fn schedule(mut self, schedule: ProjectionSchedule) -> Self {
        self.schedule = Some(schedule);
        self
    }

    /// Says in errors of which layer weight and bias are: `query_proj.` for `query_proj.weight`.
    pub(super) fn of_layer(mut self, layer: Layer) -> Self {
        self.layer = layer.0;
        self
    }

    /// Checks the request, finds pipelines and makes bind groups.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) for shapes and element types that do not go together, or too many inputs;
    /// [`Overlap`](crate::ErrorKind::Overlap) where the output lies in the buffer of another tensor,
    /// [`Usage`](crate::ErrorKind::Usage) for a buffer without `STORAGE`, [`Limit`](crate::ErrorKind::Limit) where not
    /// even one token, or the weights of one output, fit into the device's limits, or where a schedule was asked for that
    /// the device is not made for.
    pub fn prepare(&self, gpu: &Gpu) -> Result<Prepared> {
        self.check_shapes()?;
        self.check_buffers()?;
        if self.output.layout().is_empty() {
            return Ok(Prepared::nothing());
        }
        let limits = Limits::from(gpu.limits());
        let whole = |tensor, view| Operand::of(tensor, view, Ok);
        let job = Job {
            x: whole(Tensor::Inputs, &self.x)?,
            weight: whole(Tensor::Weight, &self.weight)?,
            bias: self.bias.as_ref().map(|bias| whole(Tensor::WeightBias, bias)).transpose()?,
            y: whole(Tensor::Output, &self.output)?,
        };
        let steps = job.steps(self.kernel(gpu)?, limits)?;
        let prepared = Plan::without_scratch(steps, limits).prepare(gpu, &|tensor| match tensor {
            Tensor::Inputs => self.x.buffer(),
            Tensor::Weight => self.weight.buffer(),
            Tensor::WeightBias => self.bias.as_ref().unwrap_or(&self.weight).buffer(),
            _ => self.output.buffer(),
        });
        let read = self.read();
        let named = read.iter().map(|(name, view)| (name.as_str(), *view)).chain([("output", &self.output)]);
        prepared.map_err(|error| gpu.blame(error, named))
    }

    /// What is read, with the arguments' names.
    fn read(&self) -> Vec<(String, &View)> {
        let weight = (self.named("weight"), &self.weight);
        let bias = self.bias.as_ref().map(|bias| (self.named("bias"), bias));
        [("x".into(), &self.x), weight].into_iter().chain(bias).collect()
    }

    fn kernel(&self, gpu: &Gpu) -> Result<Kernel> {
        let [batch, tokens, heads, channels] = self.x.shape();
        let suitable = || ProjectionSchedule::suitable(gpu, batch * tokens, heads * channels);
        match self.schedule.unwrap_or_else(suitable) {
            ProjectionSchedule::Tiles => Ok(Kernel::Tiles),
            ProjectionSchedule::Rows if has_lanes(gpu) => Ok(Kernel::Rows),
            ProjectionSchedule::Rows => Err(Error::new(
                ErrorKind::Limit,
                "subgroup_min_size",
                format!("{LANES} for a schedule by rows"),
                "had from a device with subgroups of so many lanes, or another schedule asked for",
            )),
            ProjectionSchedule::Dots => {
                Ok(Kernel::Dots { software: gpu.is_software(), four_tokens: batch * tokens > 1 })
            }
        }
    }

    fn named(&self, tensor: &str) -> String {
        format!("{}{tensor}", self.layer)
    }

    fn check_shapes(&self) -> Result<()> {
        let [batch, tokens, heads, channels] = self.x.shape();
        let [_, outputs, ..] = self.weight.shape();
        expect(&self.named("weight"), &self.weight, [1, outputs, 1, heads.saturating_mul(channels)])?;
        if let Some(bias) = &self.bias {
            expect(&self.named("bias"), bias, [1, 1, 1, outputs])?;
        }
        let [b, t, h, c] = self.output.shape();
        if [b, t] == [batch, tokens] && h.checked_mul(c) == Some(outputs) {
            return Ok(());
        }
        Err(Error::tensor(
            "output",
            format!("{:?}", self.output.shape()),
            format!("[{batch}, {tokens}, heads, channels] with heads * channels = {outputs}"),
        ))
    }

    fn check_buffers(&self) -> Result<()> {
        self.output.expect_written("output")?;
        for (name, view) in self.read() {
            view.expect_floats(&name)?;
            self.output.expect_other_buffer("output", view, &name)?;
        }
        Ok(())
    }
}
