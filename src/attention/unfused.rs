//! Attention as one reads it: a kernel for each part of the formula, and all logits in memory between them.

use super::operation::{Operation, of};
use super::{Attention, AttentionShape, ContextualPe, Gates};
use crate::Result;
use crate::gpu::{Gpu, Prepared, View};
use crate::kernels::attention_scores::Job;
use crate::kernels::attention_turned::Stand;
use crate::kernels::plan::Scratch;
use crate::kernels::region::Region;
use crate::kernels::step::{Operand, Step, Tensor};
use crate::kernels::{attention_values, cope_interpolate, cope_logits, cope_positions, softmax};

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
pub struct Unfused(Operation);

impl Unfused {
    /// What to attend to, and where `[batch, tokens, heads, value channels]` go: in a buffer that holds nothing of what is
    /// attended to.
    pub fn new(attention: &Attention<View>, output: &View) -> Self {
        Self(Operation::new(attention, output))
    }

    /// Where the log-sum-exp of each query's logits goes, `[batch, tokens, heads, 1]`.
    pub fn lse(mut self, lse: &View) -> Self {
        self.0.lse = Some(lse.clone());
        self
    }

    /// Where the sum of each query's gates goes, that of keys to the right included, as its whole part and its fraction:
    /// `[batch, tokens, heads, 2]`. Only with contextual position encoding.
    pub fn gate_sum(mut self, sum: &View) -> Self {
        self.0.gate_sum = Some(sum.clone());
        self
    }

    /// Memory for what lies between the kernels: an f32 view `[1, 1, 1, n]` without gaps, with `n` as
    /// [`Unfused::scratch_elements`] says, in a buffer of its own. It may serve other operations that are recorded before
    /// or after. Without it, preparing makes a buffer.
    pub fn scratch(mut self, scratch: &View) -> Self {
        self.0.scratch = Some(scratch.clone());
        self
    }

    /// How many f32 elements of scratch memory this takes on a device: one to three for each pair of a query and a key,
    /// and with a rotation those of queries and keys, of as much of the work as the device's limits let one dispatch do.
    ///
    /// # Errors
    /// As [`Unfused::prepare`], but for buffers.
    pub fn scratch_elements(&self, gpu: &Gpu) -> Result<usize> {
        self.0.scratch_elements(gpu, &|shape, region, scratch| self.steps(shape, region, scratch))
    }

    /// Checks the request, finds pipelines and makes bind groups.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) for a scale that is not finite, [`Tensor`](crate::ErrorKind::Tensor) for
    /// shapes and element types that do not go together, or too many keys; [`Overlap`](crate::ErrorKind::Overlap) where a
    /// written view meets another, [`Usage`](crate::ErrorKind::Usage) for a buffer without `STORAGE`,
    /// [`Limit`](crate::ErrorKind::Limit) where not even one token fits into the device's limits,
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory) if there is no room for scratch memory.
    pub fn prepare(&self, gpu: &Gpu) -> Result<Prepared> {
        self.0.prepare(gpu, &|shape, region, scratch| self.steps(shape, region, scratch))
    }

    /// The formula, part by part.
    fn steps(&self, shape: &AttentionShape, region: &Region, scratch: &mut Scratch) -> Result<Vec<Step>> {
        let logits = scratch.take(region.shape(shape.keys))?;
        let (q, turn_q) = self.0.queries(shape, region, scratch)?;
        let (k, turn_k) = self.keys(shape, region, (Tensor::Keys, &self.0.attention.k), scratch)?;
        let scores = self.scores(shape, region, [q, k], logits)?;
        let mut steps: Vec<_> = turn_q.into_iter().chain(turn_k).chain([scores.step()]).collect();
        if let Some(cope) = &self.0.attention.cope {
            steps.extend(self.contextual(cope, shape, region, &scores, scratch)?);
        }
        let lse = of(region, Tensor::Lse, self.0.lse.as_ref())?;
        steps.push(softmax::step(logits, lse));
        let v = Operand::of(Tensor::Values, &self.0.attention.v, |all| region.of_keys(all, shape.group()))?;
        let output = Operand::of(Tensor::Output, &self.0.output, |all| region.of(all))?;
        steps.extend(attention_values::steps(logits, v, output, scores.first_head, scores.group));
        Ok(steps)
    }

    /// Keys of a region, or what takes their place for gates, as queries meet them: values are never turned.
    fn keys(
        &self,
        shape: &AttentionShape,
        region: &Region,
        (tensor, keys): (Tensor, &View),
        scratch: &mut Scratch,
    ) -> Result<(Operand, Option<Step>)> {
        let keys = Operand::of(tensor, keys, |all| region.of_keys(all, shape.group()))?;
        match tensor {
            Tensor::Values => Ok((keys, None)),
            _ => self.0.turned(keys, Stand::FROM_FIRST_KEY, scratch),
        }
    }

    fn scores(&self, shape: &AttentionShape, region: &Region, [q, k]: [Operand; 2], logits: Operand) -> Result<Job> {
        let group = shape.group();
        Ok(Job {
            q,
            k,
            logits,
            keep: of(region, Tensor::Keep, self.0.attention.keep.as_ref())?,
            bias: of(region, Tensor::Bias, self.0.attention.bias.as_ref())?,
            bias_hides_only: false,
            key_ranges: of(region, Tensor::KeyRanges, self.0.attention.key_ranges.as_ref())?,
            visible: self.0.attention.mask.visible_keys(region.tokens.start, shape.tokens, shape.keys),
            first_head: region.heads.start % group,
            group,
            scale: self.0.attention.scale_or_default(),
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
        let bias_hides_only = self.0.attention.bias.is_some() && !cope.gates_see_bias;
        let gate_keys = match &cope.gates {
            Gates::Logits => (Tensor::Keys, &self.0.attention.k),
            Gates::Keys(keys) => (Tensor::GateKeys, keys),
            Gates::Values => (Tensor::Values, &self.0.attention.v),
        };
        let gate_logits = if gate_keys.0 == Tensor::Keys && !bias_hides_only {
            scores.logits
        } else {
            let gate_logits = scratch.take(region.shape(shape.keys))?;
            let (gate_keys, turn) = match gate_keys.0 {
                Tensor::Keys => (scores.k, None),
                _ => self.keys(shape, region, gate_keys, scratch)?,
            };
            steps.extend(turn);
            let gate_scores = self.scores(shape, region, [scores.q, gate_keys], gate_logits)?;
            steps.push(Job { bias_hides_only, ..gate_scores }.step());
            gate_logits
        };
        let query = of(region, Tensor::ContextualQuery, cope.query.as_ref())?.unwrap_or(scores.q);
        let embeddings =
            Operand::of(Tensor::PositionEmbeddings, &cope.position_embeddings, |all| region.of_embeddings(all))?;
        let gate_sum = of(region, Tensor::GateSum, cope.gate_sum.as_ref())?;
        let gate_sum_out = of(region, Tensor::GateSumOut, self.0.gate_sum.as_ref())?;
        let at = scratch.take(region.shape(shape.keys))?;
        let z = scratch.take(region.shape(shape.positions))?;
        steps.push(cope_positions::step(gate_logits, at, gate_sum, gate_sum_out, shape.positions));
        steps.push(cope_logits::step(query, embeddings, z));
        steps.push(cope_interpolate::step(at, z, scores.logits, cope_interpolate::Into::Sum, cope.bias_scale));
        Ok(steps)
    }
}
