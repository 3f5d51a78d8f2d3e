//! Pipelines, each built on first use and found again by its variant.

use super::{Access, Gpu, Shader};
use crate::Result;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// One pipeline's place: filled once, by whichever thread comes first, while others that need it wait.
type Place = Arc<OnceLock<Result<Arc<wgpu::ComputePipeline>>>>;

/// A variant by its shader's name and the bits of its constants, and its pipeline's place.
#[derive(Debug)]
struct Entry {
    name: String,
    constants: Vec<(&'static str, u64)>,
    place: Place,
}

/// A device has some dozens of pipelines at most.
#[derive(Debug, Default)]
pub(super) struct Pipelines(Mutex<Vec<Entry>>);

impl Pipelines {
    pub(super) fn get(&self, gpu: &Gpu, shader: &Shader) -> Result<Arc<wgpu::ComputePipeline>> {
        self.get_or_build(shader, || build(gpu, shader))
    }

    fn get_or_build(
        &self,
        shader: &Shader,
        build: impl FnOnce() -> Result<wgpu::ComputePipeline>,
    ) -> Result<Arc<wgpu::ComputePipeline>> {
        // The lock is held to find the place, not to compile: threads that build other pipelines go on.
        let place = self.place(shader);
        let pipeline = place.get_or_init(|| build().map(Arc::new)).clone();
        if pipeline.is_err() {
            // A device without room today may have some tomorrow.
            self.entries().retain(|entry| !Arc::ptr_eq(&entry.place, &place));
        }
        pipeline
    }

    fn place(&self, shader: &Shader) -> Place {
        let constants = || shader.constants.iter().map(|&(name, value)| (name, value.to_bits()));
        let mut entries = self.entries();
        let known =
            entries.iter().find(|entry| entry.name == shader.name && entry.constants.iter().copied().eq(constants()));
        if let Some(entry) = known {
            return entry.place.clone();
        }
        let place = Place::default();
        entries.push(Entry { name: shader.name.clone(), constants: constants().collect(), place: place.clone() });
        place
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn build(gpu: &Gpu, shader: &Shader) -> Result<wgpu::ComputePipeline> {
    shader.expect_buffers(gpu.limits().max_storage_buffers_per_shader_stage)?;
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
        let (module, constants) = match gpu.0.compile {
            Some(compile) => (compile(device, shader), &[][..]),
            None => (from_text(device, shader), shader.constants.as_slice()),
        };
        device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label,
            layout: Some(&layout),
            module: &module,
            entry_point: Some(Shader::ENTRY),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants,
                ..wgpu::PipelineCompilationOptions::default()
            },
            cache: None,
        })
    })
}

fn from_text(device: &wgpu::Device, shader: &Shader) -> wgpu::ShaderModule {
    device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some(&shader.name),
        source: wgpu::ShaderSource::Wgsl(shader.wgsl.as_str().into()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels;
    use std::sync::{Barrier, mpsc};
    use std::time::Duration;

    #[test]
    fn threads_that_need_a_pipeline_at_once_get_the_same_one() -> Result<()> {
        let gpu = Gpu::request_blocking()?;
        let shaders = kernels::all();
        let (shader, other) = (&shaders[0], &shaders[1]);
        let together = Barrier::new(4);
        let pipelines: Vec<_> = std::thread::scope(|scope| {
            let get = || {
                together.wait();
                gpu.pipeline(shader)
            };
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(get)).collect();
            workers.into_iter().map(|worker| worker.join().expect("no thread gives up")).collect::<Result<_>>()
        })?;
        assert!(pipelines.iter().all(|pipeline| Arc::ptr_eq(pipeline, &pipelines[0])));
        assert!(!Arc::ptr_eq(&gpu.pipeline(other)?, &pipelines[0]));
        Ok(())
    }

    /// While one thread compiles, others find and build what they need.
    #[test]
    fn a_pipeline_that_is_being_built_holds_up_no_other() -> Result<()> {
        let gpu = Gpu::request_blocking()?;
        let shaders = kernels::all();
        let (send, receive) = mpsc::channel();
        let other = std::thread::scope(|scope| {
            let mut other = None;
            gpu.0.pipelines.get_or_build(&shaders[0], || {
                scope.spawn(|| send.send(gpu.pipeline(&shaders[1]).is_ok()));
                // A minute is ample, and what is held up goes on after it.
                other = Some(receive.recv_timeout(Duration::from_secs(60)));
                build(&gpu, &shaders[0])
            })?;
            Ok(other)
        })?;
        assert_eq!(other, Some(Ok(true)));
        Ok(())
    }
}
