//! Rotation and table, beside a copy of the same bytes.

use super::copy::Copy;
use super::{Measurement, Operation, Subject, measure, noise};
use crate::Progress;
use phasor::frequencies::Plain;
use phasor::{Error, ErrorKind, Gpu, Pairing, Result, Rope, Rotate};
use serde::{Deserialize, Serialize};

/// The tensors to measure on, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Tokens of the one batch row.
    pub tokens: u32,
    /// Query heads.
    pub heads: u32,
    /// Key heads.
    pub kv_heads: u32,
    /// Channels of a head: a multiple of 8.
    pub head_dim: u32,
    /// How often each operation is timed.
    pub rounds: u32,
}

impl Default for Sizes {
    /// A prompt of 2,048 tokens in a model of 7 or 8 billion parameters, as Llama 3 and Mistral have it.
    fn default() -> Self {
        Self { tokens: 2048, heads: 32, kv_heads: 8, head_dim: 128, rounds: 30 }
    }
}

impl Sizes {
    /// Bytes of queries and keys together.
    #[must_use]
    pub fn tensor_bytes(&self) -> u64 {
        let heads = u64::from(self.heads) + u64::from(self.kv_heads);
        u64::from(self.tokens).saturating_mul(heads).saturating_mul(u64::from(self.head_dim)).saturating_mul(4)
    }

    /// Refuses what no copy kernel could be shaped for, or the device does not hold in one binding.
    pub(super) fn check(&self, gpu: &Gpu) -> Result<()> {
        let setting =
            |field: &str, was: u32, may_be: &str| Err(Error::new(ErrorKind::Setting, field, was.to_string(), may_be));
        for (field, was) in
            [("tokens", self.tokens), ("heads", self.heads), ("kv-heads", self.kv_heads), ("rounds", self.rounds)]
        {
            if was == 0 {
                return setting(field, was, "at least 1");
            }
        }
        if self.head_dim == 0 || !self.head_dim.is_multiple_of(8) || self.head_dim > 512 {
            return setting("head-dim", self.head_dim, "a multiple of 8 up to 512");
        }
        if self.tokens > 65_535 {
            return setting("tokens", self.tokens, "at most 65535");
        }
        let largest = u64::from(self.tokens) * u64::from(self.heads.max(self.kv_heads)) * u64::from(self.head_dim) * 4;
        let allowed = gpu.limits().max_storage_buffer_binding_size;
        if largest > allowed {
            return Err(Error::new(
                ErrorKind::Limit,
                "max_storage_buffer_binding_size",
                format!("{largest} bytes for {} tokens", self.tokens),
                format!("up to {allowed} bytes on this device"),
            ));
        }
        Ok(())
    }
}

/// Every operation on the same buffers.
///
/// The copy comes in three shapes, since a copy is only a measure if it is a good one: word after word, with all heads of
/// a token to an invocation, and with one key head and its query heads.
///
/// # Errors
/// [`Setting`](phasor::ErrorKind::Setting) and [`Limit`](phasor::ErrorKind::Limit) for impossible sizes, and those
/// of the device.
pub fn operations(gpu: &Gpu, sizes: &Sizes) -> Result<Vec<Operation>> {
    sizes.check(gpu)?;
    let tensor = |heads: u32| noise(gpu, [1, sizes.tokens as usize, heads as usize, sizes.head_dim as usize]);
    let (q, k) = (tensor(sizes.heads)?, tensor(sizes.kv_heads)?);
    let frequencies = Plain::new(10_000.0).frequencies(sizes.head_dim)?;
    let tensors = 2 * sizes.tensor_bytes();
    let table_bytes = u64::from(sizes.tokens) * u64::from(sizes.head_dim) * 4;
    let copy = |name, copy: Copy| Operation::new(name, tensors, move |pass| copy.record(pass)).baseline();
    let shaped = |share| Copy::shaped(gpu, sizes, &q, &k, share);
    let mut all = vec![
        copy("copy, flat", Copy::flat(gpu, &q, &k)),
        copy("copy, all heads to an invocation", shaped(1)),
        copy("copy, few heads to an invocation", shaped(sizes.kv_heads)),
    ];
    for (pairing, without, with) in [
        (Pairing::HalfSplit, "rotation, half-split, no table", "rotation, half-split, table"),
        (Pairing::Interleaved, "rotation, interleaved, no table", "rotation, interleaved, table"),
    ] {
        let rope = Rope::new(gpu, &frequencies, pairing)?;
        let table = rope.table(0, sizes.tokens as usize)?;
        let rotate = Rotate::in_place(&q).and_in_place(&k);
        let plain = rope.prepare(&rotate)?;
        all.push(Operation::prepared(without, tensors, plain));
        let with_table = rope.prepare(&rotate.from_table(&table))?;
        all.push(Operation::prepared(with, tensors + table_bytes, with_table));
        if pairing == Pairing::HalfSplit {
            all.push(Operation::new("table", table_bytes, move |pass| table.record(pass)));
        } else {
            // The other pairing's table is filled by nobody else.
            gpu.submit(|pass| table.record(pass))?;
        }
    }
    Ok(all)
}

/// Times every operation in turn.
///
/// # Errors
/// [`Setting`](phasor::ErrorKind::Setting) and [`Limit`](phasor::ErrorKind::Limit) for impossible sizes, and those of the
/// device.
pub async fn rotation(gpu: &Gpu, sizes: Sizes, progress: Progress<'_>) -> Result<Measurement> {
    measure(gpu, Subject::Rotation(sizes), || operations(gpu, &sizes), progress).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_counted_in_bytes() {
        assert_eq!(Sizes::default().tensor_bytes(), 2048 * 40 * 128 * 4);
    }
}
