//! Kernels that are no part of the library: what its own are measured against.

use phasor::{Gpu, View};

/// One dispatch, ready to be recorded.
pub(super) struct Dispatch {
    pipeline: wgpu::ComputePipeline,
    bind_group: wgpu::BindGroup,
    groups: [u32; 3],
}

impl Dispatch {
    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        let [x, y, z] = self.groups;
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.bind_group, &[]);
        pass.dispatch_workgroups(x, y, z);
    }
}

/// Binds parameters at 0 and tensors from 1 on.
pub(super) fn dispatch(
    gpu: &Gpu,
    wgsl: &str,
    constants: &[(&str, f64)],
    params: &[u8],
    tensors: &[&View],
    groups: [u32; 3],
) -> Dispatch {
    let device = gpu.device();
    let label = Some("copy");
    let module = device
        .create_shader_module(wgpu::ShaderModuleDescriptor { label, source: wgpu::ShaderSource::Wgsl(wgsl.into()) });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label,
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions {
            constants,
            ..wgpu::PipelineCompilationOptions::default()
        },
        cache: None,
    });
    let uniform = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("copy parameters"),
        size: params.len() as u64,
        usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    gpu.queue().write_buffer(&uniform, 0, params);
    let buffers = [&uniform].into_iter().chain(tensors.iter().map(|tensor| tensor.buffer()));
    let entries: Vec<_> = (0..)
        .zip(buffers)
        .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
        .collect();
    let layout = pipeline.get_bind_group_layout(0);
    let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor { label, layout: &layout, entries: &entries });
    Dispatch { pipeline, bind_group, groups }
}
