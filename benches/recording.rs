//! What it costs to record a prepared operation, beside what wgpu itself takes for the same three calls.
//!
//! A decode step records a rotation for every layer and every token, so that this is the part of phasor that an engine
//! pays again and again. The last line printed is the difference.

use criterion::{Criterion, criterion_group, criterion_main};
use phasor::frequencies::Plain;
use phasor::{Gpu, Pairing, Rope, Rotate};
use std::time::{Duration, Instant};

/// Records in one pass, as many as a large model has layers.
const LAYERS: u32 = 96;

/// As many bindings as a rotation of queries and keys has.
const WGSL: &str = "
@group(0) @binding(0) var<uniform> params: vec4<u32>;
@group(0) @binding(1) var<storage, read> turns: array<u32>;
@group(0) @binding(3) var<storage, read_write> q: array<u32>;
@group(0) @binding(4) var<storage, read_write> k: array<u32>;
@compute @workgroup_size(1) fn main() {
    q[0] = params.x;
    k[0] = turns[0];
}";

fn recording(criterion: &mut Criterion) {
    let gpu = Gpu::request_blocking().expect("an adapter");
    let frequencies = Plain::new(10_000.0).frequencies(128).expect("a base and a dim that go together");
    let rope = Rope::new(&gpu, &frequencies, Pairing::HalfSplit).expect("room for frequencies");
    let [q, k] =
        [32, 8].map(|heads| gpu.upload(&vec![0.0; heads * 128], [1, 1, heads, 128]).expect("room for a token"));
    let rotation = rope.prepare(&Rotate::in_place(&q).and_in_place(&k)).expect("views that go together");
    let (pipeline, bind_group) = plain(&gpu);

    let prepared = |pass: &mut wgpu::ComputePass<'_>| rotation.record(pass);
    let by_hand = |pass: &mut wgpu::ComputePass<'_>| {
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &bind_group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
    };
    let mut group = criterion.benchmark_group("record");
    group.measurement_time(Duration::from_secs(2));
    group.bench_function("a prepared rotation", |b| b.iter_custom(|n| per_record(&gpu, n, &prepared)));
    group.bench_function("the same calls of wgpu", |b| b.iter_custom(|n| per_record(&gpu, n, &by_hand)));
    group.finish();

    // Interleaved, by the minimum: what else the machine does then falls out.
    let rounds = || (0..200).map(|_| (per_record(&gpu, 1, &prepared), per_record(&gpu, 1, &by_hand)));
    let least = rounds().reduce(|a, b| (a.0.min(b.0), a.1.min(b.1)));
    if let Some((prepared, by_hand)) = least {
        let more = prepared.as_nanos() as i128 - by_hand.as_nanos() as i128;
        println!("phasor's own part: {more} ns per record ({prepared:?} - {by_hand:?})");
    }
}

/// The time of `n` records, from passes of [`LAYERS`] of them each, whose submission is left out.
fn per_record(gpu: &Gpu, n: u64, record: &dyn Fn(&mut wgpu::ComputePass<'_>)) -> Duration {
    let mut took = Duration::ZERO;
    for _ in 0..n {
        let mut encoder = gpu.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        let begin = Instant::now();
        (0..LAYERS).for_each(|_| record(&mut pass));
        took += begin.elapsed();
        drop(pass);
        drop(encoder.finish());
    }
    took / LAYERS
}

/// A pipeline and its bind group, made with nothing but wgpu.
fn plain(gpu: &Gpu) -> (wgpu::ComputePipeline, wgpu::BindGroup) {
    let device = gpu.device();
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(WGSL.into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    let buffers = [(0, wgpu::BufferUsages::UNIFORM), (1, wgpu::BufferUsages::STORAGE)]
        .into_iter()
        .chain([3, 4].map(|binding| (binding, wgpu::BufferUsages::STORAGE)))
        .map(|(binding, usage)| {
            let descriptor = wgpu::BufferDescriptor { label: None, size: 256, usage, mapped_at_creation: false };
            (binding, device.create_buffer(&descriptor))
        });
    let buffers: Vec<_> = buffers.collect();
    let entries: Vec<_> = buffers
        .iter()
        .map(|(binding, buffer)| wgpu::BindGroupEntry { binding: *binding, resource: buffer.as_entire_binding() })
        .collect();
    let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &entries,
    });
    (pipeline, bind_group)
}

criterion_group!(benches, recording);
criterion_main!(benches);
