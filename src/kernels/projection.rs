//! `shaders/projection_tiles.wgsl`, `projection_rows.wgsl`, `projection_dots.wgsl`: a linear layer.

use super::grid::Limits;
use super::modules::{self, Lane, Module};
use super::region::Region;
use super::step::{Operand, Step};
use super::words;
use crate::gpu::{Access, Binding, Shader};
use crate::{ElementType, Error, Layout, Result};
use bytemuck::{Pod, Zeroable};

const TILES: Module = Module { name: "projection_tiles", wgsl: include_str!("../../shaders/projection_tiles.wgsl") };
const ROWS: Module = Module { name: "projection_rows", wgsl: include_str!("../../shaders/projection_rows.wgsl") };
const DOTS: Module = Module { name: "projection_dots", wgsl: include_str!("../../shaders/projection_dots.wgsl") };

/// Up to this many inputs each invocation may go over all of them: little more than two iterations for each, of the
/// 65,535 after which Mesa's llvmpipe silently ends an invocation's loops.
pub(crate) const MOST_INPUTS: usize = 1 << 15;

/// Up to this many inputs the invocations of a workgroup may share: the smaller workgroup has eight, which go over fours.
pub(crate) const MOST_SHARED_INPUTS: usize = 1 << 20;

/// The numbers behind the places in the uniform, as the shaders declare them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Numbers {
    batch_tokens: u32,
    tokens: u32,
    inputs: u32,
    channels: u32,
    outputs: u32,
    first_output: u32,
    y_channels: u32,
    _pad: u32,
}

/// A kernel, with the constants that its grid depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kernel {
    /// Tiles of tokens by outputs through workgroup memory.
    Tiles,
    /// Tokens to an invocation; needs subgroups of four lanes or more.
    Rows,
    /// Inputs shared by the invocations of a workgroup, which is small on a device that is a CPU.
    Dots { software: bool, four_tokens: bool },
}

impl Kernel {
    fn module(self) -> Module {
        match self {
            Self::Tiles => TILES,
            Self::Rows => ROWS,
            Self::Dots { .. } => DOTS,
        }
    }

    fn workgroup(self) -> u32 {
        match self {
            Self::Rows | Self::Dots { software: true, .. } => 8,
            Self::Tiles | Self::Dots { software: false, .. } => 64,
        }
    }

    /// Outputs and tokens to a workgroup.
    fn block(self) -> [usize; 2] {
        match self {
            Self::Tiles => [64, 64],
            Self::Rows => [32, 32],
            Self::Dots { four_tokens, .. } => [8, if four_tokens { 4 } else { 1 }],
        }
    }

    /// How many inputs its loops are good for.
    pub(crate) fn most_inputs(self) -> usize {
        match self {
            Self::Tiles | Self::Rows => MOST_INPUTS,
            Self::Dots { .. } => MOST_SHARED_INPUTS,
        }
    }
}

/// What makes one variant differ from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Variant {
    kernel: Kernel,
    lane: Lane,
    x: ElementType,
    weight: ElementType,
    bias: Option<ElementType>,
    y: ElementType,
}

impl Variant {
    fn shader(self) -> Shader {
        let binding = |index, name, access| Binding { index, name, access };
        let x = binding(1, "x", Access::Read);
        let weight = binding(2, "weight", Access::Read);
        let bias = self.bias.map(|element| (binding(3, "bias", Access::Read), element));
        let y = binding(4, "y", Access::ReadWrite);
        let read = |binding: Binding, element, shape| {
            words::declare(binding, element, self.lane, shape)
                + &words::load(binding.name, Some((binding, element)), self.lane)
        };
        let data = [
            read(x, self.x, "(B, T, H, C)"),
            read(weight, self.weight, "(O, I)"),
            bias.map_or_else(String::new, |(bias, element)| words::numbers(bias, element, self.lane, "(O)")),
            words::declare(y, self.y, self.lane, "(B, T, Ho, Co)") + &words::store("y", Some((y, self.y)), self.lane),
        ];
        let reach = if self.lane == Lane::Four { modules::PROJECTION_LANE4 } else { modules::PROJECTION_LANE1 };
        let with_bias = if bias.is_some() { modules::PROJECTION_BIAS } else { modules::PROJECTION_NO_BIAS };
        let kernel = self.kernel.module();
        let elements = [Some(self.x), Some(self.weight), self.bias, Some(self.y)].into_iter().flatten();
        let mut text = vec![self.lane.module().wgsl, modules::PLACE.wgsl, modules::PROJECTION.wgsl];
        text.extend(words::halves(self.lane, elements.clone()).map(|halves| halves.wgsl));
        text.extend(data.iter().map(String::as_str));
        text.extend([reach.wgsl, with_bias.wgsl, kernel.wgsl]);
        let elements: Vec<_> = elements.map(ElementType::name).collect();
        let mut constants = vec![("WG_SIZE", self.kernel.workgroup().into())];
        if let Kernel::Dots { four_tokens, .. } = self.kernel {
            constants.push(("FOUR_TOKENS", f64::from(u8::from(four_tokens))));
        }
        Shader {
            name: format!("{}.{}_{}.{}", kernel.name, self.lane.module().name, elements.join("_"), with_bias.name),
            wgsl: Shader::compose(&text),
            constants,
            bindings: [
                Some(binding(0, "params", Access::Uniform)),
                Some(x),
                Some(weight),
                bias.map(|(b, _)| b),
                Some(y),
            ]
            .into_iter()
            .flatten()
            .collect(),
            workgroup: [self.kernel.workgroup(), 1, 1],
        }
    }
}

/// Each kernel with tensors that are stored alike, by words and by channels, and with weights in 16 bits between numbers
/// in 32.
pub(crate) fn all() -> impl Iterator<Item = Shader> {
    let kernels = [
        Kernel::Tiles,
        Kernel::Rows,
        Kernel::Dots { software: true, four_tokens: true },
        Kernel::Dots { software: false, four_tokens: false },
    ];
    let stored = |lane, x, weight, bias| (lane, x, weight, bias);
    let storages = [
        stored(Lane::Four, ElementType::F32, ElementType::F32, None),
        stored(Lane::Four, ElementType::F32, ElementType::F16, Some(ElementType::F16)),
        stored(Lane::Four, ElementType::BF16, ElementType::BF16, Some(ElementType::BF16)),
        stored(Lane::One, ElementType::F32, ElementType::F32, Some(ElementType::F32)),
        stored(Lane::One, ElementType::F16, ElementType::F16, None),
    ];
    kernels.into_iter().flat_map(move |kernel| {
        storages.map(|(lane, x, weight, bias)| Variant { kernel, lane, x, weight, bias, y: x }.shader())
    })
}

/// A linear layer, told without buffers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    /// `[batch, tokens, heads, channels]`.
    pub x: Operand,
    /// `[1, outputs, 1, inputs]`.
    pub weight: Operand,
    /// `[1, 1, 1, outputs]`.
    pub bias: Option<Operand>,
    /// `[batch, tokens, any heads, channels]`, as many of these as there are outputs.
    pub y: Operand,
}

impl Job {
    /// A step for each piece of the tokens and each of the outputs, none of which is empty.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit) if one token, or one output, does not fit into the device's limits;
    /// [`Tensor`](crate::ErrorKind::Tensor) for more inputs than the kernel's loops are good for.
    pub(crate) fn steps(&self, kernel: Kernel, limits: Limits) -> Result<Vec<Step>> {
        let [_, outputs, _, inputs] = self.weight.layout.shape();
        if inputs > kernel.most_inputs() {
            return Err(Error::tensor(
                "x",
                format!("one of {inputs} inputs to a token"),
                format!("one of up to {} inputs for this schedule", kernel.most_inputs()),
            ));
        }
        let [batch, tokens, ..] = self.y.layout.shape();
        let of = |operand: Operand, layout| Operand { layout, ..operand };
        // Heads are never cut: a token's inputs and outputs go through all of them.
        let token_pieces = Region { batch: 0..batch, tokens: 0..tokens, heads: 0..1 }.cover(&|region: &Region| {
            let part = |layout: Layout| layout.narrow(0, region.batch.clone())?.tokens(region.tokens.clone());
            let (x, y) = (of(self.x, part(self.x.layout)?), of(self.y, part(self.y.layout)?));
            expect_bindings(limits, &[x, y])?;
            expect_groups(limits, kernel, region.batch.len() * region.tokens.len(), 1)?;
            Ok((x, y))
        })?;
        // The rows of the weights are its tokens.
        let output_pieces = Region { batch: 0..1, tokens: 0..outputs, heads: 0..1 }.cover(&|region: &Region| {
            let weight = of(self.weight, self.weight.layout.tokens(region.tokens.clone())?);
            let bias = |bias: Operand| Ok(of(bias, bias.layout.narrow(3, region.tokens.clone())?));
            let bias = self.bias.map(bias).transpose()?;
            expect_bindings(limits, &[Some(weight), bias].into_iter().flatten().collect::<Vec<_>>())?;
            expect_groups(limits, kernel, region.tokens.len(), 0)?;
            Ok((region.tokens.start, weight, bias))
        })?;
        let outputs = |(x, y): (Operand, Operand)| {
            output_pieces.iter().map(move |&(_, (first, weight, bias))| Self { x, weight, bias, y }.step(kernel, first))
        };
        Ok(token_pieces.iter().flat_map(|&(_, operands)| outputs(operands)).collect())
    }

    /// One dispatch, of weights that make the outputs from this one on.
    fn step(&self, kernel: Kernel, first_output: usize) -> Step {
        let Self { x, weight, bias, y } = *self;
        let [batch, tokens, _, channels] = x.layout.shape();
        let [_, outputs, _, inputs] = weight.layout.shape();
        let in_fours = |operand: Operand| operand.layout.is_in_fours() && !operand.layout.is_empty();
        let fours = [x, weight, y].into_iter().all(in_fours) && [first_output, outputs].iter().all(|n| n % 4 == 0);
        let lane = if fours { Lane::Four } else { Lane::One };
        let numbers = Numbers {
            batch_tokens: tokens as u32,
            tokens: (batch * tokens) as u32,
            inputs: inputs as u32,
            channels: if are_one(x.layout) { inputs } else { channels } as u32,
            outputs: outputs as u32,
            first_output: first_output as u32,
            y_channels: y.layout.shape()[3] as u32,
            _pad: 0,
        };
        let element = |operand: Operand| operand.element;
        let variant =
            Variant { kernel, lane, x: x.element, weight: weight.element, bias: bias.map(element), y: y.element };
        let [outputs_each, tokens_each] = kernel.block();
        Step {
            shader: variant.shader(),
            operands: vec![(1, Some(x)), (2, Some(weight)), (3, bias), (4, Some(y))],
            word: lane.pairs(),
            numbers: bytemuck::bytes_of(&numbers).to_vec(),
            groups: [outputs.div_ceil(outputs_each), (batch * tokens).div_ceil(tokens_each), 1],
        }
    }
}

/// Whether heads follow each other as their own channels do.
fn are_one(layout: Layout) -> bool {
    let [.., heads, channels] = layout.shape();
    let [.., head, channel] = layout.strides();
    // An axis of one index has no distance that counts.
    heads <= 1 || (channels > 1 && head == channels * channel)
}

fn expect_bindings(limits: Limits, operands: &[Operand]) -> Result<()> {
    operands.iter().try_for_each(|operand| {
        let bytes = limits.range([(operand.layout, operand.element)]);
        limits.expect_binding(operand.tensor.name(), bytes.end - bytes.start)
    })
}

fn expect_groups(limits: Limits, kernel: Kernel, n: usize, axis: usize) -> Result<()> {
    let groups = n.div_ceil(kernel.block()[axis]);
    limits.expect_groups(kernel.module().name, u32::try_from(groups).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::step::Tensor;
    use super::*;

    fn job(tokens: usize, inputs: usize, outputs: usize) -> Job {
        let of = |tensor, shape| {
            let layout = Layout::contiguous(shape).unwrap();
            Operand { tensor, layout, element: ElementType::F32, first_token: 0 }
        };
        Job {
            x: of(Tensor::Inputs, [2, tokens, 1, inputs]),
            weight: of(Tensor::Weight, [1, outputs, 1, inputs]),
            bias: Some(of(Tensor::WeightBias, [1, 1, 1, outputs])),
            y: of(Tensor::Output, [2, tokens, 4, outputs / 4]),
        }
    }

    #[test]
    fn pieces_keep_to_the_limits_and_are_no_more_than_needed() -> Result<()> {
        let job = job(100, 64, 256);
        assert_eq!(job.steps(Kernel::Tiles, Limits::LOWEST)?.len(), 1);
        // 50 KiB of inputs, 64 KiB of weights and 200 KiB of outputs.
        let small = Limits { binding: 40 << 10, ..Limits::LOWEST };
        let steps = job.steps(Kernel::Tiles, small)?;
        assert_eq!(steps.len(), 8 * 2, "tokens by outputs");
        steps.iter().try_for_each(|step| step.check(small))?;
        let few = Limits { groups: 3, ..Limits::LOWEST };
        let steps = job.steps(Kernel::Dots { software: true, four_tokens: true }, few)?;
        steps.iter().try_for_each(|step| step.check(few))?;
        assert!(job.steps(Kernel::Rows, Limits { binding: 200, ..Limits::LOWEST }).is_err(), "an output's weights");
        Ok(())
    }

    #[test]
    fn inputs_are_as_many_as_loops_are_good_for() {
        let long = job(1, MOST_INPUTS + 1, 4);
        let refused = long.steps(Kernel::Tiles, Limits::LOWEST);
        assert!(refused.is_err_and(|e| e.kind() == crate::ErrorKind::Tensor && e.argument() == "x"));
        assert!(long.steps(Kernel::Dots { software: true, four_tokens: false }, Limits::LOWEST).is_ok());
        assert!(job(1, MOST_SHARED_INPUTS + 1, 4).steps(Kernel::Rows, Limits::LOWEST).is_err());
    }

    #[test]
    fn words_of_four_are_taken_where_all_tensors_lie_in_them() -> Result<()> {
        let word = |job: Job| Ok(job.steps(Kernel::Tiles, Limits::LOWEST)?[0].word);
        assert_eq!(word(job(3, 8, 32))?, 4);
        assert_eq!(word(job(3, 6, 32))?, 1);
        let all = job(3, 8, 32);
        let shifted = Operand { layout: all.weight.layout.offset_by(2)?, ..all.weight };
        assert_eq!(word(Job { weight: shifted, ..all })?, 1);
        Ok::<_, Error>(())
    }
}
