//! Finding an adapter for those who have no device yet.

use super::Gpu;
use crate::{Error, ErrorKind, Result};

/// All adapters on this machine, through every backend that was compiled in. In a browser: the one it offers.
pub async fn adapters() -> Vec<wgpu::Adapter> {
    instance().enumerate_adapters(wgpu::Backends::all()).await
}

/// This machine's best adapter: the fastest GPU, else whatever there is.
///
/// # Errors
/// [`ErrorKind::NoAdapter`] if there is none, with what to install.
pub async fn best_adapter() -> Result<wgpu::Adapter> {
    let options = wgpu::RequestAdapterOptions {
        power_preference: wgpu::PowerPreference::HighPerformance,
        ..wgpu::RequestAdapterOptions::default()
    };
    instance().request_adapter(&options).await.map_err(|e| {
        let reason = format!(
            "{e}. Install the GPU's Vulkan driver, or a software one (Debian and Ubuntu: `apt-get install \
             mesa-vulkan-drivers`); in a browser, use one with WebGPU turned on"
        );
        Error::new(ErrorKind::NoAdapter, "", reason, "")
    })
}

/// The features that make phasor faster where an adapter has them, and that it does without elsewhere: subgroup
/// operations, and timestamps to measure by.
#[must_use]
pub fn useful_features() -> wgpu::Features {
    wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::SUBGROUP
}

fn instance() -> wgpu::Instance {
    // WGPU_BACKEND, WGPU_ADAPTER_NAME and the like are heeded, as users of wgpu expect.
    #[cfg(not(target_family = "wasm"))]
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    // A page has no environment.
    #[cfg(target_family = "wasm")]
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    wgpu::Instance::new(descriptor)
}

impl Gpu {
    /// Makes a device on the [`best_adapter`].
    ///
    /// # Errors
    /// [`ErrorKind::NoAdapter`] if there is none, with what to install;
    /// [`ErrorKind::Device`] if it gives no device.
    pub async fn request() -> Result<Self> {
        Self::on(&best_adapter().await?).await
    }

    /// Makes a device on this adapter, with the adapter's own limits and the features that phasor can use.
    ///
    /// # Errors
    /// [`ErrorKind::Device`] if the adapter gives no device.
    pub async fn on(adapter: &wgpu::Adapter) -> Result<Self> {
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("phasor"),
            required_features: adapter.features() & useful_features(),
            required_limits: adapter.limits(),
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = adapter.request_device(&descriptor).await.map_err(|e| {
            Error::new(ErrorKind::Device, format!("a device on {}", adapter.get_info().name), e.to_string(), "")
        })?;
        Ok(Self::adopt(&device, &queue))
    }

    /// [`Gpu::request`], waiting for the answer.
    ///
    /// # Errors
    /// As [`Gpu::request`].
    #[cfg(not(target_family = "wasm"))]
    pub fn request_blocking() -> Result<Self> {
        pollster::block_on(Self::request())
    }

    /// [`Gpu::on`], waiting for the answer.
    ///
    /// # Errors
    /// As [`Gpu::on`].
    #[cfg(not(target_family = "wasm"))]
    pub fn on_blocking(adapter: &wgpu::Adapter) -> Result<Self> {
        pollster::block_on(Self::on(adapter))
    }
}
