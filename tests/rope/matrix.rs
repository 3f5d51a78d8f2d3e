//! One matrix of parameters instead of hand-picked cases: every way to lay out, to place and to turn, with every other.

use crate::case::{Case, Memory, Order, Standing};
use crate::common::gpu;
use phasor::{Direction, ElementType, Pairing};
use std::sync::atomic::{AtomicUsize, Ordering};

const PAIRINGS: [Pairing; 2] = [Pairing::Interleaved, Pairing::HalfSplit];
const DIRECTIONS: [Direction; 3] = [Direction::Forward, Direction::Inverse, Direction::Adjoint];

/// Runs cases on as many threads as there are cores: most of the time goes into compiling pipelines.
fn run_all(cases: &[Case]) {
    assert!(!cases.is_empty());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failures = Vec::new();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            failures.extend(case.run(gpu()).err());
        }
        failures
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let first: Vec<_> = failures.iter().take(5).collect();
    assert!(failures.is_empty(), "{} of {} cases failed: {first:#?}", failures.len(), cases.len());
}

/// Where tensors lie, by how their axes are ordered, by pairing, by whether all channels turn.
#[test]
fn every_memory_in_every_order() {
    let mut cases = Vec::new();
    for memory in Memory::ALL {
        for order in Order::ALL {
            for pairing in PAIRINGS {
                for (rotary_dim, first_channel) in [(16, 0), (8, 4)] {
                    cases.push(Case { memory, order, pairing, rotary_dim, first_channel, ..Case::default() });
                }
            }
        }
    }
    run_all(&cases);
}

/// Where positions and angles come from, by direction, by whether rows follow each other in memory, by lane.
#[test]
fn every_source_of_angles_in_every_direction() {
    let mut cases = Vec::new();
    for standing in Standing::ALL {
        for table in [false, true] {
            for direction in DIRECTIONS {
                for order in [Order::TokensFirst, Order::WideGaps, Order::HeadsFirst, Order::OddGaps] {
                    for (batch, tokens) in [(2, 3), (3, 1)] {
                        cases.push(Case { standing, table, direction, order, batch, tokens, ..Case::default() });
                    }
                }
            }
        }
    }
    run_all(&cases);
}

/// Numbers of heads that leave a remainder, are alike, are far apart, or where keys have more than queries.
#[test]
fn every_ratio_of_heads() {
    let mut cases = Vec::new();
    for (q_heads, k_heads) in [
        (1, None),
        (5, None),
        (8, None),
        (11, None),
        (1, Some(1)),
        (4, Some(4)),
        (9, Some(3)),
        (8, Some(1)),
        (32, Some(8)),
        (71, Some(1)),
        (16, Some(12)),
        (2, Some(6)),
        (1, Some(71)),
        (7, Some(5)),
    ] {
        for memory in [Memory::InPlace, Memory::Packed, Memory::Copy] {
            for tokens in [1, 5] {
                for order in [Order::TokensFirst, Order::OddGaps] {
                    cases.push(Case { q_heads, k_heads, memory, tokens, order, ..Case::default() });
                }
            }
        }
    }
    run_all(&cases);
}

/// Head dims from 2 to 256, even and odd, all of them turning, the first of them, the last, or some within.
#[test]
fn every_head_dim() {
    let mut cases = Vec::new();
    for channels in [2, 3, 4, 6, 7, 8, 10, 16, 24, 32, 40, 64, 80, 96, 100, 128, 192, 256] {
        let even = channels / 2 * 2;
        let part = (channels / 4 * 2).max(2);
        for (rotary_dim, first_channel) in
            [(even, channels - even), (part, 0), (part, channels - part), (part, (channels - part) / 2)]
        {
            for pairing in PAIRINGS {
                for memory in [Memory::InPlace, Memory::Copy] {
                    cases.push(Case { channels, rotary_dim, first_channel, pairing, memory, ..Case::default() });
                }
            }
        }
    }
    run_all(&cases);
}

/// Elements of 16 bits, in place, out of place, and from one type to another.
#[test]
fn every_element_type() {
    use ElementType::{BF16, F16, F32};
    let mut cases = Vec::new();
    let same = [F16, BF16].map(|element| [element; 2]);
    let converted = [[F32, F16], [F32, BF16], [F16, F32], [BF16, F32], [F16, BF16]];
    for elements in same.into_iter().chain(converted) {
        let memories = if elements[0] == elements[1] { Memory::ALL.to_vec() } else { vec![Memory::Copy] };
        for memory in memories {
            for order in [Order::TokensFirst, Order::OddGaps, Order::SpreadChannels, Order::HeadsFirst] {
                for pairing in PAIRINGS {
                    // With an odd number of channels, heads share words.
                    for (channels, rotary_dim, first_channel) in [(16, 16, 0), (15, 6, 3)] {
                        let case = Case { channels, rotary_dim, first_channel, ..Case::default() };
                        cases.push(Case { elements, memory, order, pairing, ..case });
                    }
                }
            }
        }
    }
    run_all(&cases);
}

/// Heads with more lanes than a workgroup has invocations, the last workgroup not full: turning ones, and copied ones.
#[test]
fn heads_wider_than_a_workgroup() {
    let mut cases = Vec::new();
    for (channels, rotary_dim, first_channel) in [(700, 700, 0), (700, 2, 1), (2600, 2600, 0), (2600, 8, 4)] {
        for pairing in PAIRINGS {
            for memory in [Memory::InPlace, Memory::Copy] {
                for table in [false, true] {
                    let case = Case { channels, rotary_dim, first_channel, pairing, ..Case::default() };
                    cases.push(Case { memory, table, ..case });
                }
            }
        }
    }
    run_all(&cases);
}

/// Several positions to a token, from a buffer and from a table of them.
#[test]
fn every_number_of_axes() {
    let mut cases = Vec::new();
    for axes in [2, 3, 4] {
        for standing in [Standing::PerToken, Standing::PerTokenShared, Standing::PerTokenSpread, Standing::TableRows] {
            for order in [Order::TokensFirst, Order::OddGaps] {
                for direction in DIRECTIONS {
                    for (batch, tokens) in [(2, 3), (3, 1)] {
                        cases.push(Case { axes, standing, order, direction, batch, tokens, ..Case::default() });
                    }
                }
            }
        }
    }
    run_all(&cases);
}

/// Rows of a cache, by where positions and angles come from, by batch and tokens.
#[test]
fn every_way_into_a_cache() {
    let mut cases = Vec::new();
    for memory in [Memory::CacheRows, Memory::CacheRun] {
        for standing in Standing::ALL {
            for table in [false, true] {
                for order in [Order::TokensFirst, Order::HeadsFirst, Order::OddGaps] {
                    for (batch, tokens) in [(1, 1), (3, 1), (2, 6)] {
                        cases.push(Case { memory, standing, table, order, batch, tokens, ..Case::default() });
                    }
                }
            }
        }
    }
    run_all(&cases);
}
