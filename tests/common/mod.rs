//! What the tests of every kernel share: one device, numbers to feed it, and values that other programs computed. Each uses some of it.

#![allow(dead_code)]

pub mod refused;

use phasor::{Gpu, Prepared, RopeTable};
use safetensors::SafeTensors;
use std::sync::OnceLock;

/// The adapter that this run is about; `VK_DRIVER_FILES` or wgpu's own variables choose it. With none the tests fail: a
/// run on nothing has shown nothing.
fn adapter() -> &'static wgpu::Adapter {
    static ADAPTER: OnceLock<wgpu::Adapter> = OnceLock::new();
    ADAPTER.get_or_init(|| {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle_from_env());
        let options = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..wgpu::RequestAdapterOptions::default()
        };
        let adapter = pollster::block_on(instance.request_adapter(&options)).expect("these tests need an adapter");
        println!("testing on {}, {}", adapter.get_info().name, adapter.get_info().driver_info);
        adapter
    })
}

/// One device for the whole process, so that all tests share its pipelines.
pub fn gpu() -> &'static Gpu {
    static GPU: OnceLock<Gpu> = OnceLock::new();
    GPU.get_or_init(|| Gpu::on_blocking(adapter()).expect("these tests need a device"))
}

/// A device of its own, with limits that the adapter's are changed into.
pub fn gpu_with(change: impl FnOnce(&mut wgpu::Limits)) -> Gpu {
    let mut required_limits = adapter().limits();
    change(&mut required_limits);
    let descriptor = wgpu::DeviceDescriptor { required_limits, ..wgpu::DeviceDescriptor::default() };
    let (device, queue) = pollster::block_on(adapter().request_device(&descriptor)).expect("the adapter takes less");
    Gpu::adopt(&device, &queue)
}

/// What is recorded, one after the other.
pub struct Recording {
    pub table: Option<RopeTable>,
    pub prepared: Prepared,
}

impl Recording {
    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        self.table.iter().for_each(|table| table.record(pass));
        self.prepared.record(pass);
    }
}

impl From<Prepared> for Recording {
    fn from(prepared: Prepared) -> Self {
        Self { table: None, prepared }
    }
}

/// Numbers that look random and are the same in every run (splitmix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Any bits: as floats, of any size, infinite or NaN too.
    pub fn bits(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    /// From -2 to 2, and never so near to zero that a device which flushes denormal numbers would change it.
    pub fn value(&mut self) -> f32 {
        let magnitude = 2.0 - (self.next() >> 40) as f32 * (1.99 / (1 << 24) as f32);
        if self.next() & 1 == 0 { magnitude } else { -magnitude }
    }

    pub fn values(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.value()).collect()
    }
}

/// A file of `tests/data`.
pub struct Golden(SafeTensors<'static>);

impl Golden {
    /// Functions of an article on rotary and contextual encoding, run in PyTorch, f32.
    pub fn article() -> Self {
        Self::read(include_bytes!("../data/article.safetensors"))
    }

    /// Activations of SmolLM2-135M-Instruct on a paragraph, run in transformers, f32.
    pub fn smollm2() -> Self {
        Self::read(include_bytes!("../data/smollm2.safetensors"))
    }

    fn read(bytes: &'static [u8]) -> Self {
        Self(SafeTensors::deserialize(bytes).expect("the file is whole"))
    }

    /// An f32 tensor: shape and values.
    pub fn tensor(&self, name: &str) -> (Vec<usize>, Vec<f32>) {
        let (shape, bytes) = self.bytes(name, safetensors::Dtype::F32);
        let numbers = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        (shape, numbers.collect())
    }

    /// An f16 or bf16 tensor: shape and bits.
    pub fn halves(&self, name: &str, dtype: safetensors::Dtype) -> (Vec<usize>, Vec<u16>) {
        let (shape, bytes) = self.bytes(name, dtype);
        (shape, bytes.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect())
    }

    fn bytes(&self, name: &str, dtype: safetensors::Dtype) -> (Vec<usize>, Vec<u8>) {
        let tensor = self.0.tensor(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(tensor.dtype(), dtype, "{name}");
        (tensor.shape().to_vec(), tensor.data().to_vec())
    }

    /// The names of all tensors that begin so.
    pub fn names(&self, prefix: &str) -> Vec<String> {
        let mut names: Vec<_> = self.0.names().into_iter().filter(|name| name.starts_with(prefix)).collect();
        names.sort();
        names.into_iter().map(|name| name.to_string()).collect()
    }
}
