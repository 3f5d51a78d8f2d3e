//! One dispatch, told without buffers: its shader, the tensors that it binds, its numbers and its grid.

use super::grid::Limits;
use super::place::Place;
use crate::gpu::{Access, Dispatch, Shader, Slot, View};
use crate::{ElementType, Error, Layout, Result};
use std::ops::Range;

/// The tensors of contextual encoding, of attention and of its projections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tensor {
    Query,
    Keys,
    Values,
    Keep,
    Bias,
    KeyRanges,
    ContextualQuery,
    PositionEmbeddings,
    GateKeys,
    GateSum,
    GateSumOut,
    Logits,
    Output,
    Lse,
    Part,
    PartLse,
    Inputs,
    Weight,
    WeightBias,
    /// Queries or keys in the scratch buffer, turned.
    Turned,
    /// Whatever else lies in the scratch buffer.
    Scratch,
}

/// A tensor, where it lies, and of what elements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operand {
    pub tensor: Tensor,
    pub layout: Layout,
    pub element: ElementType,
    /// What kernels call this layout's first token: not 0 for a window of a tensor that is too large to be bound at once.
    pub first_token: usize,
}

/// A dispatch. The uniform holds the places of `operands`, in their order, and then `numbers`.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub shader: Shader,
    /// Each with its binding's number; `None` for one that this variant lacks.
    pub operands: Vec<(u32, Option<Operand>)>,
    /// Channels in a word of the tensors that are read and written head by head: 1 or 4.
    pub word: usize,
    pub numbers: Vec<u8>,
    pub groups: [usize; 3],
}

impl Step {
    /// Refuses what the device's limits do not allow.
    pub(crate) fn check(&self, limits: Limits) -> Result<()> {
        for (_, operand) in self.bound() {
            let bytes = limits.range([(operand.layout, operand.element)]);
            limits.expect_binding(operand.tensor.name(), bytes.end - bytes.start)?;
        }
        let most = self.groups.into_iter().max().unwrap_or_default();
        limits.expect_groups(&self.shader.name, u32::try_from(most).unwrap_or(u32::MAX))
    }

    /// The dispatch, over these buffers.
    pub(crate) fn dispatch<'a>(&self, limits: Limits, buffer: &dyn Fn(Tensor) -> &'a wgpu::Buffer) -> Dispatch<'a> {
        let range = |operand: Operand| limits.range([(operand.layout, operand.element)]);
        let word = |tensor: Tensor| if tensor.is_of_words() { self.word } else { 1 };
        let place = |operand: Operand| {
            Place::new(operand.layout, operand.element, word(operand.tensor), range(operand).start)
                .counted_from(operand.first_token)
        };
        let places: Vec<_> = self.operands.iter().map(|(_, operand)| operand.map(place).unwrap_or_default()).collect();
        let mut params: Vec<u8> = bytemuck::cast_slice(&places).to_vec();
        params.extend(&self.numbers);
        // A uniform's size is a multiple of 16 bytes.
        params.resize(params.len().next_multiple_of(16), 0);
        let slots = self.bound().map(|(index, operand)| {
            let range = range(operand);
            Slot { index, buffer: buffer(operand.tensor), offset: range.start, size: range.end - range.start }
        });
        Dispatch { params, slots: slots.collect(), groups: self.groups.map(|n| n as u32) }
    }

    fn bound(&self) -> impl Iterator<Item = (u32, Operand)> {
        self.operands.iter().filter_map(|&(index, operand)| Some((index, operand?)))
    }
}

impl Operand {
    /// A part of a view.
    pub(crate) fn of(tensor: Tensor, view: &View, part: impl Fn(Layout) -> Result<Layout>) -> Result<Self> {
        Ok(Self { tensor, layout: part(view.layout())?, element: view.element(), first_token: 0 })
    }

    /// Some of its tokens, by the numbers that they have in the whole.
    ///
    /// # Errors
    /// None for a range within its tokens.
    pub(crate) fn window(self, tokens: Range<usize>) -> Result<Self> {
        Ok(Self { layout: self.layout.tokens(tokens.clone())?, first_token: tokens.start, ..self })
    }

    /// How a kernel that only reads this declares it: what lies in the scratch buffer is writable, as all else there is.
    pub(crate) fn read_access(&self) -> Access {
        match self.tensor {
            Tensor::Turned | Tensor::Scratch => Access::ReadWrite,
            _ => Access::Read,
        }
    }
}

impl Tensor {
    /// Whether kernels may take several of its channels at a time.
    fn is_of_words(self) -> bool {
        use Tensor::{ContextualQuery, GateKeys, Inputs, Keys, Output, Query, Turned, Values, Weight};
        matches!(self, Query | Keys | Values | ContextualQuery | GateKeys | Output | Turned | Inputs | Weight)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Query => "q of one token and head",
            Self::Keys => "k of one head",
            Self::Values => "v of one head",
            Self::Keep => "keep of one token and head",
            Self::Bias => "bias of one token and head",
            Self::KeyRanges => "key_ranges",
            Self::ContextualQuery => "cope.query of one token and head",
            Self::PositionEmbeddings => "position_embeddings",
            Self::GateKeys => "cope.gates of one head",
            Self::GateSum => "cope.gate_sum of one token and head",
            Self::GateSumOut => "gate_sum of one token and head",
            Self::Logits => "logits of one token and head",
            Self::Output => "output of one token and head",
            Self::Lse => "lse of one token and head",
            Self::Part => "part of one token and head",
            Self::PartLse => "part_lse of one token and head",
            Self::Inputs => "x of one token",
            Self::Weight => "weight of one output",
            Self::WeightBias => "bias of one output",
            Self::Turned | Self::Scratch => "scratch of one token and head",
        }
    }
}

/// Workgroups for a number of invocations.
pub(crate) const WORKGROUP: u32 = 64;

/// How many workgroups this many invocations along the first dimension are.
pub(crate) fn groups_of(invocations: usize) -> usize {
    invocations.div_ceil(WORKGROUP as usize)
}

/// How many keys a row may have, so that no invocation's loops come to more than the 65,535 iterations, all loops
/// together, after which Mesa's llvmpipe silently ends them.
pub(crate) const MOST_KEYS: usize = 1 << 20;

/// Refuses rows of more keys than [`MOST_KEYS`].
pub(crate) fn expect_keys(argument: &str, keys: usize) -> Result<()> {
    if keys <= MOST_KEYS {
        return Ok(());
    }
    Err(Error::tensor(argument, format!("one of {keys} keys"), format!("one of up to {MOST_KEYS} keys at a time")))
}
