//! Pipelines, each built on first use and found again by its variant.

use super::{Access, Gpu, Shader};
use crate::Result;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A shader's name and the bits of its constants.
type Key = (String, Vec<(&'static str, u64)>);

/// One pipeline's place: filled once, by whichever thread comes first, while others that need it wait.
type Place = Arc<OnceLock<Result<Arc<wgpu::ComputePipeline>>>>;

#[derive(Debug, Default)]
pub(super) struct Pipelines(Mutex<HashMap<Key, Place>>);

impl Pipelines {
    pub(super) fn get(&self, gpu: &Gpu, shader: &Shader) -> Result<Arc<wgpu::ComputePipeline>> {
        let key =
            (shader.name.clone(), shader.constants.iter().map(|&(name, value)| (name, value.to_bits())).collect());
        // The lock is held to find the place, not to compile: threads that build other pipelines go on.
        let places = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places().entry(key.clone()).or_default().clone();
        let pipeline = place.get_or_init(|| build(gpu, shader).map(Arc::new)).clone();
        if pipeline.is_err() {
            // A device without room today may have some tomorrow.
            places().remove(&key);
        }
        pipeline
    }
}

fn build(gpu: &Gpu, shader: &Shader) -> Result<wgpu::ComputePipeline> {
    let label = Some(shader.name.as_str());
    gpu.guarded(&shader.name, 0, |device| {
        let entries: Vec<_> =
            shader.bindings.iter().map(|binding| layout_entry(binding.index, binding.access)).collect();
        let group = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries: &entries });
        let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label,
            bind_group_layouts: &[Some(&group)],
            ..wgpu::PipelineLayoutDescriptor::default()
        });
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label,
            source: wgpu::ShaderSource::Wgsl(shader.wgsl.as_str().into()),
        });
        device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label,
            layout: Some(&layout),
            module: &module,
            entry_point: Some(Shader::ENTRY),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &shader.constants,
                ..wgpu::PipelineCompilationOptions::default()
            },
            cache: None,
        })
    })
}

fn layout_entry(binding: u32, access: Access) -> wgpu::BindGroupLayoutEntry {
    let ty = match access {
        Access::Uniform => wgpu::BufferBindingType::Uniform,
        Access::Read => wgpu::BufferBindingType::Storage { read_only: true },
        Access::ReadWrite => wgpu::BufferBindingType::Storage { read_only: false },
    };
    wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    }
}
