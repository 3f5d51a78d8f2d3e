//! `shaders/read_flat.wgsl`: what reading alone costs.

use super::kernel::{Dispatch, dispatch};
use bytemuck::{Pod, Zeroable};
use phasor::{ElementType, Gpu, Result, View};

const WGSL: &str = include_str!("../../../shaders/read_flat.wgsl");

const WORKGROUP: u32 = 64;

/// The uniform, as the shader declares it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Params {
    words: u32,
    run: u32,
    row: u32,
    _pad: u32,
}

/// A reading of tensors from their first word to their last, ready to be recorded.
pub(super) struct Read(Vec<Dispatch>);

impl Read {
    /// Each in runs of words to an invocation, as many as it would read of keys that are split over invocations.
    pub fn new(gpu: &Gpu, tensors: &[&View]) -> Result<Self> {
        let of = |tensor: &&View| {
            let words = tensor.layout().elements().div_ceil(4) as u32;
            let run = if gpu.is_software() { 256 } else { 8 };
            let groups = words.div_ceil(run * WORKGROUP).max(1);
            let across = groups.min(1 << 15);
            let params = Params { words, run, row: across * WORKGROUP, _pad: 0 };
            let sums = gpu.zeros(ElementType::F32, [1, 1, groups as usize, 4])?;
            let constants = [("WG_SIZE", WORKGROUP.into())];
            let down = groups.div_ceil(across);
            Ok(dispatch(gpu, WGSL, &constants, bytemuck::bytes_of(&params), &[tensor, &sums], [across, down, 1]))
        };
        Ok(Self(tensors.iter().map(of).collect::<Result<_>>()?))
    }

    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        self.0.iter().for_each(|dispatch| dispatch.record(pass));
    }
}
