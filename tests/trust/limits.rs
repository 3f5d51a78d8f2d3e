//! Devices that allow as little as WebGPU guarantees, and less.

use crate::common::{Random, gpu_with};
use crate::operations;
use phasor::attention::{Attention, Fused, Standing};
use phasor::frequencies::Plain;
use phasor::reference::rope_rotate;
use phasor::{Direction, ElementType, ErrorKind, Gpu, Layout, Pairing, Positions, Result, Rope, Rotate, View};

/// WebGPU's lowest limits, or fewer.
fn lowest(change: impl FnOnce(&mut wgpu::Limits)) -> Gpu {
    gpu_with(|limits| {
        *limits = wgpu::Limits::default();
        change(limits);
    })
}

/// How far apart two runs may be that are cut differently: each within 3e-5 of the exact answer, as the suites of the
/// operations have it.
const APART: f32 = 6e-5;

/// What a device gives that allows all that its adapter has.
fn assert_gives_the_same(small: &Gpu, what: &str) -> Result<()> {
    let large = crate::common::gpu();
    // Without subgroups, as the small device is made.
    for operation in operations::all(small) {
        let (got, expected) = (operation.run(small)?, operation.run(large)?);
        for (got, expected) in got.iter().flatten().zip(expected.iter().flatten()) {
            // Rows of a cache that nothing went to hold what they held.
            let alike = got.to_bits() == expected.to_bits() || (got - expected).abs() <= APART;
            assert!(alike, "{what}, {}: {got} instead of {expected}", operation.name);
        }
    }
    Ok(())
}

#[test]
fn webgpu_s_lowest_limits_do_for_everything() -> Result<()> {
    assert_gives_the_same(&lowest(|_| {}), "lowest")
}

/// What WebGPU's compatibility mode guarantees of what kernels use.
#[test]
fn half_of_the_invocations_do_as_well() -> Result<()> {
    let compatible = lowest(|limits| {
        limits.max_compute_invocations_per_workgroup = 128;
        limits.max_compute_workgroup_size_x = 128;
        limits.max_compute_workgroup_size_y = 128;
    });
    assert_gives_the_same(&compatible, "compatible")
}

/// Whatever a device lacks is an error that names the limit, what it allows, and what was needed.
#[test]
fn each_refusal_says_number_and_limit() -> Result<()> {
    type Change = fn(&mut wgpu::Limits);
    let cases: [(&str, &str, Change); 3] = [
        ("max_storage_buffer_binding_size", "16", |limits| limits.max_storage_buffer_binding_size = 16),
        ("max_storage_buffers_per_shader_stage", "1", |limits| limits.max_storage_buffers_per_shader_stage = 1),
        ("max_buffer_size", "256", |limits| {
            limits.max_buffer_size = 256;
            limits.max_storage_buffer_binding_size = 256;
        }),
    ];
    for (name, allowed, change) in cases {
        let small = lowest(change);
        for operation in operations::all(&small) {
            let refused = operation.upload(&small).and_then(|views| operation.prepare(&small, &views));
            let Err(error) = refused.map(|_| ()) else {
                panic!("{}: accepted with {name} of {allowed}", operation.name)
            };
            assert_eq!((error.kind(), error.argument()), (ErrorKind::Limit, name), "{}: {error}", operation.name);
            assert!(error.was().chars().any(|c| c.is_ascii_digit()), "{}: {error}", operation.name);
            assert!(error.may_be().contains(&format!("up to {allowed} ")), "{}: {error}", operation.name);
        }
    }
    Ok(())
}

/// Puts a row of numbers at a token of a tensor whose tokens come first.
fn write_token(gpu: &Gpu, view: &View, token: usize, numbers: &[f32]) {
    let at = view.layout().at([0, token, 0, 0]) as u64 * 4;
    gpu.queue().write_buffer(view.buffer(), at, bytemuck::cast_slice(numbers));
}

/// 160 MiB where 128 may be bound.
#[test]
fn a_tensor_larger_than_a_binding_is_rotated_by_offsets() -> Result<()> {
    let gpu = lowest(|_| {});
    let (tokens, heads, channels) = (10_240, 32, 128);
    let x = gpu.zeros(ElementType::F32, [1, tokens, heads, channels])?;
    let mut random = Random::new(1);
    let some = [0, 1, tokens / 2 - 1, tokens / 2, 8191, 8192, tokens - 1];
    let written = some.map(|token| (token, random.values(heads * channels)));
    written.iter().for_each(|(token, numbers)| write_token(&gpu, &x, *token, numbers));
    let frequencies = Plain::new(1e4).frequencies(channels as u32)?;
    let rope = Rope::new(&gpu, &frequencies, Pairing::HalfSplit)?;
    let rotation = rope.prepare(&Rotate::in_place(&x).positions(Positions::Start(100)))?;
    assert!(rotation.dispatches() > 1);
    gpu.submit(|pass| rotation.record(pass))?;
    for (token, numbers) in written {
        let mut expected: Vec<_> = numbers.iter().map(|&x| f64::from(x)).collect();
        let layout = Layout::contiguous([1, 1, heads, channels])?;
        let position = |_, _| 100 + token as i32;
        rope_rotate(&mut expected, layout, &frequencies, Pairing::HalfSplit, 0, Direction::Forward, position)?;
        for (got, expected) in gpu.read_blocking(&x.tokens(token..token + 1)?)?.into_iter().zip(expected) {
            // Two channels of up to 2, and the error of a rotation.
            assert!((f64::from(got) - expected).abs() <= 4.0 * 5e-7, "token {token}: {got} instead of {expected}");
        }
    }
    Ok(())
}

/// One sequence of 144 MiB, tokens first, of which not one head lies within 128 MiB.
#[test]
fn a_cache_larger_than_a_binding_is_attended_to() -> Result<()> {
    let gpu = lowest(|_| {});
    let (keys, heads, channels) = (36_864, 8, 128);
    // The same numbers as keys and as values: all 0 but for some, so that one reckons with few.
    let cache = gpu.zeros(ElementType::F32, [1, keys, heads, channels])?;
    let mut random = Random::new(2);
    let q = random.values(heads * channels);
    let written = [0, 5, 17_000, 33_333, keys - 1].map(|key| (key, random.values(heads * channels)));
    written.iter().for_each(|(key, numbers)| write_token(&gpu, &cache, *key, numbers));
    let query = gpu.upload(&q, [1, 1, heads, channels])?;
    let filled = gpu.upload_positions(&[keys as i32], [1, 1])?;
    let out = gpu.zeros(ElementType::F32, [1, 1, heads, channels])?;
    // Logits of some tens, so that those few keys weigh more than thousands of others.
    let attention = Attention::new(&query, &cache, &cache).scale(0.4).key_ranges(&filled).standing(Standing::RowLast);
    let prepared = Fused::new(&attention, &out).prepare(&gpu)?;
    gpu.submit(|pass| prepared.record(pass))?;
    let got = gpu.read_blocking(&out)?;
    for head in 0..heads {
        let of = |all: &'_ [f32]| all[head * channels..][..channels].iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let q = of(&q);
        let dot = |k: &[f64]| 0.4 * q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>();
        let seen: Vec<_> = written.iter().map(|(_, numbers)| of(numbers)).map(|k| (dot(&k).exp(), k)).collect();
        // Keys of 0 have a logit of 0.
        let sum = (keys - written.len()) as f64 + seen.iter().map(|(weight, _)| weight).sum::<f64>();
        for channel in 0..channels {
            let expected = seen.iter().map(|(weight, k)| weight * k[channel]).sum::<f64>() / sum;
            let got = f64::from(got[head * channels + channel]);
            assert!((got - expected).abs() <= 3e-5, "head {head}, channel {channel}: {got} instead of {expected}");
        }
    }
    Ok(())
}
