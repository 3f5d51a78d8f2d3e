//! The device and what lives on it: limits, pipelines, views of buffers, and a thin layer to upload, run and read back.

mod adapter;
mod guard;
mod pipelines;
mod prepared;
mod shader;
mod transfer;
mod view;

pub use adapter::{adapters, best_adapter, useful_features};
pub use prepared::Prepared;
pub use shader::{Access, Binding, Shader, shaders};
pub use view::View;

pub(crate) use prepared::{Dispatch, Slot};

use crate::Result;
use std::sync::Arc;

/// A device and its queue, with the limits read once and every pipeline built once.
///
/// Cheap to clone, and the same from any thread: all that is made from one `Gpu` shares its pipelines.
///
/// # Compiling ahead
/// Preparing an operation compiles the pipelines that it is the first to need, and nothing holds up threads that compile
/// others: an application that prepares what it will use on several threads, while it loads its weights, has them all
/// when the first token comes. Threads that need the same pipeline get the same one.
///
/// ```no_run
/// use phasor::attention::{Attention, Fused, Projection};
/// use phasor::{Gpu, Result, View};
/// # fn engine(gpu: Gpu, [x, weight, q, k, v, out]: [View; 6]) -> Result<()> {
/// let (projection, attention) = std::thread::scope(|scope| {
///     let projection = scope.spawn(|| Projection::new(&x, &weight, &q).prepare(&gpu));
///     let attention = Fused::new(&Attention::new(&q, &k, &v).causal(), &out).prepare(&gpu);
///     (projection.join().expect("no panic"), attention)
/// });
/// let (projection, attention) = (projection?, attention?);
/// # Ok(()) }
/// ```
///
/// How much that gains is the driver's affair: some compile one pipeline at a time (SwiftShader), some no earlier than in
/// the first dispatch (lavapipe), for which a recording over small tensors of the same kind does.
/// `cargo bench --bench preparing` measures it.
#[derive(Debug, Clone)]
pub struct Gpu(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    device: wgpu::Device,
    queue: wgpu::Queue,
    limits: wgpu::Limits,
    info: wgpu::AdapterInfo,
    compile: Option<Compile>,
    pipelines: pipelines::Pipelines,
}

/// Makes a shader's module by other means than from its text, its constants filled in.
type Compile = fn(&wgpu::Device, &Shader) -> wgpu::ShaderModule;

impl Gpu {
    /// Uses a device and queue that the caller has already. phasor needs no feature and no limit beyond WebGPU's
    /// lowest, sets no callback on the device, and only the upload and read-back helpers ever touch the queue.
    ///
    /// All buffers must be of the device's own [`wgpu::Instance`]: each instance numbers its buffers from the start, and a
    /// buffer of another one is taken for whichever has that number here. [`Gpu::request`] makes an instance at each call.
    ///
    /// It uses what the device was made with: with [`useful_features`] attention on a software device is several times
    /// faster, and with the adapter's own limits large tensors take fewer dispatches.
    ///
    /// ```no_run
    /// # async fn engine(adapter: wgpu::Adapter) -> Result<(), Box<dyn std::error::Error>> {
    /// let (device, queue) = adapter
    ///     .request_device(&wgpu::DeviceDescriptor {
    ///         required_features: adapter.features() & phasor::gpu::useful_features(),
    ///         required_limits: adapter.limits(),
    ///         ..wgpu::DeviceDescriptor::default()
    ///     })
    ///     .await?;
    /// let gpu = phasor::Gpu::adopt(&device, &queue);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn adopt(device: &wgpu::Device, queue: &wgpu::Queue) -> Self {
        Self::new(device, queue, None)
    }

    /// As [`Gpu::adopt`], with the modules that `compile` makes of the shaders: so the tests run what the compilers of
    /// other platforms make of them. No part of the interface that versions stand for.
    #[doc(hidden)]
    #[must_use]
    pub fn adopt_compiled_by(device: &wgpu::Device, queue: &wgpu::Queue, compile: Compile) -> Self {
        Self::new(device, queue, Some(compile))
    }

    fn new(device: &wgpu::Device, queue: &wgpu::Queue, compile: Option<Compile>) -> Self {
        Self(Arc::new(Inner {
            limits: device.limits(),
            info: device.adapter_info(),
            device: device.clone(),
            queue: queue.clone(),
            compile,
            pipelines: pipelines::Pipelines::default(),
        }))
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &wgpu::Device {
        &self.0.device
    }

    /// The queue.
    #[must_use]
    pub fn queue(&self) -> &wgpu::Queue {
        &self.0.queue
    }

    /// The limits that the device was made with.
    #[must_use]
    pub fn limits(&self) -> &wgpu::Limits {
        &self.0.limits
    }

    /// The adapter's name, driver and kind.
    #[must_use]
    pub fn info(&self) -> &wgpu::AdapterInfo {
        &self.0.info
    }

    /// Whether kernels run on the CPU's cores (lavapipe, SwiftShader, WARP), where other shapes are the fast ones.
    #[must_use]
    pub fn is_software(&self) -> bool {
        self.0.info.device_type == wgpu::DeviceType::Cpu
    }

    /// Whether kernels may use subgroup operations: the device was made with [`wgpu::Features::SUBGROUP`].
    #[must_use]
    pub fn has_subgroups(&self) -> bool {
        self.0.device.features().contains(wgpu::Features::SUBGROUP)
    }

    /// Makes sure that a kernel's pipeline exists.
    pub(crate) fn pipeline(&self, shader: &Shader) -> Result<Arc<wgpu::ComputePipeline>> {
        self.0.pipelines.get(self, shader)
    }
}
