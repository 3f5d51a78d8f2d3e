//! What attention on a device reads and writes, and whether its buffers go together.

use super::{Attention, AttentionShape, Gates, expect};
use crate::gpu::{Gpu, Prepared, View};
use crate::kernels::attention_turned::{self, Stand};
use crate::kernels::grid::Limits;
use crate::kernels::plan::{Plan, Scratch};
use crate::kernels::region::Region;
use crate::kernels::step::{Operand, Step, Tensor, expect_keys};
use crate::{ElementType, Error, ErrorKind, Result};

/// A request and where its results go.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub attention: Attention<View>,
    pub output: View,
    pub lse: Option<View>,
    pub gate_sum: Option<View>,
    pub scratch: Option<View>,
}

impl Operation {
    pub(crate) fn new(attention: &Attention<View>, output: &View) -> Self {
        Self { attention: attention.clone(), output: output.clone(), lse: None, gate_sum: None, scratch: None }
    }

    /// How many f32 elements of scratch memory are enough.
    pub(crate) fn scratch_elements(&self, gpu: &Gpu, steps: &StepsOf) -> Result<usize> {
        let shape = self.check_shapes()?;
        if [shape.batch, shape.tokens, shape.heads].contains(&0) {
            return Ok(0);
        }
        Ok(plan(gpu, &shape, 0, steps)?.scratch_elements())
    }

    /// Checks everything and prepares the steps that a region of the queries takes.
    pub(crate) fn prepare(&self, gpu: &Gpu, steps: &StepsOf) -> Result<Prepared> {
        let shape = self.check_shapes()?;
        self.check_buffers()?;
        if [shape.batch, shape.tokens, shape.heads].contains(&0) {
            return Ok(Prepared::nothing());
        }
        let plan = plan(gpu, &shape, self.scratch.as_ref().map_or(0, |scratch| scratch.layout().offset()), steps)?;
        let scratch = match &self.scratch {
            Some(scratch) => self.check_scratch(&plan, scratch).map(|()| scratch.clone())?,
            None => plan.allocate(gpu)?,
        };
        let given: Vec<_> = self.given().into_iter().map(|(tensor, _, view)| (tensor, view)).collect();
        let prepared = plan.prepare(gpu, &|tensor| {
            given.iter().find(|(given, _)| *given == tensor).map_or(scratch.buffer(), |(_, view)| view.buffer())
        });
        let named = self.given().into_iter().map(|(_, name, view)| (name, view)).chain([("scratch", &scratch)]);
        prepared.map_err(|error| gpu.blame(error, named))
    }

    /// All views, with their arguments' names.
    fn given(&self) -> Vec<(Tensor, &'static str, &View)> {
        self.read().into_iter().chain(self.written()).collect()
    }

    /// Those that are read.
    pub(super) fn read(&self) -> Vec<(Tensor, &'static str, &View)> {
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

    pub(crate) fn written(&self) -> Vec<(Tensor, &'static str, &View)> {
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
                return Err(Error::tensor("gate_sum", "given without contextual position encoding", "left out"));
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

    /// Refuses results of which one lies between the other's elements.
    pub(crate) fn expect_ranges_apart(&self, gpu: &Gpu) -> Result<()> {
        let written = self.written();
        for (i, &(_, name, view)) in written.iter().enumerate() {
            written[i + 1..]
                .iter()
                .try_for_each(|&(_, other, also)| expect_ranges_apart(gpu, (name, view), (other, also)))?;
        }
        Ok(())
    }

    /// Queries of a region as they meet keys: as they are, or turned in scratch memory by a dispatch.
    pub(super) fn queries(
        &self,
        shape: &AttentionShape,
        region: &Region,
        scratch: &mut Scratch,
    ) -> Result<(Operand, Option<Step>)> {
        let Attention { q, mask, key_ranges, .. } = &self.attention;
        let visible = mask.visible_keys(region.tokens.start, shape.tokens, shape.keys);
        let stand = Stand {
            place: visible.place,
            from_row_end: visible.from_row_end,
            key_ranges: of(region, Tensor::KeyRanges, key_ranges.as_ref())?,
            keys: shape.keys,
        };
        self.turned(Operand::of(Tensor::Query, q, |all| region.of(all))?, stand, scratch)
    }

    /// Turns a tensor in scratch memory, if this is an attention that rotates.
    pub(super) fn turned(
        &self,
        operand: Operand,
        stand: Stand,
        scratch: &mut Scratch,
    ) -> Result<(Operand, Option<Step>)> {
        let Some(rotation) = &self.attention.rotation else { return Ok((operand, None)) };
        let (turned, step) = attention_turned::step(operand, rotation, stand, scratch)?;
        Ok((turned, Some(step)))
    }

    fn check_scratch(&self, plan: &Plan, scratch: &View) -> Result<()> {
        plan.expect_scratch(scratch)?;
        self.given().into_iter().try_for_each(|(_, name, view)| scratch.expect_other_buffer("scratch", view, name))
    }
}

/// The steps that a region of the queries takes, with scratch memory of its own.
pub(crate) type StepsOf<'a> = dyn Fn(&AttentionShape, &Region, &mut Scratch) -> Result<Vec<Step>> + 'a;

fn plan(gpu: &Gpu, shape: &AttentionShape, first: usize, steps: &StepsOf) -> Result<Plan> {
    let whole = Region { batch: 0..shape.batch, tokens: 0..shape.tokens, heads: 0..shape.heads };
    Plan::new(whole, Limits::from(gpu.limits()), first, &|region, scratch| steps(shape, region, scratch))
}

/// Refuses two written views of which one lies between the other's elements: one dispatch binds a range for each.
pub(super) fn expect_ranges_apart(gpu: &Gpu, (name, view): (&str, &View), (other, also): (&str, &View)) -> Result<()> {
    let limits = Limits::from(gpu.limits());
    let [a, b] = [view, also].map(|view| limits.range([(view.layout(), view.element())]));
    if view.buffer() != also.buffer() || a.start >= b.end || b.start >= a.end {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Overlap, name, other, format!("in another buffer, or {} bytes apart", limits.alignment)))
}

/// A region of a tensor that may be absent.
pub(super) fn of(region: &Region, tensor: Tensor, view: Option<&View>) -> Result<Option<Operand>> {
    view.map(|view| Operand::of(tensor, view, |all| region.of(all))).transpose()
}
