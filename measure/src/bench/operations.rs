//! What is measured, each ready to be recorded.

use super::Sizes;
use super::copy::Copy;
use phasor::frequencies::Plain;
use phasor::{Gpu, Pairing, Prepared, Result, Rope, RopeTable, Rotate, View};

/// One operation, ready to be recorded.
pub struct Operation {
    /// What it does.
    pub name: &'static str,
    /// Bytes that it must read and write.
    pub bytes: u64,
    pub(super) kind: Kind,
}

/// What an operation is measured for.
pub(super) enum Kind {
    Copy(Copy),
    Rotation(Prepared),
    Table(RopeTable),
}

impl Operation {
    /// Records it into a pass.
    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        match &self.kind {
            Kind::Copy(copy) => copy.record(pass),
            Kind::Rotation(rotation) => rotation.record(pass),
            Kind::Table(table) => table.record(pass),
        }
    }
}

/// Every operation on the same buffers.
///
/// The copy comes in three shapes, since a copy is only a measure if it is a good one: word after word, with all heads of
/// a token to an invocation, and with one key head and its query heads.
///
/// # Errors
/// [`Error::Setting`](phasor::Error::Setting) and [`Error::Limit`](phasor::Error::Limit) for impossible sizes, and those
/// of the device.
pub fn operations(gpu: &Gpu, sizes: &Sizes) -> Result<Vec<Operation>> {
    sizes.check(gpu)?;
    let (q, k) = (noise(gpu, sizes, sizes.heads)?, noise(gpu, sizes, sizes.kv_heads)?);
    let frequencies = Plain::new(10_000.0).frequencies(sizes.head_dim)?;
    let tensors = 2 * sizes.tensor_bytes();
    let table_bytes = u64::from(sizes.tokens) * u64::from(sizes.head_dim) * 4;
    let copy = |name, copy| Operation { name, bytes: tensors, kind: Kind::Copy(copy) };
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
        let rotation = |rotate: &Rotate| rope.prepare(rotate).map(Kind::Rotation);
        all.push(Operation { name: without, bytes: tensors, kind: rotation(&rotate)? });
        let with_table = rotation(&rotate.from_table(&table))?;
        all.push(Operation { name: with, bytes: tensors + table_bytes, kind: with_table });
        if pairing == Pairing::HalfSplit {
            all.push(Operation { name: "table", bytes: table_bytes, kind: Kind::Table(table) });
        } else {
            // The other pairing's table is filled by nobody else.
            gpu.submit(|pass| table.record(pass))?;
        }
    }
    Ok(all)
}

/// A tensor of numbers from -1 to 1: zeros might be cheaper than what models hold.
fn noise(gpu: &Gpu, sizes: &Sizes, heads: u32) -> Result<View> {
    let shape = [1, sizes.tokens as usize, heads as usize, sizes.head_dim as usize];
    let mut random = fastrand::Rng::with_seed(heads.into());
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| random.f32() * 2.0 - 1.0).collect();
    gpu.upload(&values, shape)
}
