//! Attention with contextual encoding and without, fused and with all logits in memory; decode steps beside a kernel that
//! only reads the cache.

use super::read::Read;
use super::{Measurement, Operation, Subject, measure, noise};
use crate::Progress;
use phasor::attention::{Attention, ContextualPe, Fused, Unfused};
use phasor::{ElementType, Error, Gpu, Prepared, Result, View};
use serde::Serialize;

/// The tensors to measure on, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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

    /// Bytes of queries, keys, values and output together.
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

    fn check(&self) -> Result<()> {
        let numbers = [
            ("tokens", self.tokens),
            ("keys", self.keys),
            ("heads", self.heads),
            ("kv-heads", self.kv_heads),
            ("head-dim", self.head_dim),
            ("positions", self.positions),
            ("rounds", self.rounds),
        ];
        let setting = |field: &str, was: u32, may_be: String| {
            Err(Error::Setting { field: field.into(), was: was.to_string(), may_be })
        };
        match numbers.into_iter().find(|(_, was)| *was == 0 || *was > 1 << 20) {
            Some((field, was)) => setting(field, was, format!("1 to {}", 1 << 20)),
            None if self.tokens > self.keys => setting("tokens", self.tokens, format!("at most keys, {}", self.keys)),
            None => Ok(()),
        }
    }
}

/// Every operation on the same buffers.
///
/// # Errors
/// [`Error::Setting`](phasor::Error::Setting) and [`Error::Limit`](phasor::Error::Limit) for impossible sizes, and those
/// of the device.
pub fn attention_operations(gpu: &Gpu, sizes: &AttentionSizes) -> Result<Vec<Operation>> {
    sizes.check()?;
    let AttentionSizes { tokens, keys, heads, kv_heads, head_dim, positions, .. } = *sizes;
    let tensor = |tokens: u32, heads: u32| noise(gpu, [1, tokens as usize, heads as usize, head_dim as usize]);
    let (q, k, v) = (tensor(tokens, heads)?, tensor(keys, kv_heads)?, tensor(keys, kv_heads)?);
    let embeddings = noise(gpu, [1, head_dim as usize, 1, positions as usize])?;
    let out = gpu.zeros(ElementType::F32, [1, tokens as usize, heads as usize, head_dim as usize])?;
    let plain = Attention::new(&q, &k, &v).causal();
    let cope = plain.clone().cope(ContextualPe::new(&embeddings));
    let operation = |name, flop: u64, scratch: usize, prepared: Prepared| Operation {
        flop: Some(flop),
        memory: Some(sizes.tensor_bytes() + 4 * scratch as u64),
        ..Operation::new(name, sizes.tensor_bytes(), move |pass| prepared.record(pass))
    };
    let fused = |name, flop, request: &Attention<View>| {
        let fused = Fused::new(request, &out);
        Ok::<_, Error>(operation(name, flop, fused.scratch_elements(gpu)?, fused.prepare(gpu)?))
    };
    let unfused = |name, flop, request: &Attention<View>| {
        let unfused = Unfused::new(request, &out);
        Ok::<_, Error>(operation(name, flop, unfused.scratch_elements(gpu)?, unfused.prepare(gpu)?))
    };
    let mut all = Vec::new();
    if sizes.is_decode() {
        let read = Read::new(gpu, &[&k, &v])?;
        let bytes = 2 * k.layout().elements() as u64 * 4;
        all.push(Operation::new("reading keys and values", bytes, move |pass| read.record(pass)).baseline());
    }
    let contextual_flop = sizes.flop() + sizes.contextual_flop();
    let fused_plain = fused("fused, plain", sizes.flop(), &plain)?;
    all.push(if sizes.is_decode() { fused_plain } else { fused_plain.baseline() });
    all.push(fused("fused, CoPE", contextual_flop, &cope)?);
    if sizes.unfused {
        all.push(unfused("unfused, plain", sizes.flop(), &plain)?);
        all.push(unfused("unfused, CoPE", contextual_flop, &cope)?);
    }
    Ok(all)
}

/// Times every operation in turn.
///
/// # Errors
/// [`Error::Setting`] and [`Error::Limit`] for impossible sizes, and those of the device.
pub async fn attention(gpu: &Gpu, sizes: AttentionSizes, progress: Progress<'_>) -> Result<Measurement> {
    measure(gpu, Subject::Attention(sizes), &attention_operations(gpu, &sizes)?, progress).await
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
