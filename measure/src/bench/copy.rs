//! `shaders/copy.wgsl`: what memory alone costs.

use super::Sizes;
use bytemuck::{Pod, Zeroable};
use phasor::{Gpu, View};

const WGSL: &str = include_str!("../../../shaders/copy.wgsl");

/// The uniform, as the shader declares it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Params {
    lanes: u32,
    q_heads: u32,
    k_heads: u32,
    tokens: u32,
    flip: u32,
    _pad: [u32; 3],
}

/// A copy of queries and keys in place, ready to be recorded.
pub(super) struct Copy {
    pipeline: wgpu::ComputePipeline,
    bind_group: wgpu::BindGroup,
    groups: [u32; 3],
}

impl Copy {
    /// `share` groups of heads work side by side: 1 for invocations that take every head of a token, which suits
    /// software devices, more for invocations that take few, which suits GPUs.
    pub fn new(gpu: &Gpu, sizes: &Sizes, q: &View, k: &View, share: u32) -> Self {
        let device = gpu.device();
        let lanes = sizes.head_dim / 8;
        // The rotation's workgroup: 256 invocations, lanes of a head first, and WebGPU's 64 in depth at most.
        let (wg_x, wg_z) = (lanes, (256 / lanes).min(64));
        let [q_heads, k_heads] = [sizes.heads, sizes.kv_heads].map(|heads| heads.div_ceil(share).max(1));
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some("copy"),
            source: wgpu::ShaderSource::Wgsl(WGSL.into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some("copy"),
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &[
                    ("WG_X", wg_x.into()),
                    ("WG_Z", wg_z.into()),
                    ("Q_HEADS", q_heads.into()),
                    ("K_HEADS", k_heads.into()),
                ],
                ..wgpu::PipelineCompilationOptions::default()
            },
            cache: None,
        });
        let params = Params {
            lanes,
            q_heads: sizes.heads,
            k_heads: sizes.kv_heads,
            tokens: sizes.tokens,
            flip: 0,
            _pad: [0; 3],
        };
        let uniform = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("copy parameters"),
            size: size_of::<Params>() as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        gpu.queue().write_buffer(&uniform, 0, bytemuck::bytes_of(&params));
        let entry = |binding, buffer: &wgpu::Buffer| (binding, buffer.clone());
        let buffers = [entry(0, &uniform), entry(1, q.buffer()), entry(2, k.buffer())];
        let entries: Vec<_> = buffers
            .iter()
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding: *binding, resource: buffer.as_entire_binding() })
            .collect();
        let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("copy"),
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let head_groups = sizes.heads.div_ceil(q_heads).max(sizes.kv_heads.div_ceil(k_heads));
        Self { pipeline, bind_group, groups: [lanes.div_ceil(wg_x), head_groups, sizes.tokens.div_ceil(wg_z)] }
    }

    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        let [x, y, z] = self.groups;
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.bind_group, &[]);
        pass.dispatch_workgroups(x, y, z);
    }
}
