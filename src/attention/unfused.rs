//! Attention as one reads it: a kernel for each part of the formula, and all logits in memory between them.

use super::{Attention, AttentionShape, ContextualPe, Gates, expect};
use crate::gpu::{Gpu, Prepared, View};
use crate::kernels::attention_scores::Job;
use crate::kernels::grid::Limits;
use crate::kernels::plan::{Plan, Scratch};
use crate::kernels::region::Region;
use crate::kernels::step::{Operand, Step, Tensor, expect_keys};
use crate::kernels::{attention_values, cope_interpolate, cope_logits, cope_positions, softmax};
use crate::{ElementType, Error, Result};

/// Attention on the device with its logits in memory: scores, contextual bias, softmax and the weighted sum of values,
/// one after the other.
///
/// The form to read and to check other forms with. It takes memory for each pair of a query and a key.
///
/// ```no_run
/// use phasor::attention::{Attention, ContextualPe, Unfused};
/// use phasor::{Gpu, View};
/// # fn engine(gpu: Gpu, q: View, k: View, v: View, embeddings: View, out: View, pass: &mut wgpu::ComputePass<'_>)
/// # -> phasor::Result<()> {
/// let attention = Attention::new(&q, &k, &v).causal().cope(ContextualPe::new(&embeddings));
/// let prepared = Unfused::new(&attention, &out).prepare(&gpu)?;
/// prepared.record(pass);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Unfused {
    attention: Attention<View>,
    output: View,
    lse: Option<View>,
    gate_sum: Option<View>,
    scratch: Option<View>,
}

impl Unfused {
    /// What to attend to, and where `[batch, tokens, heads, value channels]` go.
    pub fn new(attention: &Attention<View>, output: &View) -> Self {
        Self { attention: attention.clone(), output: output.clone(), lse: None, gate_sum: None, scratch: None }
    }

    /// Where the log-sum-exp of each query's logits goes, `[batch, tokens, heads, 1]`.
    pub fn lse(mut self, lse: &View) -> Self {
        self.lse = Some(lse.clone());
        self
    }

    /// Where the sum of each query's gates goes, that of keys to the right included, as its whole part and its fraction:
    /// `[batch, tokens, heads, 2]`. Only with contextual position encoding.
    pub fn gate_sum(mut self, sum: &View) -> Self {
        self.gate_sum = Some(sum.clone());
        self
    }

    /// Memory for what lies between the kernels: an f32 view `[1, 1, 1, n]` without gaps, with `n` as
    /// [`Unfused::scratch_elements`] says, in a buffer of its own. It may serve other operations that are recorded before
    /// or after. Without it, preparing makes a buffer.
    pub fn scratch(mut self, scratch: &View) -> Self {
        self.scratch = Some(scratch.clone());
        self
    }

    /// How many f32 elements of scratch memory this takes on a device: one to three for each pair of a query and a key,
    /// of as much of the work as the device's limits let one dispatch do.
    ///
    /// # Errors
    /// As [`Unfused::prepare`], but for buffers.
    pub fn scratch_elements(&self, gpu: &Gpu) -> Result<usize> {
        Ok(self.plan(gpu, 0)?.scratch_elements())
    }

    /// Checks the request, finds pipelines and makes bind groups.
    ///
    /// # Errors
    /// [`Error::Tensor`] for shapes and element types that do not go together, or too many keys; [`Error::Overlap`] where
    /// a written view meets another, [`Error::Usage`] for a buffer without `STORAGE`, [`Error::Limit`] where not even one
    /// token fits into the device's limits, [`Error::OutOfMemory`] if there is no room for scratch memory.
    pub fn prepare(&self, gpu: &Gpu) -> Result<Prepared> {
        let shape = self.check_shapes()?;
        self.check_buffers()?;
        if shape.batch * shape.tokens * shape.heads == 0 {
            return Ok(Prepared::nothing());
        }
        let plan = self.plan(gpu, self.scratch.as_ref().map_or(0, |scratch| scratch.layout().offset()))?;
        let scratch = match &self.scratch {
            Some(scratch) => self.check_scratch(&plan, scratch).map(|()| scratch.clone())?,
            None => plan.allocate(gpu)?,
        };
        let given: Vec<_> = self.given().into_iter().map(|(tensor, _, view)| (tensor, view)).collect();
        plan.prepare(gpu, |tensor| {
            given.iter().find(|(given, _)| *given == tensor).map_or(scratch.buffer(), |(_, view)| view.buffer())
        })
    }

    fn plan(&self, gpu: &Gpu, first: usize) -> Result<Plan> {
        let shape = self.check_shapes()?;
        let whole = Region { batch: 0..shape.batch, tokens: 0..shape.tokens, heads: 0..shape.heads };
        Plan::new(whole, Limits::from(gpu.limits()), first, |region, scratch| self.steps(&shape, region, scratch))
    }

    /// The formula, part by part.
    fn steps(&self, shape: &AttentionShape, region: &Region, scratch: &mut Scratch) -> Result<Vec<Step>> {
        let logits = scratch.take(region.shape(shape.keys))?;
        let scores = self.scores(shape, region, (Tensor::Keys, &self.attention.k), logits)?;
        let mut steps = vec![scores.step()];
        if let Some(cope) = &self.attention.cope {
            steps.extend(self.contextual(cope, shape, region, &scores, scratch)?);
        }
        let lse = of(region, Tensor::Lse, self.lse.as_ref())?;
        steps.push(softmax::step(logits, lse));
        let v = Operand::of(Tensor::Values, &self.attention.v, |all| region.of_keys(all, shape.group()))?;
        let output = Operand::of(Tensor::Output, &self.output, |all| region.of(all))?;
        steps.extend(attention_values::steps(logits, v, output, scores.first_head, scores.group));
        Ok(steps)
    }

    fn scores(
        &self,
        shape: &AttentionShape,
        region: &Region,
        (tensor, keys): (Tensor, &View),
        logits: Operand,
    ) -> Result<Job> {
        let group = shape.group();
        Ok(Job {
            q: Operand::of(Tensor::Query, &self.attention.q, |all| region.of(all))?,
            k: Operand::of(tensor, keys, |all| region.of_keys(all, group))?,
            logits,
            keep: of(region, Tensor::Keep, self.attention.keep.as_ref())?,
            bias: of(region, Tensor::Bias, self.attention.bias.as_ref())?,
            bias_hides_only: false,
            key_ranges: of(region, Tensor::KeyRanges, self.attention.key_ranges.as_ref())?,
            visible: self.attention.mask.visible_keys(region.tokens.start, shape.tokens, shape.keys),
            first_head: region.heads.start % group,
            group,
            scale: self.attention.scale_or_default(),
        })
    }

    /// What gates are made from, positions, `q · E`, and the bias on top of the logits.
    fn contextual(
        &self,
        cope: &ContextualPe<View>,
        shape: &AttentionShape,
        region: &Region,
        scores: &Job,
        scratch: &mut Scratch,
    ) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        let bias_hides_only = self.attention.bias.is_some() && !cope.gates_see_bias;
        let gate_keys = match &cope.gates {
            Gates::Logits => (Tensor::Keys, &self.attention.k),
            Gates::Keys(keys) => (Tensor::GateKeys, keys),
            Gates::Values => (Tensor::Values, &self.attention.v),
        };
        let gate_logits = if gate_keys.0 == Tensor::Keys && !bias_hides_only {
            scores.logits
        } else {
            let gate_logits = scratch.take(region.shape(shape.keys))?;
            let gate_scores = self.scores(shape, region, gate_keys, gate_logits)?;
            steps.push(Job { bias_hides_only, ..gate_scores }.step());
            gate_logits
        };
        let (query_tensor, query) = match &cope.query {
            Some(query) => (Tensor::ContextualQuery, query),
            None => (Tensor::Query, &self.attention.q),
        };
        let query = Operand::of(query_tensor, query, |all| region.of(all))?;
        let embeddings =
            Operand::of(Tensor::PositionEmbeddings, &cope.position_embeddings, |all| region.of_embeddings(all))?;
        let gate_sum = of(region, Tensor::GateSum, cope.gate_sum.as_ref())?;
        let gate_sum_out = of(region, Tensor::GateSumOut, self.gate_sum.as_ref())?;
        let at = scratch.take(region.shape(shape.keys))?;
        let z = scratch.take(region.shape(shape.positions))?;
        steps.push(cope_positions::step(gate_logits, at, gate_sum, gate_sum_out, shape.positions));
        steps.push(cope_logits::step(query, embeddings, z));
        steps.push(cope_interpolate::step(at, z, scores.logits, cope_interpolate::Into::Sum, cope.bias_scale));
        Ok(steps)
    }

    /// All views, with their arguments' names.
    fn given(&self) -> Vec<(Tensor, &'static str, &View)> {
        self.read().into_iter().chain(self.written()).collect()
    }

    fn read(&self) -> Vec<(Tensor, &'static str, &View)> {
        let Attention { q, k, v, keep, bias, key_ranges, cope, .. } = &self.attention;
        let mut read = vec![(Tensor::Query, "q", q), (Tensor::Keys, "k", k), (Tensor::Values, "v", v)];
        read.extend(keep.iter().map(|view| (Tensor::Keep, "keep", view)));
        read.extend(bias.iter().map(|view| (Tensor::Bias, "bias", view)));
        read.extend(key_ranges.iter().map(|view| (Tensor::KeyRanges, "key_ranges", view)));
        if let Some(cope) = cope {
            read.push((Tensor::PositionEmbeddings, "position_embeddings", &cope.position_embeddings));
            read.extend(cope.query.iter().map(|view| (Tensor::ContextualQuery, "cope.query", view)));
            read.extend(cope.gate_sum.iter().map(|view| (Tensor::GateSum, "cope.gate_sum", view)));
            if let Gates::Keys(keys) = &cope.gates {
                read.push((Tensor::GateKeys, "cope.gates", keys));
            }
        }
        read
    }

    fn written(&self) -> Vec<(Tensor, &'static str, &View)> {
        let mut written = vec![(Tensor::Output, "output", &self.output)];
        written.extend(self.lse.iter().map(|view| (Tensor::Lse, "lse", view)));
        written.extend(self.gate_sum.iter().map(|view| (Tensor::GateSumOut, "gate_sum", view)));
        written
    }

    fn check_shapes(&self) -> Result<AttentionShape> {
        let shape = self.attention.shape()?;
        let rows = [shape.batch, shape.tokens, shape.heads];
        let of = |channels| [rows[0], rows[1], rows[2], channels];
        expect("output", &self.output, of(shape.value_channels))?;
        if let Some(lse) = &self.lse {
            expect("lse", lse, of(1))?;
        }
        if let Some(sum) = &self.gate_sum {
            expect("gate_sum", sum, of(2))?;
            if self.attention.cope.is_none() {
                return Err(Error::Tensor {
                    argument: "gate_sum".into(),
                    was: "given without contextual position encoding".into(),
                    may_be: "left out".into(),
                });
            }
        }
        expect_keys("k", shape.keys)?;
        Ok(shape)
    }

    fn check_buffers(&self) -> Result<()> {
        for (tensor, name, view) in self.read() {
            match tensor {
                Tensor::Keep | Tensor::KeyRanges => view.expect_element(name, ElementType::I32)?,
                Tensor::GateSum => view.expect_element(name, ElementType::F32)?,
                _ => view.expect_floats(name)?,
            }
            view.expect_usage(name, wgpu::BufferUsages::STORAGE)?;
        }
        let written = self.written();
        for (i, (tensor, name, view)) in written.iter().enumerate() {
            view.expect_written(name)?;
            // Statistics are exact whatever the output is stored as.
            if *tensor != Tensor::Output {
                view.expect_element(name, ElementType::F32)?;
            }
            for (_, other, read) in self.read() {
                view.expect_other_buffer(name, read, other)?;
            }
            for (_, other, also_written) in &written[i + 1..] {
                view.expect_apart(name, also_written, other)?;
            }
        }
        Ok(())
    }

    fn check_scratch(&self, plan: &Plan, scratch: &View) -> Result<()> {
        plan.expect_scratch(scratch)?;
        self.given().into_iter().try_for_each(|(_, name, view)| scratch.expect_other_buffer("scratch", view, name))
    }
}

/// A region of a tensor that may be absent.
fn of(region: &Region, tensor: Tensor, view: Option<&View>) -> Result<Option<Operand>> {
    view.map(|view| Operand::of(tensor, view, |all| region.of(all))).transpose()
}
