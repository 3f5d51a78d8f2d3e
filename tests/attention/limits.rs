//! How many storage buffers a device allows a shader.

use crate::case::{Both, assert_near, wide};
use crate::common::{Random, gpu, gpu_with};
use crate::fused::{SCHEDULES, of};
use crate::request::{Cope, Request, Source, TOLERANCE};
use phasor::attention::{Fused, Rotation, Schedule, Standing};
use phasor::frequencies::Plain;
use phasor::{ElementType, Error, Gpu, Pairing, View};

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

/// What every device has is eight; whatever asks for more is told how many it asked for, and of which kernel.
#[test]
fn more_buffers_than_a_device_has_are_refused_by_number() {
    let small = gpu_with(|limits| limits.max_storage_buffers_per_shader_stage = 8);
    let request = everything();
    for (schedule, buffers) in SCHEDULES.into_iter().zip([14, 12, 9]) {
        let refused = fused(&small, &request, schedule).0.prepare(&small);
        let Err(Error::Limit { limit, was, may_be }) = refused else { panic!("{schedule:?}: {refused:?}") };
        assert_eq!(limit, "max_storage_buffers_per_shader_stage");
        assert!(was.starts_with(&format!("{buffers} for attention_")), "{schedule:?}: {was}");
        assert!(may_be.starts_with("up to 8 "), "{schedule:?}: {may_be}");
    }
}

#[test]
fn everything_at_once_runs_where_there_is_room() {
    let request = everything();
    let expected = request.reference();
    let room = gpu().limits().max_storage_buffers_per_shader_stage;
    for (schedule, buffers) in SCHEDULES.into_iter().zip([14, 12, 9]) {
        let (fused, [out, lse, _]) = fused(gpu(), &request, schedule);
        if room < buffers {
            assert!(matches!(fused.prepare(gpu()), Err(Error::Limit { .. })), "{schedule:?}");
            continue;
        }
        let prepared = fused.prepare(gpu()).unwrap();
        gpu().submit(|pass| prepared.record(pass)).unwrap();
        assert_near("out", &wide(&gpu().read_blocking(&out).unwrap()), &expected.out, 2.0 * TOLERANCE);
        assert_near("lse", &wide(&gpu().read_blocking(&lse).unwrap()), &expected.lse, 2.0 * TOLERANCE);
    }
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
