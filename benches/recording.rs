//! What it costs to record a prepared operation, beside what wgpu itself takes for the same three calls.
//!
//! A decode step records a rotation for every layer and every token, so that this is the part of phasor that an engine
//! pays again and again. The lines after criterion's are differences of minima, interleaved: phasor's own part, and what
//! parameters would cost as immediates (push constants) instead of from a small buffer, where the device has them.

use criterion::{Criterion, criterion_group, criterion_main};
use phasor::frequencies::Plain;
use phasor::gpu::{best_adapter, useful_features};
use phasor::{Gpu, Pairing, Rope, Rotate};
use std::time::{Duration, Instant};

/// Records in one pass, as many as a large model has layers.
const LAYERS: u32 = 96;

/// Bytes that every device with immediates has room for: less than half of a rotation's parameters.
const IMMEDIATES: u32 = 128;

/// As many bindings as a rotation of queries and keys has, the first one for parameters.
const WGSL: &str = "
@group(0) @binding(1) var<storage, read> turns: array<u32>;
@group(0) @binding(3) var<storage, read_write> q: array<u32>;
@group(0) @binding(4) var<storage, read_write> k: array<u32>;
@compute @workgroup_size(1) fn main() {
    q[0] = params.places[7].x;
    k[0] = turns[params.places[0].y];
}
struct Params { places: array<vec4<u32>, 8> }
";

fn recording(criterion: &mut Criterion) {
    let gpu = device();
    let frequencies = Plain::new(10_000.0).frequencies(128).expect("a base and a dim that go together");
    let rope = Rope::new(&gpu, &frequencies, Pairing::HalfSplit).expect("room for frequencies");
    let [q, k] =
        [32, 8].map(|heads| gpu.upload(&vec![0.0; heads * 128], [1, 1, heads, 128]).expect("room for a token"));
    let rotation = rope.prepare(&Rotate::in_place(&q).and_in_place(&k)).expect("views that go together");

    let prepared = |pass: &mut wgpu::ComputePass<'_>| rotation.record(pass);
    let by_hand = ByHand::new(&gpu, false);
    let by_hand = |pass: &mut wgpu::ComputePass<'_>| by_hand.record(pass);
    let mut group = criterion.benchmark_group("record");
    group.measurement_time(Duration::from_secs(2));
    group.bench_function("a prepared rotation", |b| b.iter_custom(|n| per_record(&gpu, n, &prepared).0));
    group.bench_function("the same calls of wgpu", |b| b.iter_custom(|n| per_record(&gpu, n, &by_hand).0));
    group.finish();

    println!("phasor's own part: {}", difference(&gpu, &prepared, &by_hand));
    if gpu.device().features().contains(wgpu::Features::IMMEDIATES) {
        let immediates = ByHand::new(&gpu, true);
        let immediates = |pass: &mut wgpu::ComputePass<'_>| immediates.record(pass);
        println!("{IMMEDIATES} bytes of immediates instead of a buffer: {}", difference(&gpu, &immediates, &by_hand));
    }
}

/// With immediates where the adapter has them, which phasor itself does not ask for.
fn device() -> Gpu {
    let adapter = pollster::block_on(best_adapter()).expect("an adapter");
    let descriptor = wgpu::DeviceDescriptor {
        required_features: adapter.features() & (useful_features() | wgpu::Features::IMMEDIATES),
        required_limits: adapter.limits(),
        ..wgpu::DeviceDescriptor::default()
    };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).expect("a device");
    Gpu::adopt(&device, &queue)
}

/// How much longer the one takes than the other, interleaved, by the minimum: what else the machine does then falls out.
fn difference(gpu: &Gpu, a: &dyn Fn(&mut wgpu::ComputePass<'_>), b: &dyn Fn(&mut wgpu::ComputePass<'_>)) -> String {
    let most = (Duration::MAX, Duration::MAX);
    let (mut least_a, mut least_b) = (most, most);
    let both = |x: (Duration, Duration), y: (Duration, Duration)| (x.0.min(y.0), x.1.min(y.1));
    for _ in 0..200 {
        least_a = both(least_a, per_record(gpu, 1, a));
        least_b = both(least_b, per_record(gpu, 1, b));
    }
    let more = |a: Duration, b: Duration| format!("{} ns ({a:?} - {b:?})", a.as_nanos() as i128 - b.as_nanos() as i128);
    format!("{} per record, {} per dispatch until all is done", more(least_a.0, least_b.0), more(least_a.1, least_b.1))
}

/// The time of a record, from passes of [`LAYERS`] of them each, and that from submission until all is done.
fn per_record(gpu: &Gpu, n: u64, record: &dyn Fn(&mut wgpu::ComputePass<'_>)) -> (Duration, Duration) {
    let (mut recorded, mut ran) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..n {
        let mut encoder = gpu.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        let begin = Instant::now();
        (0..LAYERS).for_each(|_| record(&mut pass));
        recorded += begin.elapsed();
        drop(pass);
        let commands = encoder.finish();
        let begin = Instant::now();
        gpu.queue().submit([commands]);
        gpu.wait().expect("the device answers");
        ran += begin.elapsed();
    }
    (recorded / LAYERS, ran / LAYERS)
}

/// A pipeline and its bind group, made with nothing but wgpu.
struct ByHand {
    pipeline: wgpu::ComputePipeline,
    bind_group: wgpu::BindGroup,
    immediates: bool,
}

impl ByHand {
    /// With parameters as immediates, or else from a uniform buffer.
    fn new(gpu: &Gpu, immediates: bool) -> Self {
        let device = gpu.device();
        let params = match immediates {
            true => "var<immediate> params: Params;",
            false => "@group(0) @binding(0) var<uniform> params: Params;",
        };
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(format!("{params}{WGSL}").into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let uniform = (!immediates).then_some((0, wgpu::BufferUsages::UNIFORM));
        let buffers = uniform.into_iter().chain([1, 3, 4].map(|binding| (binding, wgpu::BufferUsages::STORAGE)));
        let buffers: Vec<_> = buffers
            .map(|(binding, usage)| {
                let descriptor = wgpu::BufferDescriptor { label: None, size: 256, usage, mapped_at_creation: false };
                (binding, device.create_buffer(&descriptor))
            })
            .collect();
        let entries: Vec<_> = buffers
            .iter()
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding: *binding, resource: buffer.as_entire_binding() })
            .collect();
        let layout = pipeline.get_bind_group_layout(0);
        let bind_group =
            device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries });
        Self { pipeline, bind_group, immediates }
    }

    fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        pass.set_pipeline(&self.pipeline);
        if self.immediates {
            pass.set_immediates(0, &[0; IMMEDIATES as usize]);
        }
        pass.set_bind_group(0, &self.bind_group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
    }
}

criterion_group!(benches, recording);
criterion_main!(benches);
