//! Devices that allow less: work is split and comes out the same, or is refused with the numbers.

use crate::case::{Case, Memory, Order, Standing};
use crate::common::gpu_with;
use crate::common::refused::expect_refused;
use phasor::frequencies::Plain;
use phasor::{ErrorKind, Gpu, Layout, Pairing, Rope, Rotate, View};

/// A device with bindings of at most so many bytes.
fn gpu_with_bindings_of(bytes: u64) -> Gpu {
    gpu_with(|limits| {
        limits.max_storage_buffer_binding_size = bytes;
        // As coarse as WebGPU allows, so that ranges begin before the tensors that they are for.
        limits.min_storage_buffer_offset_alignment = 256;
    })
}

/// Three rows of 40 tokens, each of 9 + 3 heads of 32 channels: 135 KiB of queries.
fn large() -> Case {
    Case { batch: 3, tokens: 40, q_heads: 9, k_heads: Some(3), channels: 32, rotary_dim: 32, ..Case::default() }
}

#[test]
fn tensors_larger_than_a_binding_are_split() {
    let gpu = gpu_with_bindings_of(24 << 10);
    let mut split = 0;
    for memory in [Memory::InPlace, Memory::Packed, Memory::Copy, Memory::SharedOutput, Memory::Mixed] {
        for order in [Order::TokensFirst, Order::HeadsFirst, Order::BatchInside, Order::OddGaps] {
            let case = Case { memory, order, ..large() };
            let dispatches = case.run(&gpu).unwrap();
            assert!(dispatches > 1, "{case:?}");
            split += dispatches;
        }
    }
    // 135 KiB of queries by 24 KiB are six pieces at least.
    assert!(split >= 20 * 6, "{split} dispatches");
}

/// A token may go to any row of a cache: it is split by rows of the batch and by heads, and else into windows.
#[test]
fn caches_larger_than_a_binding_are_split() {
    for (binding, pieces) in [(24 << 10, 6), (4 << 10, 34)] {
        let gpu = gpu_with_bindings_of(binding);
        for memory in [Memory::CacheRows, Memory::CacheRun] {
            for order in [Order::TokensFirst, Order::HeadsFirst, Order::OddGaps] {
                for standing in [Standing::Start, Standing::PerToken] {
                    let case = Case { memory, order, standing, ..large() };
                    // 135 KiB of queries.
                    assert!(case.run(&gpu).unwrap() >= pieces, "{case:?}");
                }
            }
        }
    }
}

#[test]
fn positions_and_table_rows_follow_the_pieces() {
    let gpu = gpu_with_bindings_of(24 << 10);
    for standing in Standing::ALL {
        for order in [Order::TokensFirst, Order::HeadsFirst, Order::OddGaps] {
            for table in [false, true] {
                let case = Case { standing, order, table, ..large() };
                assert!(case.run(&gpu).unwrap() > 1, "{case:?}");
            }
        }
    }
}

#[test]
fn the_positions_themselves_may_be_larger_than_a_binding() {
    let gpu = gpu_with_bindings_of(256);
    for standing in [Standing::PerToken, Standing::PerTokenSpread, Standing::PerTokenShared, Standing::StartPerRow] {
        let case = Case { batch: 2, tokens: 150, channels: 2, rotary_dim: 2, q_heads: 2, standing, ..Case::default() };
        assert!(case.run(&gpu).unwrap() > 1, "{case:?}");
    }
}

/// A token's queries take 1,152 bytes: bindings of 1,024 hold some of its heads only.
#[test]
fn a_single_token_s_heads_are_split() {
    let gpu = gpu_with_bindings_of(1024);
    for memory in [Memory::InPlace, Memory::Packed, Memory::Copy] {
        for order in [Order::TokensFirst, Order::HeadsFirst] {
            let case = Case { tokens: 4, memory, order, ..large() };
            // Each of 3 * 4 tokens takes two pieces at least.
            assert!(case.run(&gpu).unwrap() >= 24, "{case:?}");
        }
    }
    // Keys of a single query head are 9 KiB a token.
    let case = Case { q_heads: 1, k_heads: Some(71), tokens: 1, ..large() };
    assert!(case.run(&gpu).unwrap() >= 3 * 9, "{case:?}");
}

#[test]
fn grids_larger_than_a_dispatch_are_split() {
    let gpu = gpu_with(|limits| limits.max_compute_workgroups_per_dimension = 1);
    for standing in Standing::ALL {
        for (q_heads, k_heads) in [(9, Some(3)), (1, Some(71)), (71, Some(1)), (40, None)] {
            for order in [Order::TokensFirst, Order::OddGaps] {
                let case = Case { standing, q_heads, k_heads, order, tokens: 300, ..Case::default() };
                assert!(case.run(&gpu).unwrap() > 1, "{case:?}");
            }
        }
    }
}

/// What cannot be split any more is an error, never work left out.
#[test]
fn a_head_wider_than_a_grid_is_refused() -> phasor::Result<()> {
    let gpu = gpu_with(|limits| limits.max_compute_workgroups_per_dimension = 1);
    let channels = 4096;
    let rope = Rope::new(&gpu, &Plain::new(1e4).frequencies(channels as u32)?, Pairing::HalfSplit)?;
    let q = gpu.upload(&vec![1.0; channels], [1, 1, 1, channels])?;
    // One group has no room for 2,048 pairs, nor for a table's row of them.
    expect_refused(rope.prepare(&Rotate::in_place(&q)), ErrorKind::Limit, "max_compute_workgroups_per_dimension");
    expect_refused(rope.table(0, 1), ErrorKind::Limit, "max_compute_workgroups_per_dimension");
    Ok(())
}

#[test]
fn what_no_binding_can_hold_is_refused_with_the_numbers() -> phasor::Result<()> {
    let gpu = gpu_with_bindings_of(1024);
    let rope = Rope::new(&gpu, &Plain::new(1e4).frequencies(64)?, Pairing::HalfSplit)?;
    fn limited<T>(result: phasor::Result<T>, words: &[&str]) {
        let message = expect_refused(result, ErrorKind::Limit, "max_storage_buffer_binding_size").to_string();
        words.iter().for_each(|word| assert!(message.contains(word), "{message} does not say {word}"));
    }
    // One channel every 512 bytes: a head of 64 reaches over 32 KiB.
    let q = gpu.upload(&vec![0.0; 64 * 128], [1, 1, 1, 64 * 128])?;
    let spread = View::new(q.buffer(), q.element(), Layout::strided([1, 1, 1, 64], [0, 0, 0, 128], 0)?)?;
    let refused = rope.prepare(&Rotate::in_place(&spread));
    limited(refused, &["one head of q in one token", "32260 bytes", "1024 bytes"]);
    // A table is not split.
    limited(rope.table(0, 5), &["the table", "1280 bytes", "1024 bytes"]);
    let many = gpu.upload_positions(&[0; 300], [1, 300])?;
    limited(rope.table_for(&many), &["1024 bytes"]);
    Case { channels: 8, rotary_dim: 8, ..Case::default() }.run(&gpu).map(|_| ()).unwrap();
    Ok(())
}

/// phasor asks for nothing beyond WebGPU's lowest limits.
#[test]
fn webgpu_s_lowest_limits_do() {
    let gpu = gpu_with(|limits| *limits = wgpu::Limits::default());
    for memory in [Memory::InPlace, Memory::Packed, Memory::Copy, Memory::Arena] {
        for standing in [Standing::Start, Standing::PerToken, Standing::TableRows] {
            let case = Case { memory, standing, ..Case::default() };
            assert_eq!(case.run(&gpu), Ok(1), "{case:?}");
        }
    }
}
