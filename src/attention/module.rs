//! A layer of self-attention on the device: projections, rotation, attention and the output's projection.

use super::operation::Operation;
use super::self_attention::{Layer, SelfAttentionShape};
use super::{Attention, Fused, Linear, Projection, SelfAttention, Unfused};
use crate::gpu::{Gpu, Prepared, View};
use crate::kernels::plan::expect_scratch;
use crate::kernels::step::Tensor;
use crate::rope::{Positions, Rope, Rotate};
use crate::{ElementType, Error, Layout, Result};

/// A layer of self-attention on the device, from inputs to outputs: of a prompt, whose tokens attend to each other. A layer
/// with a cache of keys and values is made of [`Projection`], `Rotate` and [`Fused`].
///
/// Queries, keys and values are made in f32, whatever inputs, weights and outputs are stored as; attention is [`Fused`]
/// unless the [`Unfused`] form is asked for.
///
/// ```no_run
/// use phasor::attention::{Module, SelfAttention, SelfAttentionWeights};
/// use phasor::{Gpu, Positions, Rope, View};
/// # use std::collections::HashMap;
/// # fn engine(gpu: Gpu, rope: Rope, layer_0: HashMap<String, View>, inputs: View, output: View,
/// # pass: &mut wgpu::ComputePass<'_>) -> phasor::Result<()> {
/// let weights = SelfAttentionWeights::from_state_dict(|name| layer_0.get(name).cloned())?;
/// let layer = SelfAttention::new(&inputs, &weights, 9, 3).attend(|attention| attention.causal());
/// let prepared = Module::new(&layer, &output).rotate(&rope, Positions::Start(0)).prepare(&gpu)?;
/// prepared.record(pass);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Module {
    layer: SelfAttention<View>,
    output: View,
    rotation: Option<(Rope, Positions)>,
    unfused: bool,
    scratch: Option<ModuleScratch<View>>,
}

/// The memory between a module's kernels, or how much of it: three buffers, since a dispatch may not read and write the
/// same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModuleScratch<T> {
    /// Queries, keys and values.
    pub projected: T,
    /// What queries find.
    pub attended: T,
    /// What lies between the kernels of attention itself.
    pub attention: T,
}

/// The tensors between a layer's inputs and its outputs.
#[derive(Debug, Clone)]
struct Between<T> {
    q: T,
    k: T,
    v: T,
    /// Queries before the rotation, where they are needed.
    unrotated_q: Option<T>,
    attended: T,
}

impl Module {
    /// What to compute, and where `[batch, tokens, any heads, channels]` go, whose channels in all heads are the outputs
    /// of the last projection.
    pub fn new(layer: &SelfAttention<View>, output: &View) -> Self {
        Self { layer: layer.clone(), output: output.clone(), rotation: None, unfused: false, scratch: None }
    }

    /// Rotates queries and keys in memory, before they meet: at any positions, with several axes too. Without it they
    /// stay as they are projected (NoPE), unless [`Attention::rotate`] turns them on their way into attention.
    pub fn rotate(mut self, rope: &Rope, positions: Positions) -> Self {
        self.rotation = Some((rope.clone(), positions));
        self
    }

    /// Attention with all logits in memory: to read, and to check the fused form with.
    pub fn unfused(mut self) -> Self {
        self.unfused = true;
        self
    }

    /// Memory for what lies between the kernels: f32 views `[1, 1, 1, n]` without gaps, with as many elements as
    /// [`Module::scratch_elements`] says, each in a buffer of its own. They may serve other operations that are recorded
    /// before or after. Without them, preparing makes buffers.
    pub fn scratch(mut self, scratch: &ModuleScratch<View>) -> Self {
        self.scratch = Some(scratch.clone());
        self
    }

    /// How many f32 elements of scratch memory this takes on a device: queries, keys and values, what queries find, and
    /// what attention takes ([`Fused::scratch_elements`]).
    ///
    /// # Errors
    /// As [`Module::prepare`], but for buffers.
    pub fn scratch_elements(&self, gpu: &Gpu) -> Result<ModuleScratch<usize>> {
        let shape = self.layer.shape()?;
        let (layouts, projected) = self.layouts(&shape, 0, 0)?;
        let between = layouts.map(|layout| self.layer.inputs.planned(layout));
        let attention = match self.attend(&between) {
            Attend::Fused(fused) => fused.scratch_elements(gpu)?,
            Attend::Unfused(unfused) => unfused.scratch_elements(gpu)?,
        };
        // Wherever in their buffers they begin, words of four do so at a multiple of four.
        Ok(ModuleScratch {
            projected: projected + WORD - 1,
            attended: layouts.attended.span().end + WORD - 1,
            attention,
        })
    }

    /// Checks the request, finds pipelines and makes bind groups.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) for numbers of heads that do not go together;
    /// [`Tensor`](crate::ErrorKind::Tensor) for shapes and element types that do not, or too many inputs or keys;
    /// [`Overlap`](crate::ErrorKind::Overlap) where a written view meets another, [`Usage`](crate::ErrorKind::Usage) for a
    /// buffer without `STORAGE`, [`Position`](crate::ErrorKind::Position) as [`Rope::prepare`] has it,
    /// [`Limit`](crate::ErrorKind::Limit) where not even one token fits into the device's limits,
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory) if there is no room for scratch memory.
    pub fn prepare(&self, gpu: &Gpu) -> Result<Prepared> {
        let shape = self.layer.shape()?;
        if self.rotation.is_some() && self.layer.rotates() {
            let may_be = "either that or Attention::rotate: together they would turn queries and keys twice";
            return Err(Error::setting("rotate", "given beside a rotation on the way into attention", may_be));
        }
        self.layer.inputs.expect_floats("inputs")?;
        let scratch = match &self.scratch {
            Some(scratch) => scratch.clone(),
            None => self.scratch_elements(gpu)?.allocate(gpu)?,
        };
        let between = self.between(&shape, &scratch)?;
        self.check_buffers(&scratch)?;
        self.prepare_over(gpu, &between, &scratch).map_err(|error| {
            let given = self.given();
            let given = given.iter().map(|(name, view)| (name.as_str(), view));
            gpu.blame(error, given.chain(scratch.named()))
        })
    }

    /// Prepares its parts, over these tensors between them.
    fn prepare_over(&self, gpu: &Gpu, between: &Between<View>, scratch: &ModuleScratch<View>) -> Result<Prepared> {
        let inputs = &self.layer.inputs;
        let weights = &self.layer.weights;
        let project = |layer: Layer, x: &View, Linear { weight, bias }: &Linear<View>, to: &View| {
            let projection = Projection::new(x, weight, to).of_layer(layer);
            bias.iter().fold(projection, Projection::bias).prepare(gpu)
        };
        let prepared =
            project(Layer::QUERY, inputs, &weights.query, between.unrotated_q.as_ref().unwrap_or(&between.q))?
                .then(project(Layer::KEY, inputs, &weights.key, &between.k)?)
                .then(project(Layer::VALUE, inputs, &weights.value, &between.v)?)
                .then(self.prepare_rotation(between)?)
                .then(match self.attend(between) {
                    Attend::Fused(fused) => fused.scratch(&scratch.attention).prepare(gpu)?,
                    Attend::Unfused(unfused) => unfused.scratch(&scratch.attention).prepare(gpu)?,
                });
        Ok(prepared.then(project(Layer::OUTPUT, &between.attended, &weights.output, &self.output)?))
    }

    fn prepare_rotation(&self, between: &Between<View>) -> Result<Prepared> {
        let Some((rope, positions)) = &self.rotation else { return Ok(Prepared::nothing()) };
        let from = between.unrotated_q.as_ref().unwrap_or(&between.q);
        rope.prepare(&Rotate::into(from, &between.q).and_in_place(&between.k).positions(positions.clone()))
    }

    fn attention(&self, between: &Between<View>) -> Attention<View> {
        // Where queries turn on their way into attention, or not at all, they are unrotated in memory.
        let contextual_query = match &self.rotation {
            Some(_) => between.unrotated_q.as_ref(),
            None => self.layer.wants_query_before_rotation().then_some(&between.q),
        };
        self.layer.attention(&between.q, &between.k, &between.v, contextual_query)
    }

    fn attend(&self, between: &Between<View>) -> Attend {
        let attention = self.attention(between);
        if self.unfused {
            Attend::Unfused(Unfused::new(&attention, &between.attended))
        } else {
            Attend::Fused(Fused::new(&attention, &between.attended))
        }
    }

    /// Where everything lies in scratch memory that begins at these elements of its buffers, and where the projected
    /// tensors end.
    fn layouts(
        &self,
        shape: &SelfAttentionShape,
        projected: usize,
        attended: usize,
    ) -> Result<(Between<Layout>, usize)> {
        let mut end = projected;
        let mut next = |shape| {
            let layout = in_words(shape, end)?;
            end = layout.span().end;
            Ok::<_, Error>(layout)
        };
        let between = Between {
            q: next(shape.q)?,
            k: next(shape.k)?,
            v: next(shape.v)?,
            unrotated_q: match self.rotation {
                Some(_) if shape.contextual_query => Some(next(shape.q)?),
                _ => None,
            },
            attended: in_words(shape.attended, attended)?,
        };
        Ok((between, end))
    }

    fn between(&self, shape: &SelfAttentionShape, scratch: &ModuleScratch<View>) -> Result<Between<View>> {
        let ModuleScratch { projected, attended, .. } = scratch;
        let (layouts, end) = self.layouts(shape, projected.layout().offset(), attended.layout().offset())?;
        expect_scratch("scratch.projected", projected, end)?;
        expect_scratch("scratch.attended", attended, layouts.attended.span().end)?;
        let view = |scratch: &View, layout| View::new(scratch.buffer(), ElementType::F32, layout);
        Ok(Between {
            q: view(projected, layouts.q)?,
            k: view(projected, layouts.k)?,
            v: view(projected, layouts.v)?,
            unrotated_q: layouts.unrotated_q.map(|layout| view(projected, layout)).transpose()?,
            attended: view(attended, layouts.attended)?,
        })
    }

    /// All views but scratch memory, with their arguments' names.
    fn given(&self) -> Vec<(String, View)> {
        let settings =
            Operation::new(&self.layer.attention(&self.output, &self.output, &self.output, None), &self.output);
        let settings = settings.read().into_iter();
        let settings = settings.filter(|(tensor, ..)| !matches!(tensor, Tensor::Query | Tensor::Keys | Tensor::Values));
        let positions = self.rotation.iter().filter_map(|(_, positions)| Some(("positions".into(), positions.view()?)));
        [("inputs".into(), &self.layer.inputs), ("output".into(), &self.output)]
            .into_iter()
            .chain(self.weights())
            .chain(settings.map(|(_, name, view)| (name.into(), view)))
            .chain(positions)
            .map(|(name, view)| (name, view.clone()))
            .collect()
    }

    /// Refuses scratch memory in the buffer of anything else, and outputs on top of what is read but for the inputs.
    fn check_buffers(&self, scratch: &ModuleScratch<View>) -> Result<()> {
        let given = self.given();
        // A module that is recorded again must find what it has read as it was; inputs alone may become outputs.
        for (name, view) in given.iter().filter(|(name, _)| !["inputs", "output"].contains(&name.as_str())) {
            self.output.expect_apart("output", view, name)?;
        }
        for (name, view) in scratch.named() {
            given.iter().try_for_each(|(other, given)| view.expect_other_buffer(name, given, other))?;
        }
        let ModuleScratch { projected, attended, attention } = scratch;
        attended.expect_other_buffer("scratch.attended", projected, "scratch.projected")?;
        attention.expect_other_buffer("scratch.attention", projected, "scratch.projected")?;
        attention.expect_other_buffer("scratch.attention", attended, "scratch.attended")
    }

    fn weights(&self) -> Vec<(String, &View)> {
        let weights = &self.layer.weights;
        let layers = [
            (Layer::QUERY, &weights.query),
            (Layer::KEY, &weights.key),
            (Layer::VALUE, &weights.value),
            (Layer::OUTPUT, &weights.output),
        ];
        layers
            .into_iter()
            .flat_map(|(layer, Linear { weight, bias })| {
                [(layer.weight(), weight)].into_iter().chain(bias.iter().map(move |bias| (layer.bias(), bias)))
            })
            .collect()
    }
}

/// The two forms of attention.
enum Attend {
    Fused(Fused),
    Unfused(Unfused),
}

impl ModuleScratch<View> {
    fn named(&self) -> [(&'static str, &View); 3] {
        [
            ("scratch.projected", &self.projected),
            ("scratch.attended", &self.attended),
            ("scratch.attention", &self.attention),
        ]
    }
}

impl ModuleScratch<usize> {
    /// Buffers of so many elements.
    fn allocate(&self, gpu: &Gpu) -> Result<ModuleScratch<View>> {
        let zeros = |elements| gpu.zeros(ElementType::F32, [1, 1, 1, elements]);
        Ok(ModuleScratch {
            projected: zeros(self.projected)?,
            attended: zeros(self.attended)?,
            attention: zeros(self.attention)?,
        })
    }
}

impl<T> Between<T> {
    fn map<U>(&self, over: impl Fn(T) -> U) -> Between<U>
    where
        T: Copy,
    {
        Between {
            q: over(self.q),
            k: over(self.k),
            v: over(self.v),
            unrotated_q: self.unrotated_q.map(&over),
            attended: over(self.attended),
        }
    }
}

/// Channels that kernels take at a time.
const WORD: usize = 4;

/// A tensor without gaps that begins at this element, or as few after it as makes words of four.
fn in_words(shape: [usize; 4], first: usize) -> Result<Layout> {
    Layout::contiguous(shape)?.offset_by(first.checked_next_multiple_of(WORD).unwrap_or(usize::MAX))
}
