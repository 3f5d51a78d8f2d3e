//! Subgroups of any size: the same answers, whether a workgroup is several of them or a part of one.
//!
//! `cargo xtask test subgroups` runs these with each size that lavapipe can be told to have; SwiftShader has four lanes.

use crate::case::Both;
use crate::common::{Random, gpu};
use crate::projection::{Case, schedules};
use crate::request::{Cope, Request, Source, TOLERANCE, assert_same};
use phasor::attention::{Rotation, Schedule};
use phasor::frequencies::Plain;
use phasor::{ElementType, Pairing};

/// What a workgroup of eight, as the kernels' is, is told of its subgroup's size.
fn lanes_of_a_workgroup() -> u32 {
    let device = gpu().device();
    let out = gpu().zeros(ElementType::F32, [1, 1, 1, 1]).unwrap();
    let text = "
@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32, @builtin(subgroup_size) size: u32) {
    if (i == 0u) {
        out[0] = f32(size);
    }
}";
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(text.into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: None,
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[wgpu::BindGroupEntry { binding: 0, resource: out.buffer().as_entire_binding() }],
    });
    gpu()
        .submit(|pass| {
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(1, 1, 1);
        })
        .unwrap();
    gpu().read_blocking(&out).unwrap()[0] as u32
}

/// `LP_NATIVE_VECTOR_WIDTH` tells lavapipe how many bits its subgroups have, 32 to a lane.
#[test]
fn the_device_has_the_size_that_this_run_is_about() {
    if !gpu().has_subgroups() {
        return;
    }
    let (lanes, info) = (lanes_of_a_workgroup(), gpu().info());
    println!("subgroups of {lanes} lanes");
    assert!((info.subgroup_min_size..=info.subgroup_max_size).contains(&lanes), "{lanes} lanes, {info:?}");
    if let (Ok(bits), "llvmpipe") = (std::env::var("LP_NATIVE_VECTOR_WIDTH"), info.driver.as_str()) {
        assert_eq!(bits.parse(), Ok(32 * lanes));
    }
}

/// More tokens than a workgroup takes at once, and keys that are no multiple of any number of lanes.
#[test]
fn attention_is_the_same_by_any_number_of_lanes() {
    let mut random = Random::new(401);
    let (tokens, keys) = (37, 83);
    let plain = Request { causal: true, ..Request::random(&mut random, [2, tokens, keys], [4, 2, 8]) };
    let rotation = Rotation::new(&Plain { base: 100.0 }.frequencies(8).unwrap(), Pairing::HalfSplit);
    let gate_keys = Both::random(&mut random, [2, keys, 2, 8], 1.0);
    let cope = Cope::new(Both::random(&mut random, [1, 8, 1, 40], 0.3));
    let cope = Cope { gates: Source::Keys(gate_keys), ..cope };
    let contextual = Request { rotation: Some(rotation), cope: Some(cope), ..plain.clone() };
    let few = Request { window: Some(7), ..Request::random(&mut random, [1, 5, 3], [2, 1, 6]) };
    for (what, request) in [("plain", plain), ("contextual", contextual), ("few", few)] {
        let (expected, keys) = (request.reference(), request.k.layout.shape()[1]);
        // No other schedule's kernels know of subgroups.
        assert_same(what, &request.fused(Schedule::Rows), &expected, TOLERANCE, keys);
    }
}

#[test]
fn a_projection_is_the_same_by_any_number_of_lanes() {
    let mut random = Random::new(402);
    for [tokens, inputs, outputs] in [[33, 24, 40], [9, 21, 7], [70, 4, 33]] {
        let case = Case::random(&mut random, [1, tokens, inputs, outputs], true);
        schedules().for_each(|schedule| case.assert_agrees(schedule));
    }
}
