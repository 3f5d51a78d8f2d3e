//! Steps for a whole operation, region by region, with the scratch memory between them.

use super::grid::Limits;
use super::region::Region;
use super::step::{Operand, Step, Tensor};
use crate::gpu::{Gpu, Prepared, View};
use crate::{ElementType, Error, ErrorKind, Layout, Result};

/// Bytes of one scratch tensor at most, whatever the device allows: more work in one region gains nothing.
const SCRATCH_BYTES: u64 = 256 << 20;

/// What to dispatch, one after the other, and how many f32 elements of scratch memory that takes.
#[derive(Debug)]
pub(crate) struct Plan {
    steps: Vec<Step>,
    /// Where the last scratch tensor ends.
    scratch_end: usize,
    limits: Limits,
}

/// The steps that a region takes, with scratch memory of its own.
pub(crate) type StepsOfRegion<'a> = dyn Fn(&Region, &mut Scratch) -> Result<Vec<Step>> + 'a;

/// Hands out tensors in a scratch buffer, each on its own where the device lets a binding begin.
#[derive(Debug)]
pub(crate) struct Scratch {
    end: usize,
    alignment: usize,
    most: u64,
}

impl Scratch {
    fn new(first: usize, limits: Limits) -> Self {
        Self { end: first, alignment: alignment(limits), most: limits.binding.min(SCRATCH_BYTES) }
    }

    /// A tensor of 32-bit elements that lies `[batch, heads, tokens, channels]` in memory.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit) if it is too large for a binding.
    pub(crate) fn take(&mut self, shape: [usize; 4]) -> Result<Operand> {
        let first = self.end.next_multiple_of(self.alignment);
        let layout = Layout::heads_first(shape)?.offset_by(first)?;
        let bytes = layout.elements() as u64 * 4;
        if bytes > self.most {
            return Err(Error::new(
                ErrorKind::Limit,
                "max_storage_buffer_binding_size",
                format!("{bytes} bytes of scratch memory for one token and head"),
                format!("up to {} bytes", self.most),
            ));
        }
        // A binding is never empty.
        self.end = first + layout.elements().max(1);
        Ok(Operand { tensor: Tensor::Scratch, layout, element: ElementType::F32, first_token: 0 })
    }
}

/// Elements between two places where a binding may begin.
fn alignment(limits: Limits) -> usize {
    (limits.alignment as usize / 4).max(1)
}

impl Plan {
    /// Cuts the work until the device's limits hold, with scratch memory from element `first` of its buffer on.
    /// Regions use the same scratch memory one after the other.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit) if not even one token of one head fits.
    pub(crate) fn new(whole: Region, limits: Limits, first: usize, steps: &StepsOfRegion) -> Result<Self> {
        let pieces = whole.cover(&|region: &Region| {
            let mut scratch = Scratch::new(first, limits);
            let steps = steps(region, &mut scratch)?;
            steps.iter().try_for_each(|step| step.check(limits))?;
            Ok((steps, scratch.end))
        })?;
        let scratch_end = pieces.iter().map(|(_, (_, end))| *end).max().unwrap_or(first);
        let steps = pieces.into_iter().flat_map(|(_, (steps, _))| steps).collect();
        Ok(Self { steps, scratch_end, limits })
    }

    /// Steps that keep to the limits and take no scratch memory.
    pub(crate) fn without_scratch(steps: Vec<Step>, limits: Limits) -> Self {
        Self { steps, scratch_end: 0, limits }
    }

    /// How many elements of scratch memory are enough, wherever in its buffer they begin. Of a plan from element 0 on.
    pub(crate) fn scratch_elements(&self) -> usize {
        self.scratch_end + alignment(self.limits) - 1
    }

    /// Refuses scratch memory that does not hold this plan, which was made for its offset.
    pub(crate) fn expect_scratch(&self, scratch: &View) -> Result<()> {
        expect_scratch("scratch", scratch, self.scratch_end)
    }

    /// Scratch memory for this plan, which was made from element 0 on.
    pub(crate) fn allocate(&self, gpu: &Gpu) -> Result<View> {
        gpu.zeros(ElementType::F32, [1, 1, 1, self.scratch_elements()])
    }

    /// Makes pipelines and bind groups over these buffers.
    pub(crate) fn prepare<'a>(&self, gpu: &Gpu, buffer: &dyn Fn(Tensor) -> &'a wgpu::Buffer) -> Result<Prepared> {
        self.steps.iter().try_fold(Prepared::nothing(), |done, step| {
            Ok(done.then(Prepared::new(gpu, &step.shader, &[step.dispatch(self.limits, buffer)])?))
        })
    }
}

/// Refuses scratch memory that does not reach to this element of its buffer.
pub(crate) fn expect_scratch(argument: &str, scratch: &View, end: usize) -> Result<()> {
    scratch.expect_element(argument, ElementType::F32)?;
    scratch.expect_written(argument)?;
    let layout = scratch.layout();
    let [b, t, h, elements] = layout.shape();
    let gapless = [b, t, h] == [1; 3] && (layout.strides()[3] == 1 || elements <= 1);
    if gapless && layout.offset() + elements >= end {
        return Ok(());
    }
    Err(Error::tensor(
        argument,
        format!("{layout:?}"),
        format!("[1, 1, 1, at least {}] without gaps", end - layout.offset()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::cope_logits;

    const LIMITS: Limits = Limits::LOWEST;

    fn plan(limits: Limits, first: usize) -> Result<Plan> {
        let query = Layout::contiguous([2, 40, 4, 8])?;
        let embeddings = Layout::contiguous([1, 8, 1, 16])?;
        let whole = Region { batch: 0..2, tokens: 0..40, heads: 0..4 };
        Plan::new(whole, limits, first, &|region, scratch| {
            let z = scratch.take(region.shape(16))?;
            scratch.take(region.shape(1))?;
            let of = |tensor, layout| Operand { tensor, layout, element: ElementType::F32, first_token: 0 };
            let query = of(Tensor::ContextualQuery, region.of(query)?);
            Ok(vec![cope_logits::step(query, of(Tensor::PositionEmbeddings, embeddings), z)])
        })
    }

    #[test]
    fn scratch_tensors_begin_where_bindings_may() -> Result<()> {
        let whole = plan(LIMITS, 0)?;
        assert_eq!((whole.steps.len(), whole.scratch_end), (1, 2 * 40 * 4 * 16 + 2 * 40 * 4));
        assert_eq!(plan(LIMITS, 1)?.scratch_end, 64 + whole.scratch_end);
        assert!(plan(LIMITS, 63)?.scratch_end <= 63 + whole.scratch_elements());
        Ok(())
    }

    #[test]
    fn regions_share_their_scratch() -> Result<()> {
        let cut = plan(Limits { binding: 6 << 10, ..LIMITS }, 0)?;
        assert_eq!(cut.steps.len(), 4, "a row of the batch and two heads each");
        assert_eq!(cut.scratch_end, 40 * 2 * 16 + 40 * 2);
        let few_groups = plan(Limits { groups: 3, ..LIMITS }, 0)?;
        assert!(few_groups.steps.iter().all(|step| step.groups.iter().all(|&n| n <= 3)));
        assert!(plan(Limits { binding: 32, ..LIMITS }, 0).is_err());
        Ok(())
    }
}
