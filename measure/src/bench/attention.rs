//! Attention with contextual encoding and without, fused and with all logits in memory, beside a matrix product; decode
//! steps beside a kernel that only reads the cache.

use super::projection::matrix_product;
use super::read::Read;
use super::{
    Measurement, Operation, Subject, expect_buffers, expect_even_heads, expect_sizes, measure, noise_as, setting,
};
use crate::Progress;
use phasor::attention::{Attention, ContextualPe, Fused, Rotation, Schedule, Unfused};
use phasor::frequencies::Plain;
use phasor::{ElementType, Gpu, Pairing, Prepared, Result, View};
use serde::{Deserialize, Serialize};

/// The tensors to measure on, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttentionSizes {
    /// Queries of the one batch row, which stand at the last keys.
    pub tokens: u32,
    /// Keys; as many as queries for a prompt, more for a decode step.
    pub keys: u32,
    /// Query heads.
    pub heads: u32,
    /// Key heads, a divisor of `heads`.
    pub kv_heads: u32,
    /// Channels of a head.
    pub head_dim: u32,
    /// Contextual positions.
    pub positions: u32,
    /// How often each operation is timed.
    pub rounds: u32,
    /// Whether attention with all logits in memory is timed, too. On a software device it takes some fifty times as long.
    pub unfused: bool,
}

impl AttentionSizes {
    /// A prompt of so many tokens for 8 heads of 64 channels and 64 positions, the sizes of the article that this project
    /// grew from.
    #[must_use]
    pub fn prompt(tokens: u32) -> Self {
        Self { tokens, keys: tokens, heads: 8, kv_heads: 8, head_dim: 64, positions: 64, rounds: 10, unfused: true }
    }

    /// One more token after so many in the cache.
    #[must_use]
    pub fn decode(keys: u32) -> Self {
        Self { tokens: 1, rounds: 30, ..Self::prompt(keys) }
    }

    /// Whether the keys are a cache for a few queries.
    #[must_use]
    pub fn is_decode(&self) -> bool {
        self.tokens < self.keys
    }

    /// Bytes of queries, keys, values and output together, in f32.
    #[must_use]
    pub fn tensor_bytes(&self) -> u64 {
        let rows = u64::from(self.tokens) * u64::from(self.heads) + u64::from(self.keys) * u64::from(self.kv_heads);
        2 * rows * u64::from(self.head_dim) * 4
    }

    /// Pairs of a query and a key that it sees.
    fn pairs(&self) -> u64 {
        let (tokens, keys) = (u64::from(self.tokens), u64::from(self.keys));
        (tokens * keys - tokens * (tokens - 1) / 2) * u64::from(self.heads)
    }

    /// Operations in `q·k` and in the sum of values.
    fn flop(&self) -> u64 {
        4 * self.pairs() * u64::from(self.head_dim)
    }

    /// Operations in `q·E`.
    fn contextual_flop(&self) -> u64 {
        2 * u64::from(self.tokens) * u64::from(self.heads) * u64::from(self.head_dim) * u64::from(self.positions)
    }

    pub(super) fn check(&self, gpu: &Gpu) -> Result<()> {
        let numbers = [
            ("tokens", self.tokens),
            ("keys", self.keys),
            ("heads", self.heads),
            ("kv-heads", self.kv_heads),
            ("head-dim", self.head_dim),
            ("positions", self.positions),
            ("rounds", self.rounds),
        ];
        expect_sizes(numbers, 1 << 20)?;
        expect_even_heads(self.head_dim)?;
        if self.tokens > self.keys {
            return setting("tokens", self.tokens, format!("at most keys, {}", self.keys));
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return setting("kv-heads", self.kv_heads, format!("a divisor of heads, {}", self.heads));
        }
        let tensors = [(self.tokens, self.heads), (self.keys, self.kv_heads), (self.positions, 1)];
        expect_buffers(gpu, tensors.map(|(rows, heads)| [rows, heads, self.head_dim]))
    }
}

/// Attention of some sizes on a device: its tensors, and the ways to compute it.
pub(super) struct Tensors<'a> {
    gpu: &'a Gpu,
    sizes: AttentionSizes,
    element: ElementType,
    q: View,
    k: View,
    v: View,
    embeddings: View,
    out: View,
}

impl<'a> Tensors<'a> {
    pub fn new(gpu: &'a Gpu, sizes: &AttentionSizes) -> Result<Self> {
        Self::stored(gpu, sizes, ElementType::F32)
    }

    /// With all tensors in an element type.
    pub fn stored(gpu: &'a Gpu, sizes: &AttentionSizes, element: ElementType) -> Result<Self> {
        sizes.check(gpu)?;
        let AttentionSizes { tokens, keys, heads, kv_heads, head_dim, positions, .. } = *sizes;
        let shape = |tokens: u32, heads: u32| [1, tokens as usize, heads as usize, head_dim as usize];
        let tensor = |tokens, heads| noise_as(gpu, element, shape(tokens, heads));
        Ok(Self {
            gpu,
            sizes: *sizes,
            element,
            q: tensor(tokens, heads)?,
            k: tensor(keys, kv_heads)?,
            v: tensor(keys, kv_heads)?,
            embeddings: noise_as(gpu, element, [1, head_dim as usize, 1, positions as usize])?,
            out: gpu.zeros(element, shape(tokens, heads))?,
        })
    }

    fn plain(&self) -> Attention<View> {
        Attention::new(&self.q, &self.k, &self.v).causal()
    }

    fn cope(&self) -> Attention<View> {
        self.plain().cope(ContextualPe::new(&self.embeddings))
    }

    /// With queries and keys that are rotated as they are loaded; `None` for heads that no rotation is made for.
    fn rotated(&self) -> Result<Option<Attention<View>>> {
        /// Twice as many channels as a rotation on the way in has pairs.
        const MOST: u32 = 512;
        if !self.sizes.head_dim.is_multiple_of(2) || self.sizes.head_dim > MOST {
            return Ok(None);
        }
        let rotation = Rotation::new(&Plain::new(10_000.0).frequencies(self.sizes.head_dim)?, Pairing::HalfSplit);
        Ok(Some(self.plain().rotate(rotation)))
    }

    fn operation(&self, name: &'static str, flop: u64, scratch: usize, prepared: Prepared) -> Operation {
        let bytes = self.sizes.tensor_bytes() / 4 * self.element.bytes() as u64;
        Operation {
            flop: Some(flop),
            memory: Some(bytes + 4 * scratch as u64),
            ..Operation::prepared(name, bytes, prepared)
        }
    }

    fn fused(&self, name: &'static str, flop: u64, fused: &Fused) -> Result<Operation> {
        Ok(self.operation(name, flop, fused.scratch_elements(self.gpu)?, fused.prepare(self.gpu)?))
    }

    fn unfused(&self, name: &'static str, flop: u64, request: &Attention<View>) -> Result<Operation> {
        let unfused = Unfused::new(request, &self.out);
        Ok(self.operation(name, flop, unfused.scratch_elements(self.gpu)?, unfused.prepare(self.gpu)?))
    }

    fn contextual_flop(&self) -> u64 {
        self.sizes.flop() + self.sizes.contextual_flop()
    }

    /// As the library chooses, without contextual encoding and with it.
    pub fn fused_as_chosen(&self) -> Result<[Operation; 2]> {
        self.fused_by(["fused, plain", "fused, CoPE"], None)
    }

    /// Without contextual encoding and with it, by a schedule or by the one that the library chooses.
    pub fn fused_by(&self, names: [&'static str; 2], schedule: Option<Schedule>) -> Result<[Operation; 2]> {
        let by = |name, flop, request| {
            let fused = Fused::new(&request, &self.out);
            self.fused(name, flop, &schedule.map_or(fused.clone(), |schedule| fused.schedule(schedule)))
        };
        let [plain, cope] = names;
        Ok([by(plain, self.sizes.flop(), self.plain())?, by(cope, self.contextual_flop(), self.cope())?])
    }

    /// Rotating counts as nothing.
    fn fused_rotated(&self) -> Result<Option<Operation>> {
        let name = "fused, plain, rotated on the way in";
        let fused = |request| self.fused(name, self.sizes.flop(), &Fused::new(&request, &self.out));
        self.rotated()?.map(fused).transpose()
    }

    /// A kernel that does nothing but read the cache, in f32.
    fn read(&self) -> Result<Operation> {
        let read = Read::new(self.gpu, &[&self.k, &self.v])?;
        let bytes = 2 * self.k.layout().elements() as u64 * 4;
        Ok(Operation::new("reading keys and values", bytes, move |pass| read.record(pass)))
    }
}

/// Every operation on the same buffers, and for a prompt a square matrix product of about as many operations, in the
/// kernel that the library has for linear layers on this device.
///
/// # Errors
/// [`Setting`](phasor::ErrorKind::Setting) and [`Limit`](phasor::ErrorKind::Limit) for impossible sizes, and those
/// of the device.
pub fn attention_operations(gpu: &Gpu, sizes: &AttentionSizes) -> Result<Vec<Operation>> {
    let tensors = Tensors::new(gpu, sizes)?;
    let [plain, cope] = tensors.fused_as_chosen()?;
    let mut all = match sizes.is_decode() {
        true => vec![tensors.read()?.baseline(), plain],
        false => vec![matrix_product(gpu, sizes.flop())?, plain.baseline()],
    };
    all.push(cope);
    all.extend(tensors.fused_rotated()?);
    if sizes.unfused {
        all.push(tensors.unfused("unfused, plain", sizes.flop(), &tensors.plain())?);
        all.push(tensors.unfused("unfused, CoPE", tensors.contextual_flop(), &tensors.cope())?);
    }
    Ok(all)
}

/// Times every operation in turn.
///
/// # Errors
/// [`Setting`](phasor::ErrorKind::Setting) and [`Limit`](phasor::ErrorKind::Limit) for impossible sizes, and those
/// of the device.
pub async fn attention(gpu: &Gpu, sizes: AttentionSizes, progress: Progress<'_>) -> Result<Measurement> {
    measure(gpu, Subject::Attention(sizes), || attention_operations(gpu, &sizes), progress).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_under_a_causal_mask_are_counted() {
        let one_head = |tokens, keys| AttentionSizes { tokens, keys, heads: 1, ..AttentionSizes::prompt(1) };
        assert_eq!(one_head(4, 4).pairs(), 1 + 2 + 3 + 4);
        assert_eq!(one_head(2, 9).pairs(), 8 + 9);
        assert_eq!(AttentionSizes::decode(9).pairs(), 8 * 9);
        assert_eq!(AttentionSizes::prompt(4).tensor_bytes(), 4 * 4 * 8 * 64 * 4);
    }
}
