//! A prepared operation: pipelines and bind groups, ready to be recorded any number of times.

use super::{Gpu, Shader};
use crate::Result;
use std::sync::Arc;

/// An operation whose checks, pipeline and bind groups are done. Recording it allocates nothing.
///
/// It holds on to the buffers that it works on. It is `Send` and `Sync`: record it from any thread.
#[derive(Debug, Clone)]
#[must_use = "a prepared operation does nothing until it is recorded"]
pub struct Prepared {
    dispatches: Arc<[Recorded]>,
}

#[derive(Debug, Clone)]
struct Recorded {
    shader: Arc<Shader>,
    pipeline: Arc<wgpu::ComputePipeline>,
    bind_group: wgpu::BindGroup,
    groups: [u32; 3],
}

/// A buffer range for one binding.
#[derive(Debug, Clone)]
pub(crate) struct Slot<'a> {
    pub index: u32,
    pub buffer: &'a wgpu::Buffer,
    /// In bytes, aligned as the device wants storage offsets.
    pub offset: u64,
    /// In bytes, a multiple of four.
    pub size: u64,
}

/// One dispatch before its bind group exists.
pub(crate) struct Dispatch<'a> {
    /// The bytes of the uniform at binding 0.
    pub params: Vec<u8>,
    pub slots: Vec<Slot<'a>>,
    pub groups: [u32; 3],
}

impl Prepared {
    pub(crate) fn new(gpu: &Gpu, shader: &Shader, dispatches: &[Dispatch<'_>]) -> Result<Self> {
        if dispatches.is_empty() {
            return Ok(Self::nothing());
        }
        let pipeline = gpu.pipeline(shader)?;
        let shared = Arc::new(shader.clone());
        let dispatches = dispatches
            .iter()
            .map(|dispatch| {
                let bytes = dispatch.params.len() as u64;
                let bind_group =
                    gpu.guarded(&shader.name, bytes, |device| bind(device, &pipeline, shader, dispatch))?;
                Ok(Recorded { shader: shared.clone(), pipeline: pipeline.clone(), bind_group, groups: dispatch.groups })
            })
            .collect::<Result<_>>()?;
        Ok(Self { dispatches })
    }

    /// What an empty tensor needs.
    pub(crate) fn nothing() -> Self {
        Self { dispatches: [].into() }
    }

    /// One after the other: for work whose parts need bindings of different kinds.
    pub(crate) fn then(self, next: Self) -> Self {
        Self { dispatches: self.dispatches.iter().chain(next.dispatches.iter()).cloned().collect() }
    }

    /// Records the operation into a compute pass. May be called again and again, in this pass and in others.
    ///
    /// It sets the pass's pipeline and bind group 0, and leaves them set.
    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        for dispatch in self.dispatches.iter() {
            let [x, y, z] = dispatch.groups;
            pass.set_pipeline(&dispatch.pipeline);
            pass.set_bind_group(0, &dispatch.bind_group, &[]);
            pass.dispatch_workgroups(x, y, z);
        }
    }

    /// How many dispatches a recording takes: one, unless a limit of the device made it necessary to split the work;
    /// none for empty tensors.
    #[must_use]
    pub fn dispatches(&self) -> usize {
        self.dispatches.len()
    }

    /// The shader of each dispatch, so that one can see which variant was chosen.
    pub fn shaders(&self) -> impl Iterator<Item = &Shader> {
        self.dispatches.iter().map(|dispatch| &*dispatch.shader)
    }
}

fn bind(
    device: &wgpu::Device,
    pipeline: &wgpu::ComputePipeline,
    shader: &Shader,
    dispatch: &Dispatch<'_>,
) -> wgpu::BindGroup {
    let params = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("phasor parameters"),
        size: dispatch.params.len() as u64,
        usage: wgpu::BufferUsages::UNIFORM,
        mapped_at_creation: true,
    });
    // On a lost device nothing is mapped; the error scope around this call says so.
    if let Ok(mut mapped) = params.slice(..).get_mapped_range_mut() {
        mapped.copy_from_slice(&dispatch.params);
    }
    params.unmap();
    let uniform = wgpu::BindGroupEntry { binding: 0, resource: params.as_entire_binding() };
    let storage = dispatch.slots.iter().map(|slot| wgpu::BindGroupEntry {
        binding: slot.index,
        resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: slot.buffer,
            offset: slot.offset,
            size: wgpu::BufferSize::new(slot.size),
        }),
    });
    let entries: Vec<_> = std::iter::once(uniform).chain(storage).collect();
    device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some(shader.name.as_str()),
        layout: &pipeline.get_bind_group_layout(0),
        entries: &entries,
    })
}
