//! Attention in one go, without the logits in memory.

use super::operation::{Operation, of};
use super::{Attention, AttentionShape, Gates};
use crate::Result;
use crate::gpu::{Gpu, Prepared, View};
use crate::kernels::fused::{Cope, GateSource, Job};
use crate::kernels::plan::Scratch;
use crate::kernels::region::Region;
use crate::kernels::step::{Step, Tensor};
use crate::kernels::{attention_decode, attention_rows};

/// Up to this many queries the work is split over keys, so that all of the device has something to do.
const FEW_QUERIES: usize = 4;

/// Attention on the device in memory that grows with the number of tokens, not with its square, with contextual position
/// encoding or without.
///
/// ```no_run
/// use phasor::attention::{Attention, ContextualPe, Fused};
/// use phasor::{Gpu, View};
/// # fn engine(gpu: Gpu, q: View, k: View, v: View, embeddings: View, out: View, pass: &mut wgpu::ComputePass<'_>)
/// # -> phasor::Result<()> {
/// let attention = Attention::new(&q, &k, &v).causal().cope(ContextualPe::new(&embeddings));
/// let prepared = Fused::new(&attention, &out).prepare(&gpu)?;
/// prepared.record(pass);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Fused(Operation);

impl Fused {
    /// What to attend to, and where `[batch, tokens, heads, value channels]` go.
    pub fn new(attention: &Attention<View>, output: &View) -> Self {
        Self(Operation::new(attention, output))
    }

    /// Where the log-sum-exp of each query's logits goes, `[batch, tokens, heads, 1]`.
    pub fn lse(mut self, lse: &View) -> Self {
        self.0.lse = Some(lse.clone());
        self
    }

    /// Where the sum of each query's gates goes, that of keys to the right included, as its whole part and its fraction:
    /// `[batch, tokens, heads, 2]`. Only with contextual position encoding, whose gates are then counted to the last.
    pub fn gate_sum(mut self, sum: &View) -> Self {
        self.0.gate_sum = Some(sum.clone());
        self
    }

    /// Memory for what lies between the kernels: an f32 view `[1, 1, 1, n]` without gaps, with `n` as
    /// [`Fused::scratch_elements`] says, in a buffer of its own. It may serve other operations that are recorded before
    /// or after. Without it, preparing makes a buffer.
    pub fn scratch(mut self, scratch: &View) -> Self {
        self.0.scratch = Some(scratch.clone());
        self
    }

    /// How many f32 elements of scratch memory this takes on a device: with contextual position encoding as many as there
    /// are queries times positions, without it hardly any.
    ///
    /// # Errors
    /// As [`Fused::prepare`], but for buffers.
    pub fn scratch_elements(&self, gpu: &Gpu) -> Result<usize> {
        self.0.scratch_elements(gpu, |shape, region, scratch| self.steps(gpu, shape, region, scratch))
    }

    /// Checks the request, finds pipelines and makes bind groups.
    ///
    /// # Errors
    /// [`Error::Tensor`] for shapes and element types that do not go together, or too many keys; [`Error::Overlap`] where
    /// a written view meets another, [`Error::Usage`] for a buffer without `STORAGE`, [`Error::Limit`] where not even one
    /// token fits into the device's limits, [`Error::OutOfMemory`] if there is no room for scratch memory.
    pub fn prepare(&self, gpu: &Gpu) -> Result<Prepared> {
        self.0.prepare(gpu, |shape, region, scratch| self.steps(gpu, shape, region, scratch))
    }

    fn steps(&self, gpu: &Gpu, shape: &AttentionShape, region: &Region, scratch: &mut Scratch) -> Result<Vec<Step>> {
        let job = self.job(shape, region, scratch)?;
        if shape.tokens <= FEW_QUERIES {
            return attention_decode::steps(&job, region, scratch, gpu.is_software());
        }
        Ok(vec![attention_rows::step(&job, gpu.has_subgroups())])
    }

    fn job(&self, shape: &AttentionShape, region: &Region, scratch: &mut Scratch) -> Result<Job> {
        let Attention { q, k, v, mask, key_ranges, keep, bias, cope, .. } = &self.0.attention;
        let group = shape.group();
        let cope = match cope {
            None => None,
            Some(cope) => Some(Cope {
                query: of(region, Tensor::ContextualQuery, cope.query.as_ref())?,
                embeddings: (Tensor::PositionEmbeddings, region.of_embeddings(cope.position_embeddings.layout())?),
                gates: match &cope.gates {
                    Gates::Logits => GateSource::Logits,
                    Gates::Keys(keys) => GateSource::Keys((Tensor::GateKeys, region.of_keys(keys.layout(), group)?)),
                    Gates::Values => GateSource::Values,
                },
                gates_see_bias: cope.gates_see_bias,
                gate_sum: of(region, Tensor::GateSum, cope.gate_sum.as_ref())?,
                gate_sum_out: of(region, Tensor::GateSumOut, self.0.gate_sum.as_ref())?,
                z: scratch.take(region.shape(shape.positions))?,
                bias_scale: cope.bias_scale,
            }),
        };
        Ok(Job {
            q: (Tensor::Query, region.of(q.layout())?),
            k: (Tensor::Keys, region.of_keys(k.layout(), group)?),
            v: (Tensor::Values, region.of_keys(v.layout(), group)?),
            output: (Tensor::Output, region.of(self.0.output.layout())?),
            lse: of(region, Tensor::Lse, self.0.lse.as_ref())?,
            keep: of(region, Tensor::Keep, keep.as_ref())?,
            bias: of(region, Tensor::Bias, bias.as_ref())?,
            key_ranges: of(region, Tensor::KeyRanges, key_ranges.as_ref())?,
            visible: mask.visible_keys(region.tokens.start, shape.tokens, shape.keys),
            first_head: region.heads.start % group,
            group,
            scale: self.0.attention.scale_or_default(),
            cope,
        })
    }
}
