//! `shaders/copy.wgsl` and `shaders/copy_flat.wgsl`: what memory alone costs.

use super::Sizes;
use super::kernel::{Dispatch, dispatch};
use bytemuck::{Pod, Zeroable};
use phasor::{Gpu, View};

const SHAPED: &str = include_str!("../../../shaders/copy.wgsl");
const FLAT: &str = include_str!("../../../shaders/copy_flat.wgsl");

/// The uniform of the shaped copy, as its shader declares it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Shaped {
    lanes: u32,
    q_heads: u32,
    k_heads: u32,
    tokens: u32,
    flip: u32,
    _pad: [u32; 3],
}

/// The uniform of the flat copy, as its shader declares it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Flat {
    words: u32,
    row: u32,
    flip: u32,
    _pad: u32,
}

/// A copy of queries and keys in place, ready to be recorded.
pub(super) struct Copy(Vec<Dispatch>);

impl Copy {
    /// In the rotation's shape. `share` groups of heads work side by side: 1 for invocations that take every head of a
    /// token, which suits software devices, more for invocations that take few, which suits GPUs.
    pub fn shaped(gpu: &Gpu, sizes: &Sizes, q: &View, k: &View, share: u32) -> Self {
        let lanes = sizes.head_dim / 8;
        // The rotation's workgroup: 256 invocations, lanes of a head first, and WebGPU's 64 in depth at most.
        let (wg_x, wg_z) = (lanes, (256 / lanes).min(64));
        let [q_heads, k_heads] = [sizes.heads, sizes.kv_heads].map(|heads| heads.div_ceil(share).max(1));
        let constants =
            [("WG_X", wg_x.into()), ("WG_Z", wg_z.into()), ("Q_HEADS", q_heads.into()), ("K_HEADS", k_heads.into())];
        let params = Shaped {
            lanes,
            q_heads: sizes.heads,
            k_heads: sizes.kv_heads,
            tokens: sizes.tokens,
            flip: 0,
            _pad: [0; 3],
        };
        let head_groups = sizes.heads.div_ceil(q_heads).max(sizes.kv_heads.div_ceil(k_heads));
        let groups = [lanes.div_ceil(wg_x), head_groups, sizes.tokens.div_ceil(wg_z)];
        Self(vec![dispatch(gpu, SHAPED, &constants, bytemuck::bytes_of(&params), &[q, k], groups)])
    }

    /// Each tensor from its first word to its last.
    pub fn flat(gpu: &Gpu, q: &View, k: &View) -> Self {
        const WORKGROUP: u32 = 256;
        const GROUPS_IN_A_ROW: u32 = 64;
        let of = |tensor: &View| {
            let words = tensor.layout().elements().div_ceil(4) as u32;
            let params = Flat { words, row: WORKGROUP * GROUPS_IN_A_ROW, flip: 0, _pad: 0 };
            let groups = [GROUPS_IN_A_ROW, words.div_ceil(8 * WORKGROUP * GROUPS_IN_A_ROW), 1];
            dispatch(gpu, FLAT, &[("WG_X", WORKGROUP.into())], bytemuck::bytes_of(&params), &[tensor], groups)
        };
        Self(vec![of(q), of(k)])
    }

    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        self.0.iter().for_each(|dispatch| dispatch.record(pass));
    }
}
