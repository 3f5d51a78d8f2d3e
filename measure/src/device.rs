//! Which device a result comes from.

use serde::{Deserialize, Serialize};

/// A device in words, as results carry it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The adapter's name as its driver gives it.
    pub name: String,
    /// The API that it is reached through: `vulkan`, `metal`, `dx12`, `webgpu`.
    pub backend: String,
    /// The driver and its version; empty in a browser, which does not tell.
    pub driver: String,
    /// `discrete GPU`, `integrated GPU`, `virtual GPU`, `software`, or `unknown`.
    pub kind: String,
    /// Whether kernels run on the CPU's cores.
    pub software: bool,
}

impl From<&wgpu::AdapterInfo> for Device {
    fn from(info: &wgpu::AdapterInfo) -> Self {
        let kind = match info.device_type {
            wgpu::DeviceType::DiscreteGpu => "discrete GPU",
            wgpu::DeviceType::IntegratedGpu => "integrated GPU",
            wgpu::DeviceType::VirtualGpu => "virtual GPU",
            wgpu::DeviceType::Cpu => "software",
            wgpu::DeviceType::Other => "unknown",
        };
        Self {
            name: info.name.clone(),
            backend: info.backend.to_str().into(),
            driver: format!("{} {}", info.driver, info.driver_info).trim().into(),
            kind: kind.into(),
            software: info.device_type == wgpu::DeviceType::Cpu,
        }
    }
}
