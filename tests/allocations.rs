//! Recording a prepared operation allocates nothing of its own: as much as the same calls of wgpu, and no byte more.
//!
//! A binary of its own, since it counts what its allocator is asked for.

#[path = "common/mod.rs"]
mod common;

use allocation_counter::{AllocationInfo, measure};
use common::gpu;
use phasor::attention::{Attention, ContextualPe, Fused, Projection, Standing};
use phasor::frequencies::Plain;
use phasor::{ElementType, Pairing, Prepared, Rope, Rotate};

/// Recordings in one pass: a token of a model of so many layers.
const LAYERS: usize = 32;

/// The same calls as of a recording, with pipelines and bind groups that nothing but wgpu made.
struct ByHand(Vec<(wgpu::ComputePipeline, wgpu::BindGroup)>);

impl ByHand {
    fn new(dispatches: usize) -> Self {
        let device = gpu().device();
        let one = |i: usize| {
            // As many pipelines: wgpu leaves out a call that sets the same one again.
            let wgsl = format!(
                "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
                 @compute @workgroup_size(1) fn main() {{ x[0] = {i}u; }}"
            );
            let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: None,
                source: wgpu::ShaderSource::Wgsl(wgsl.into()),
            });
            let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: None,
                layout: None,
                module: &module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            });
            let x = gpu().zeros(ElementType::F32, [1, 1, 1, 4]).unwrap();
            let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &pipeline.get_bind_group_layout(0),
                entries: &[wgpu::BindGroupEntry { binding: 0, resource: x.buffer().as_entire_binding() }],
            });
            (pipeline, bind_group)
        };
        Self((0..dispatches).map(one).collect())
    }

    fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        for (pipeline, bind_group) in &self.0 {
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, bind_group, &[]);
            pass.dispatch_workgroups(1, 1, 1);
        }
    }
}

/// What this thread allocates while it records into a new pass.
fn allocated(times: usize, record: impl Fn(&mut wgpu::ComputePass<'_>)) -> AllocationInfo {
    let mut encoder = gpu().device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    measure(|| (0..times).for_each(|_| record(&mut pass)))
}

#[track_caller]
fn assert_as_by_hand(what: &str, prepared: &Prepared) {
    let by_hand = ByHand::new(prepared.dispatches());
    for times in [1, 2, LAYERS] {
        let own = allocated(times, |pass| prepared.record(pass));
        let expected = allocated(times, |pass| by_hand.record(pass));
        assert_eq!(own, expected, "{what}, recorded {times} times in a pass");
    }
}

#[test]
fn recording_allocates_what_wgpu_does_and_nothing_else() -> phasor::Result<()> {
    let tensor = |shape: [usize; 4]| gpu().zeros(ElementType::F32, shape);
    let (q, k, v) = (tensor([1, 1, 8, 64])?, tensor([1, 100, 2, 64])?, tensor([1, 100, 2, 64])?);
    let out = tensor([1, 1, 8, 64])?;

    let rope = Rope::new(gpu(), &Plain::new(1e4).frequencies(64)?, Pairing::HalfSplit)?;
    let k_token = tensor([1, 1, 2, 64])?;
    assert_as_by_hand("a rotation", &rope.prepare(&Rotate::in_place(&q).and_in_place(&k_token))?);

    let embeddings = tensor([1, 64, 1, 16])?;
    let attention = Attention::new(&q, &k, &v).standing(Standing::Last).cope(ContextualPe::new(&embeddings));
    let step = Fused::new(&attention, &out).prepare(gpu())?;
    assert!(step.dispatches() > 1, "a decode step is split over its keys");
    assert_as_by_hand("a decode step", &step);

    let (weight, y) = (tensor([1, 48, 1, 512])?, tensor([1, 1, 1, 48])?);
    assert_as_by_hand("a linear layer", &Projection::new(&out, &weight, &y).prepare(gpu())?);
    Ok(())
}

/// That the count sees what it is there to see.
#[test]
fn an_allocation_would_be_seen() {
    let by_hand = ByHand::new(1);
    let with_one = allocated(1, |pass| {
        std::hint::black_box(Box::new(7u8));
        by_hand.record(pass);
    });
    assert_eq!(with_one.count_total, 1 + allocated(1, |pass| by_hand.record(pass)).count_total);
}
