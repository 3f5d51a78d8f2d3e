//! Contextual position encoding on the device, in its readable form: a kernel for each part of the formula.

use crate::Result;
use crate::attention::{check_position_embeddings, expect};
use crate::gpu::{Gpu, Prepared, View};
use crate::kernels::grid::Limits;
use crate::kernels::plan::Plan;
use crate::kernels::region::Region;
use crate::kernels::step::{Operand, Tensor, expect_keys};
use crate::kernels::{cope_interpolate, cope_logits, cope_positions};

/// The bias that contextual position encoding (Golovneva et al., 2024) adds to attention's logits.
///
/// `output[t, s] = interpolation of (query[t] · E) at min(sum over u >= s of sigmoid(logits[t, u]), positions - 1)`, with
/// a gate of 0 for logits at or below [`MASKED`](crate::attention::MASKED).
///
/// It takes a number for each pair of a query and a key, as logits do: for reading, for checking, and for engines that
/// have their own attention and its logits.
///
/// ```no_run
/// use phasor::{ContextualBias, Gpu, View};
/// # fn engine(gpu: Gpu, query: View, logits: View, embeddings: View, bias: View, pass: &mut wgpu::ComputePass<'_>)
/// # -> phasor::Result<()> {
/// let contextual = ContextualBias::new(&query, &logits, &embeddings, &bias).prepare(&gpu)?;
/// contextual.record(pass);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ContextualBias {
    query: View,
    logits: View,
    position_embeddings: View,
    output: View,
    scale: f64,
    scratch: Option<View>,
}

impl ContextualBias {
    /// Queries `[batch, tokens, heads, channels]` and logits `[batch, tokens, heads, keys]` to a bias in the logits'
    /// shape; `[batch, heads, tokens, keys]` in memory is [`Layout::heads_first`](crate::Layout::heads_first).
    /// Position embeddings are `[1, channels, 1, positions]` for all heads, which is a `[channels, positions]` matrix, or
    /// `[1, channels, heads, positions]`. The output may be the logits' own view.
    pub fn new(query: &View, logits: &View, position_embeddings: &View, output: &View) -> Self {
        Self {
            query: query.clone(),
            logits: logits.clone(),
            position_embeddings: position_embeddings.clone(),
            output: output.clone(),
            scale: 1.0,
            scratch: None,
        }
    }

    /// What the bias is multiplied with: 1 if this is not said, `1 / sqrt(channels)` in the paper's published code.
    pub fn scale(mut self, scale: f64) -> Self {
        self.scale = scale;
        self
    }

    /// Memory for what lies between the kernels: an f32 view `[1, 1, 1, n]` without gaps, with `n` as
    /// [`ContextualBias::scratch_elements`] says, in a buffer of its own. It may serve other operations that are recorded
    /// before or after. Without it, preparing makes a buffer.
    pub fn scratch(mut self, scratch: &View) -> Self {
        self.scratch = Some(scratch.clone());
        self
    }

    /// How many f32 elements of scratch memory this takes on a device: about a position for each logit and a number for
    /// each query and position, of as much of the work as the device's limits let one dispatch do.
    ///
    /// # Errors
    /// As [`ContextualBias::prepare`], but for buffers.
    pub fn scratch_elements(&self, gpu: &Gpu) -> Result<usize> {
        Ok(self.plan(gpu, 0)?.scratch_elements())
    }

    /// Checks the request, finds pipelines and makes bind groups.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) for shapes and element types that do not go together, or too many keys;
    /// [`Overlap`](crate::ErrorKind::Overlap) where a written view meets another,
    /// [`Usage`](crate::ErrorKind::Usage) for a buffer without `STORAGE`, [`Limit`](crate::ErrorKind::Limit) where
    /// not even one token fits into the device's limits, [`OutOfMemory`](crate::ErrorKind::OutOfMemory) if there is no
    /// room for scratch memory.
    pub fn prepare(&self, gpu: &Gpu) -> Result<Prepared> {
        self.check()?;
        if self.output.layout().is_empty() {
            return Ok(Prepared::nothing());
        }
        let plan = self.plan(gpu, self.scratch.as_ref().map_or(0, |scratch| scratch.layout().offset()))?;
        let scratch = match &self.scratch {
            Some(scratch) => self.check_scratch(&plan, scratch).map(|()| scratch.clone())?,
            None => plan.allocate(gpu)?,
        };
        let prepared = plan.prepare(gpu, &|tensor| match tensor {
            Tensor::ContextualQuery => self.query.buffer(),
            Tensor::PositionEmbeddings => self.position_embeddings.buffer(),
            Tensor::Logits => self.logits.buffer(),
            Tensor::Output => self.output.buffer(),
            _ => scratch.buffer(),
        });
        let named = [
            ("query", &self.query),
            ("logits", &self.logits),
            ("position_embeddings", &self.position_embeddings),
            ("output", &self.output),
            ("scratch", &scratch),
        ];
        prepared.map_err(|error| gpu.blame(error, named))
    }

    fn plan(&self, gpu: &Gpu, first: usize) -> Result<Plan> {
        let positions = self.check_shapes()?;
        let [batch, tokens, heads, keys] = self.logits.shape();
        let whole = Region { batch: 0..batch, tokens: 0..tokens, heads: 0..heads };
        Plan::new(whole, Limits::from(gpu.limits()), first, &|region, scratch| {
            let logits = Operand::of(Tensor::Logits, &self.logits, |all| region.of(all))?;
            let query = Operand::of(Tensor::ContextualQuery, &self.query, |all| region.of(all))?;
            let output = Operand::of(Tensor::Output, &self.output, |all| region.of(all))?;
            let embeddings =
                Operand::of(Tensor::PositionEmbeddings, &self.position_embeddings, |all| region.of_embeddings(all))?;
            let at = scratch.take(region.shape(keys))?;
            let z = scratch.take(region.shape(positions))?;
            Ok(vec![
                cope_positions::step(logits, at, None, None, positions),
                cope_logits::step(query, embeddings, z),
                cope_interpolate::step(at, z, output, cope_interpolate::Into::Place, self.scale),
            ])
        })
    }

    /// The number of positions, if shapes go together.
    fn check_shapes(&self) -> Result<usize> {
        let [batch, tokens, heads, channels] = self.query.shape();
        let [.., keys] = self.logits.shape();
        let positions = check_position_embeddings(&self.position_embeddings, heads, channels)?;
        expect("logits", &self.logits, [batch, tokens, heads, keys])?;
        expect("output", &self.output, [batch, tokens, heads, keys])?;
        expect_keys("logits", keys)?;
        Ok(positions)
    }

    fn check(&self) -> Result<()> {
        self.check_shapes()?;
        self.query.expect_floats("query")?;
        self.logits.expect_floats("logits")?;
        self.position_embeddings.expect_floats("position_embeddings")?;
        self.output.expect_written("output")?;
        // Logits are read before the bias is written, element by element.
        let same = |view: &View| (view.buffer().clone(), view.layout(), view.element());
        let in_place = same(&self.output) == same(&self.logits);
        if !in_place {
            self.output.expect_apart("output", &self.logits, "logits")?;
        }
        self.output.expect_apart("output", &self.query, "query")?;
        self.output.expect_apart("output", &self.position_embeddings, "position_embeddings")
    }

    fn check_scratch(&self, plan: &Plan, scratch: &View) -> Result<()> {
        plan.expect_scratch(scratch)?;
        scratch.expect_other_buffer("scratch", &self.query, "query")?;
        scratch.expect_other_buffer("scratch", &self.position_embeddings, "position_embeddings")?;
        // Bindings begin at multiples of an alignment, so that those of neighbours may meet.
        scratch.expect_other_buffer("scratch", &self.logits, "logits")?;
        scratch.expect_other_buffer("scratch", &self.output, "output")
    }
}
