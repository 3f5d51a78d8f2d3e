//! How many storage buffers a device allows a shader.

use crate::case::{Both, assert_near, wide};
use crate::common::refused::expect_refused;
use crate::common::{Random, gpu, gpu_with};
use crate::fused::{SCHEDULES, of};
use crate::request::{Cope, Request, Source, TOLERANCE, gate_error};
use phasor::attention::{Fused, Rotation, Schedule, Standing};
use phasor::frequencies::Plain;
use phasor::{ElementType, ErrorKind, Gpu, Pairing, View};

/// All options at once: thirteen tensors, and what lies between the kernels.
fn everything() -> Request {
    let mut random = Random::new(301);
    let (batch, tokens, keys, channels) = (2, 7, 20, 8);
    let plain = Request::random(&mut random, [batch, tokens, keys], [4, 2, channels]);
    let mut sum = Both::filled([batch, tokens, 4, 2], 0.25);
    sum.values.iter_mut().step_by(2).for_each(|whole| *whole = 1.0);
    Request {
        causal: true,
        standing: Standing::RowLast,
        rotation: Some(Rotation::new(&Plain { base: 100.0 }.frequencies(8).unwrap(), Pairing::HalfSplit)),
        keep: Some(Both::whole(&mut random, [batch, tokens, 1, keys], 4)),
        bias: Some(Both::random(&mut random, [1, tokens, 1, keys], 1.0)),
        key_ranges: Some(Both::new(vec![1.0, 20.0, 0.0, 13.0], of([batch, 1, 1, 2]))),
        cope: Some(Cope {
            query: Some(Both::random(&mut random, [batch, tokens, 4, channels], 1.0)),
            gates: Source::Keys(Both::random(&mut random, [batch, keys, 2, channels], 1.0)),
            gate_sum: Some(Both::new(sum.values, sum.layout)),
            ..Cope::new(Both::random(&mut random, [1, channels, 1, 9], 0.3))
        }),
        ..plain
    }
}

fn fused(gpu: &Gpu, request: &Request, schedule: Schedule) -> (Fused, [View; 3]) {
    let attention = request.over(|both| both.view_on(gpu), |both| both.i32_view_on(gpu));
    let [batch, tokens, heads, channels] = request.q.layout.shape();
    let results = [channels, 1, 2].map(|n| gpu.zeros(ElementType::F32, [batch, tokens, heads, n]).unwrap());
    let [out, lse, sum] = &results;
    (Fused::new(&attention, out).schedule(schedule).lse(lse).gate_sum(sum), results)
}

/// How many buffers each schedule takes for everything at once. What every device has is eight.
const BUFFERS: [u32; 3] = [14, 12, 8];

/// A schedule that takes more than the device has is told how many it takes, and of which kernel.
#[test]
fn more_buffers_than_a_device_has_are_refused_by_number() {
    let small = gpu_with(|limits| limits.max_storage_buffers_per_shader_stage = 7);
    let request = everything();
    for (schedule, buffers) in SCHEDULES.into_iter().zip(BUFFERS) {
        let refused = fused(&small, &request, schedule).0.prepare(&small);
        let Err(error) = refused else { panic!("{schedule:?}: prepared") };
        let limit = (ErrorKind::Limit, "max_storage_buffers_per_shader_stage");
        assert_eq!((error.kind(), error.argument()), limit, "{schedule:?}");
        assert!(error.was().starts_with(&format!("{buffers} for attention_")), "{schedule:?}: {error}");
        assert!(error.may_be().starts_with("up to 7 "), "{schedule:?}: {error}");
    }
}

/// Where no schedule is asked for, one is taken that the device has room for.
#[test]
fn everything_at_once_runs_in_eight_buffers() {
    let small = gpu_with(|limits| limits.max_storage_buffers_per_shader_stage = 8);
    let request = everything();
    let expected = request.reference();
    let attention = request.over(|both| both.view_on(&small), |both| both.i32_view_on(&small));
    let out = small.zeros(ElementType::F32, request.q.layout.shape()).unwrap();
    let prepared = Fused::new(&attention, &out).prepare(&small).unwrap();
    small.submit(|pass| prepared.record(pass)).unwrap();
    assert_near("out", &wide(&small.read_blocking(&out).unwrap()), &expected.out, 2.0 * TOLERANCE);
    let (split, [out, lse, sum]) = fused(&small, &request, Schedule::Split);
    let prepared = split.prepare(&small).unwrap();
    small.submit(|pass| prepared.record(pass)).unwrap();
    assert_near("out", &wide(&small.read_blocking(&out).unwrap()), &expected.out, 2.0 * TOLERANCE);
    assert_near("lse", &wide(&small.read_blocking(&lse).unwrap()), &expected.lse, 2.0 * TOLERANCE);
    assert_near("gate sum", &wide(&small.read_blocking(&sum).unwrap()), &expected.gate_sum, 2.0 * TOLERANCE);
}

#[test]
fn everything_at_once_runs_where_there_is_room() {
    let request = everything();
    let expected = request.reference();
    let room = gpu().limits().max_storage_buffers_per_shader_stage;
    for (schedule, buffers) in SCHEDULES.into_iter().zip(BUFFERS) {
        let (fused, [out, lse, _]) = fused(gpu(), &request, schedule);
        if room < buffers {
            assert!(matches!(fused.prepare(gpu()), Err(error) if error.kind() == ErrorKind::Limit), "{schedule:?}");
            continue;
        }
        let prepared = fused.prepare(gpu()).unwrap();
        gpu().submit(|pass| prepared.record(pass)).unwrap();
        assert_near("out", &wide(&gpu().read_blocking(&out).unwrap()), &expected.out, 2.0 * TOLERANCE);
        assert_near("lse", &wide(&gpu().read_blocking(&lse).unwrap()), &expected.lse, 2.0 * TOLERANCE);
    }
}

/// A cache of which not even one head can be bound at once, as its tokens lie apart: keys are taken in windows.
#[test]
fn keys_that_no_binding_holds_are_taken_in_windows() {
    let mut random = Random::new(302);
    // 64 bytes to a token: 320,000 in all, of which splits of 1,024 keys take 65,536.
    let (keys, binding) = (5000, 70_000);
    let small = gpu_with(|limits| limits.max_storage_buffer_binding_size = binding);
    let plain = Request { causal: true, ..Request::random(&mut random, [1, 2, keys], [4, 2, 8]) };
    let ranges = Both::new(vec![1030.0, 4500.0], of([1, 1, 1, 2]));
    let padded = Request { key_ranges: Some(ranges), standing: Standing::RowLast, ..plain.clone() };
    let rotated = Rotation::new(&Plain { base: 100.0 }.frequencies(8).unwrap(), Pairing::Interleaved);
    let contextual = Cope {
        gates: Source::Keys(Both::random(&mut random, [1, keys, 2, 8], 1.0)),
        ..Cope::new(Both::random(&mut random, [1, 8, 1, 1500], 0.1))
    };
    let contextual = Request { cope: Some(contextual), rotation: Some(rotated), ..padded.clone() };
    for (what, request) in [("plain", plain), ("padded", padded), ("contextual", contextual)] {
        let expected = request.reference();
        let attention = request.over(|both| both.view_on(&small), |both| both.i32_view_on(&small));
        let out = small.zeros(ElementType::F32, request.q.layout.shape()).unwrap();
        let prepared = Fused::new(&attention, &out).prepare(&small).unwrap();
        // Five splits in as many windows, scored and summed, and merged.
        assert!(prepared.dispatches() > 2 * 5, "{what}: {}", prepared.dispatches());
        small.submit(|pass| prepared.record(pass)).unwrap();
        let tolerance = 2.0 * TOLERANCE + gate_error(keys);
        assert_near(what, &wide(&small.read_blocking(&out).unwrap()), &expected.out, tolerance);
    }
    // Another schedule has no windows, and says which number is in the way.
    let request = Request::random(&mut random, [1, 5, keys], [4, 2, 8]);
    let attention = request.over(|both| both.view_on(&small), |both| both.i32_view_on(&small));
    let out = small.zeros(ElementType::F32, request.q.layout.shape()).unwrap();
    let refused = Fused::new(&attention, &out).schedule(Schedule::Rows).prepare(&small);
    let error = expect_refused(refused, ErrorKind::Limit, "max_storage_buffer_binding_size");
    assert!(error.was().contains("319968 bytes") && error.was().contains("k of one head"), "{error}");
    assert!(error.may_be().contains("70000 bytes"), "{error}");
    // With none asked for, many queries go by windows too.
    let prepared = Fused::new(&attention, &out).prepare(&small).unwrap();
    small.submit(|pass| prepared.record(pass)).unwrap();
    assert_near("many", &wide(&small.read_blocking(&out).unwrap()), &request.reference().out, TOLERANCE);
}

/// With the lowest limits, a rotation takes no buffer that attention without one does not.
#[test]
fn a_rotation_takes_no_buffer_more() {
    let small = gpu_with(|limits| limits.max_storage_buffers_per_shader_stage = 8);
    let all = everything();
    let eight = Request { cope: None, ..all };
    for schedule in SCHEDULES {
        let attention = eight.over(|both| both.view_on(&small), |both| both.i32_view_on(&small));
        let out = small.zeros(ElementType::F32, eight.q.layout.shape()).unwrap();
        let [batch, tokens, heads, _] = eight.q.layout.shape();
        let lse = small.zeros(ElementType::F32, [batch, tokens, heads, 1]).unwrap();
        let prepared = Fused::new(&attention, &out).schedule(schedule).lse(&lse).prepare(&small).unwrap();
        small.submit(|pass| prepared.record(pass)).unwrap();
        assert_near("out", &wide(&small.read_blocking(&out).unwrap()), &eight.reference().out, 2.0 * TOLERANCE);
    }
}
