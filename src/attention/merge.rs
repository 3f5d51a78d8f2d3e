//! Attention over parts of the keys, put together.

use super::expect;
use super::operation::expect_ranges_apart;
use crate::gpu::{Gpu, Prepared, View};
use crate::kernels::attention_merge;
use crate::kernels::grid::Limits;
use crate::kernels::plan::Plan;
use crate::kernels::region::Region;
use crate::kernels::step::{Operand, Tensor};
use crate::{ElementType, Result};

/// Takes what attention gave over one part of the keys into what it gave over others, in place:
/// `lse' = log(exp(lse) + exp(part_lse))` and `out' = exp(lse - lse') out + exp(part_lse - lse') part`.
///
/// For keys that come in chunks, over several calls or from several devices (ring attention, sequence parallelism): each
/// chunk is attended to on its own, with its [`Fused::lse`](super::Fused::lse), and merged in any order. With contextual
/// position encoding chunks are attended to from right to left, the gate sum of one
/// ([`Fused::gate_sum`](super::Fused::gate_sum)) being what the next one begins with
/// ([`ContextualPe::gate_sum`](super::ContextualPe::gate_sum)).
///
/// An output of 16 bits is rounded at each merge; f32 keeps several of them exact to f32's rounding.
///
/// ```no_run
/// use phasor::attention::{Attention, Fused, Merge, Standing};
/// use phasor::{Gpu, View};
/// # fn engine(gpu: Gpu, q: View, [k, v]: [View; 2], [far_k, far_v]: [View; 2], out: View, lse: View, part: View,
/// #     part_lse: View, pass: &mut wgpu::ComputePass<'_>) -> phasor::Result<()> {
/// // The near keys are the queries' own tokens; all queries see all of the far ones, which lie to the left.
/// let near = Fused::new(&Attention::new(&q, &k, &v).causal(), &out).lse(&lse).prepare(&gpu)?;
/// let far = Fused::new(&Attention::new(&q, &far_k, &far_v), &part).lse(&part_lse).prepare(&gpu)?;
/// let merge = Merge::new(&out, &lse, &part, &part_lse).prepare(&gpu)?;
/// near.record(pass);
/// far.record(pass);
/// merge.record(pass);
/// # Ok(()) }
/// ```
///
/// Twin: [`attention_merge`](crate::reference::attention_merge).
#[derive(Debug, Clone)]
#[must_use]
pub struct Merge {
    output: View,
    lse: View,
    part: View,
    part_lse: View,
}

impl Merge {
    /// `output` and `part` are `[batch, tokens, heads, value channels]`, `lse` and `part_lse`
    /// `[batch, tokens, heads, 1]`. The first two are what the others are taken into.
    pub fn new(output: &View, lse: &View, part: &View, part_lse: &View) -> Self {
        Self { output: output.clone(), lse: lse.clone(), part: part.clone(), part_lse: part_lse.clone() }
    }

    /// Checks the request, finds its pipeline and makes bind groups.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) for shapes and element types that do not go together;
    /// [`Overlap`](crate::ErrorKind::Overlap) where a written view meets another,
    /// [`Usage`](crate::ErrorKind::Usage) for a buffer without `STORAGE`, [`Limit`](crate::ErrorKind::Limit) where
    /// not even one token fits into the device's limits.
    pub fn prepare(&self, gpu: &Gpu) -> Result<Prepared> {
        self.check(gpu)?;
        if self.lse.layout().is_empty() {
            return Ok(Prepared::nothing());
        }
        let [batch, tokens, heads, _] = self.output.shape();
        let whole = Region { batch: 0..batch, tokens: 0..tokens, heads: 0..heads };
        let plan = Plan::new(whole, Limits::from(gpu.limits()), 0, &|region, _| {
            let of = |tensor, view| Operand::of(tensor, view, |all| region.of(all));
            let own = [of(Tensor::Output, &self.output)?, of(Tensor::Lse, &self.lse)?];
            let part = [of(Tensor::Part, &self.part)?, of(Tensor::PartLse, &self.part_lse)?];
            Ok(vec![attention_merge::step(own, part)])
        })?;
        let prepared = plan.prepare(gpu, &|tensor| match tensor {
            Tensor::Lse => self.lse.buffer(),
            Tensor::Part => self.part.buffer(),
            Tensor::PartLse => self.part_lse.buffer(),
            _ => self.output.buffer(),
        });
        let named = [("output", &self.output), ("lse", &self.lse), ("part", &self.part), ("part_lse", &self.part_lse)];
        prepared.map_err(|error| gpu.blame(error, named))
    }

    fn check(&self, gpu: &Gpu) -> Result<()> {
        let shape = self.output.shape();
        let [batch, tokens, heads, _] = shape;
        expect("part", &self.part, shape)?;
        for (name, lse) in [("lse", &self.lse), ("part_lse", &self.part_lse)] {
            expect(name, lse, [batch, tokens, heads, 1])?;
            lse.expect_element(name, ElementType::F32)?;
        }
        self.output.expect_written("output")?;
        self.lse.expect_written("lse")?;
        for (name, part) in [("part", &self.part), ("part_lse", &self.part_lse)] {
            part.expect_floats(name)?;
            self.output.expect_other_buffer("output", part, name)?;
            self.lse.expect_other_buffer("lse", part, name)?;
        }
        expect_ranges_apart(gpu, ("output", &self.output), ("lse", &self.lse))
    }
}
