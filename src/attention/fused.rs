//! Attention in one go, without the logits in memory.

use super::operation::{Operation, of};
use super::{Attention, AttentionShape, Gates};
use crate::Result;
use crate::gpu::{Gpu, Prepared, View};
use crate::kernels::fused::{Cope, GateSource, Job};
use crate::kernels::grid::Limits;
use crate::kernels::plan::Scratch;
use crate::kernels::region::Region;
use crate::kernels::step::{Operand, Step, Tensor};
use crate::kernels::{attention_decode, attention_rows, attention_tiles};

/// How fused attention is cut into work for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// Workgroups take tiles of queries and go over tiles of keys, through workgroup memory: many queries on a GPU. On a
    /// device that is a CPU, up to 4,096 keys.
    Tiles,
    /// Invocations take some queries each and go over keys one by one: many queries on a device that is a CPU. Up to
    /// 30,000 keys and positions together.
    Rows,
    /// Workgroups take a part of the keys each, and what they find is merged: few queries, so that all of the device has
    /// something to do. Memory for each pair of a query and a key.
    Split,
}

impl Schedule {
    /// Up to this many queries of a head the work is split over keys.
    const FEW_QUERIES: usize = 4;

    /// The one that suits a device.
    fn suitable(gpu: &Gpu, shape: &AttentionShape) -> Self {
        if shape.tokens <= Self::FEW_QUERIES {
            Self::Split
        } else if !gpu.is_software() {
            Self::Tiles
        } else if shape.keys + shape.positions <= attention_rows::MOST_KEYS {
            Self::Rows
        } else {
            Self::Split
        }
    }
}

/// Attention on the device in memory that grows with the number of tokens, not with its square, with contextual position
/// encoding or without, and with a rotation ([`Attention::rotate`]) or without: queries turn once, keys whenever they are
/// loaded.
///
/// What is no finite number does no harm where no query sees it (in a cache's padding, say). Where one does, a key whose
/// logit is no number is not seen, and such a channel of a value counts as 0.
///
/// Keys of a head that no binding of the device holds are read in windows, by [`Schedule::Split`], which alone can: it is
/// taken where no other one is asked for.
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
///
/// A cache of keys that are not rotated, and one more token:
///
/// ```no_run
/// use phasor::attention::{Attention, Fused, Rotation, Standing};
/// use phasor::frequencies::Plain;
/// use phasor::{Gpu, Pairing, View};
/// # fn engine(gpu: Gpu, q: View, keys: View, values: View, lengths: View, out: View) -> phasor::Result<()> {
/// let rotation = Rotation::new(&Plain { base: 10_000.0 }.frequencies(64)?, Pairing::HalfSplit);
/// let attention = Attention::new(&q, &keys, &values).key_ranges(&lengths).standing(Standing::RowLast).rotate(rotation);
/// let step = Fused::new(&attention, &out).prepare(&gpu)?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Fused {
    operation: Operation,
    schedule: Option<Schedule>,
}

impl Fused {
    /// What to attend to, and where `[batch, tokens, heads, value channels]` go: in a buffer that holds nothing of what is
    /// attended to.
    pub fn new(attention: &Attention<View>, output: &View) -> Self {
        Self { operation: Operation::new(attention, output), schedule: None }
    }

    /// How to cut the work, instead of as the device's kind suggests: to measure, or to check one against another.
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = Some(schedule);
        self
    }

    /// Where the log-sum-exp of each query's logits goes, `[batch, tokens, heads, 1]`.
    pub fn lse(mut self, lse: &View) -> Self {
        self.operation.lse = Some(lse.clone());
        self
    }

    /// Where the sum of each query's gates goes, that of keys to the right included, as its whole part and its fraction:
    /// `[batch, tokens, heads, 2]`. Only with contextual position encoding, whose gates are then counted to the last.
    pub fn gate_sum(mut self, sum: &View) -> Self {
        self.operation.gate_sum = Some(sum.clone());
        self
    }

    /// Memory for what lies between the kernels: an f32 view `[1, 1, 1, n]` without gaps, with `n` as
    /// [`Fused::scratch_elements`] says, in a buffer of its own. It may serve other operations that are recorded before
    /// or after. Without it, preparing makes a buffer.
    pub fn scratch(mut self, scratch: &View) -> Self {
        self.operation.scratch = Some(scratch.clone());
        self
    }

    /// How many f32 elements of scratch memory this takes on a device: with contextual position encoding as many as there
    /// are queries times positions, with a rotation as many as there are queries times channels, and for few queries over many
    /// keys ([`Schedule::Split`]) one or two for each pair of a query and a key.
    ///
    /// # Errors
    /// As [`Fused::prepare`], but for buffers.
    pub fn scratch_elements(&self, gpu: &Gpu) -> Result<usize> {
        self.operation.scratch_elements(gpu, &|shape, region, scratch| self.steps(gpu, shape, region, scratch))
    }

    /// Checks the request, finds pipelines and makes bind groups.
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) for a scale that is not finite, [`Tensor`](crate::ErrorKind::Tensor) for
    /// shapes and element types that do not go together, or too many keys; [`Overlap`](crate::ErrorKind::Overlap) where a
    /// written view meets another, [`Usage`](crate::ErrorKind::Usage) for a buffer without `STORAGE`,
    /// [`Limit`](crate::ErrorKind::Limit) where not even one token fits into the device's limits, or, by another schedule
    /// than [`Schedule::Split`], the keys of one head; [`OutOfMemory`](crate::ErrorKind::OutOfMemory) if there is no room
    /// for scratch memory.
    pub fn prepare(&self, gpu: &Gpu) -> Result<Prepared> {
        self.operation.expect_ranges_apart(gpu)?;
        self.operation.prepare(gpu, &|shape, region, scratch| self.steps(gpu, shape, region, scratch))
    }

    fn steps(&self, gpu: &Gpu, shape: &AttentionShape, region: &Region, scratch: &mut Scratch) -> Result<Vec<Step>> {
        let (q, turn) = self.operation.queries(shape, region, scratch)?;
        let job = self.job(q, shape, region, scratch)?;
        let schedule = self.schedule.unwrap_or_else(|| Schedule::suitable(gpu, shape));
        let mut steps = scheduled(schedule, gpu, &job, region, scratch)?;
        // A split schedule takes fewer buffers, and cuts keys that no binding holds.
        let most = gpu.limits().max_storage_buffers_per_shader_stage;
        let too_many = steps.iter().any(|step| step.shader.expect_buffers(most).is_err());
        let too_large = !job.of_one_head()?.keys_fit(Limits::from(gpu.limits()));
        if self.schedule.is_none() && schedule != Schedule::Split && (too_many || too_large) {
            steps = scheduled(Schedule::Split, gpu, &job, region, scratch)?;
        }
        Ok(turn.into_iter().chain(steps).collect())
    }

    fn job(&self, q: Operand, shape: &AttentionShape, region: &Region, scratch: &mut Scratch) -> Result<Job> {
        let Attention { k, v, mask, key_ranges, keep, bias, rotation, cope, .. } = &self.operation.attention;
        let group = shape.group();
        let cope = match cope {
            None => None,
            Some(cope) => Some(Cope {
                query: of(region, Tensor::ContextualQuery, cope.query.as_ref())?,
                embeddings: Operand::of(Tensor::PositionEmbeddings, &cope.position_embeddings, |all| {
                    region.of_embeddings(all)
                })?,
                gates: match &cope.gates {
                    Gates::Logits => GateSource::Logits,
                    Gates::Keys(keys) => {
                        GateSource::Keys(Operand::of(Tensor::GateKeys, keys, |all| region.of_keys(all, group))?)
                    }
                    Gates::Values => GateSource::Values,
                },
                gates_see_bias: cope.gates_see_bias,
                gate_sum: of(region, Tensor::GateSum, cope.gate_sum.as_ref())?,
                gate_sum_out: of(region, Tensor::GateSumOut, self.operation.gate_sum.as_ref())?,
                z: scratch.take(region.shape(shape.positions))?,
                bias_scale: cope.bias_scale,
            }),
        };
        Ok(Job {
            q,
            k: Operand::of(Tensor::Keys, k, |all| region.of_keys(all, group))?,
            v: Operand::of(Tensor::Values, v, |all| region.of_keys(all, group))?,
            output: Operand::of(Tensor::Output, &self.operation.output, |all| region.of(all))?,
            lse: of(region, Tensor::Lse, self.operation.lse.as_ref())?,
            keep: of(region, Tensor::Keep, keep.as_ref())?,
            bias: of(region, Tensor::Bias, bias.as_ref())?,
            key_ranges: of(region, Tensor::KeyRanges, key_ranges.as_ref())?,
            keys: shape.keys,
            visible: mask.visible_keys(region.tokens.start, shape.tokens, shape.keys),
            first_head: region.heads.start % group,
            group,
            scale: self.operation.attention.scale_or_default(),
            rotation: rotation.clone(),
            cope,
        })
    }
}

/// The dispatches of a job by a schedule.
fn scheduled(schedule: Schedule, gpu: &Gpu, job: &Job, region: &Region, scratch: &mut Scratch) -> Result<Vec<Step>> {
    match schedule {
        Schedule::Tiles => attention_tiles::steps(job, gpu.is_software()),
        Schedule::Rows => Ok(vec![attention_rows::step(job, gpu.has_subgroups())?]),
        Schedule::Split => attention_decode::steps(job, region, scratch, Limits::from(gpu.limits()), gpu.is_software()),
    }
}
