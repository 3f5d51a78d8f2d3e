//! Keys that no binding of a device holds, attended to a part at a time.

use super::operation::Operation;
use super::{Attention, Fused, Gates, Merge, Standing};
use crate::gpu::{Gpu, Prepared, View};
use crate::{ElementType, Error, Result};
use std::ops::Range;

/// Whether cutting the keys may help.
pub(super) fn is_binding_limit(error: &Error) -> bool {
    matches!(error, Error::Limit { limit, .. } if limit == "max_storage_buffer_binding_size")
}

impl Attention<View> {
    /// The same queries over some of the keys, with the gate sum of those to the right.
    fn of_keys(&self, keys: Range<usize>, gate_sum: Option<View>) -> Result<Self> {
        let mut part = self.clone();
        for tensor in [&mut part.k, &mut part.v] {
            *tensor = tensor.tokens(keys.clone())?;
        }
        for mask in [&mut part.keep, &mut part.bias].into_iter().flatten() {
            *mask = mask.part(mask.layout().narrow(3, keys.clone())?);
        }
        let (all, tokens) = (self.k.shape()[1], self.q.shape()[1]);
        let place = self.mask.first_place(tokens, all, all) - keys.start as i128;
        part.mask.standing = Standing::From(place.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
        if let Some(rotation) = part.rotation.take() {
            // Keys are up to 2^28 where there is a rotation.
            let first_key = rotation.first_key.saturating_add(keys.start as i32);
            part.rotation = Some(rotation.first_key(first_key));
        }
        if let Some(cope) = &mut part.cope {
            if let Gates::Keys(gate_keys) = &mut cope.gates {
                *gate_keys = gate_keys.tokens(keys)?;
            }
            cope.gate_sum = gate_sum.or(cope.gate_sum.take());
        }
        Ok(part)
    }
}

impl Fused {
    /// The keys of as few parts as fit into the device's bindings, from right to left, and the scratch memory that each of
    /// them is content with; `None` if no number of parts helps, or if each row has a range of keys that only the device
    /// knows.
    pub(super) fn key_parts(&self, gpu: &Gpu) -> Result<Option<(Vec<Range<usize>>, usize)>> {
        let keys = self.operation.attention.shape()?.keys;
        if self.operation.attention.key_ranges.is_some() {
            return Ok(None);
        }
        let lengths = std::iter::successors(Some(keys), |&length| (length > 1).then(|| length.div_ceil(2))).skip(1);
        for length in lengths {
            let mut parts: Vec<_> = (0..keys).step_by(length).map(|i| i..keys.min(i + length)).collect();
            parts.reverse();
            match self.scratch_of_parts(gpu, &parts) {
                Err(error) if is_binding_limit(&error) => (),
                elements => return Ok(Some((parts, elements?))),
            }
        }
        Ok(None)
    }

    fn scratch_of_parts(&self, gpu: &Gpu, parts: &[Range<usize>]) -> Result<usize> {
        parts.iter().try_fold(0, |most, keys| {
            let attention = self.operation.attention.of_keys(keys.clone(), None)?;
            let operation = Operation { attention, ..self.operation.clone() };
            Ok(most.max(Self { operation, ..*self }.scratch_of_whole(gpu)?))
        })
    }

    /// One part after the other, from right to left, so that gates are counted from where they begin; what each finds is
    /// merged in f32. Only the last one writes to the output, which is rounded twice, however many there are.
    pub(super) fn prepare_parts(&self, gpu: &Gpu, parts: &[Range<usize>], scratch: usize) -> Result<Prepared> {
        let Operation { attention, output, lse, gate_sum, .. } = &self.operation;
        let shape = attention.shape()?;
        let tensor = |channels| gpu.zeros(ElementType::F32, [shape.batch, shape.tokens, shape.heads, channels]);
        let results = || Ok::<_, Error>((tensor(shape.value_channels)?, tensor(1)?));
        let own = (output.clone(), lse.clone().map_or_else(|| tensor(1), Ok)?);
        let (gathered, part) = (results()?, if parts.len() > 2 { Some(results()?) } else { None });
        let sums = attention.cope.as_ref().map(|_| Ok::<_, Error>([tensor(2)?, tensor(2)?])).transpose()?;
        let scratch =
            self.operation.scratch.clone().map_or_else(|| gpu.zeros(ElementType::F32, [1, 1, 1, scratch]), Ok)?;
        let (mut done, mut to_the_right) = (Prepared::nothing(), None);
        for (i, keys) in parts.iter().enumerate() {
            let is_last = i + 1 == parts.len();
            let results = match &part {
                _ if is_last => &own,
                Some(part) if i > 0 => part,
                _ => &gathered,
            };
            let sum = if is_last { gate_sum.clone() } else { sums.as_ref().map(|sums| sums[i % 2].clone()) };
            let operation = Operation {
                attention: attention.of_keys(keys.clone(), to_the_right)?,
                output: results.0.clone(),
                lse: Some(results.1.clone()),
                gate_sum: sum.clone(),
                scratch: Some(scratch.clone()),
            };
            to_the_right = sum;
            done = done.then(Self { operation, ..*self }.prepare_whole(gpu)?);
            done = match (i, is_last) {
                (0, _) => done,
                (_, false) => done.then(Merge::new(&gathered.0, &gathered.1, &results.0, &results.1).prepare(gpu)?),
                (_, true) => done.then(Merge::new(&results.0, &results.1, &gathered.0, &gathered.1).prepare(gpu)?),
            };
        }
        Ok(done)
    }
}
