//! Tensors that are empty, that are huge, or whose elements are shared.

use crate::case::{ANGLE, Case, Memory, ROTATION, Standing};
use crate::common::{Random, gpu};
use phasor::frequencies::{Frequencies, Plain};
use phasor::{Direction, ElementType, Layout, Pairing, Positions, Rope, Rotate, View};

/// Groups that one dimension of a grid has at least on any device, and on most at most.
const GROUPS: usize = 65_535;

#[test]
fn empty_tensors_are_no_work() {
    let empty = [
        Case { batch: 0, ..Case::default() },
        Case { tokens: 0, ..Case::default() },
        Case { q_heads: 0, k_heads: None, ..Case::default() },
        Case { q_heads: 0, k_heads: Some(0), ..Case::default() },
    ];
    for case in empty {
        for memory in [Memory::InPlace, Memory::Packed, Memory::Copy, Memory::Arena] {
            for standing in Standing::ALL {
                for table in [false, true] {
                    let case = Case { memory, standing, table, ..case };
                    assert_eq!(case.run(gpu()), Ok(0), "{case:?}");
                }
            }
        }
    }
}

#[test]
fn one_empty_tensor_does_not_keep_the_other_from_turning() {
    for (q_heads, k_heads) in [(0, Some(3)), (3, Some(0))] {
        for memory in Memory::ALL {
            let case = Case { q_heads, k_heads, memory, ..Case::default() };
            assert_eq!(case.run(gpu()), Ok(1), "{case:?}");
        }
    }
}

#[test]
fn empty_buffers_and_tables_are_allowed() -> phasor::Result<()> {
    let empty = gpu().upload(&[], [1, 0, 3, 4])?;
    assert!(gpu().read_blocking(&empty)?.is_empty());
    let rope = Rope::new(gpu(), &Plain::new(1e4).frequencies(4)?, Pairing::HalfSplit)?;
    let nowhere = gpu().upload_positions(&[], [1, 0])?;
    for table in [rope.table(7, 0)?, rope.table_for(&nowhere)?] {
        gpu().submit(|pass| table.record(pass))?;
        assert!(gpu().read_blocking(table.view())?.is_empty());
    }
    Ok(())
}

/// Angles alone: one pair (1, 0) to a head, of which nothing but cosine and sine remain.
fn assert_turned(got: &[f32], position: impl Fn(usize) -> usize) {
    for (i, pair) in got.chunks(2).enumerate() {
        let (sin, cos) = (position(i) as f64).sin_cos();
        let off = (f64::from(pair[0]) - cos).abs().max((f64::from(pair[1]) - sin).abs());
        assert!(off <= ROTATION, "pair {i}: {pair:?} instead of {cos}, {sin}");
    }
}

fn units(n: usize) -> Vec<f32> {
    [1.0, 0.0].repeat(n)
}

/// More rows than 65,535 groups of 64 invocations hold.
#[test]
fn more_tokens_than_a_grid_has_groups() -> phasor::Result<()> {
    let rope = Rope::new(gpu(), &Plain::new(1e4).frequencies(2)?, Pairing::Interleaved)?;
    let rows = 64 * GROUPS + 1000;
    let q = gpu().upload(&units(rows), [1, rows, 1, 2])?;
    let rotation = rope.prepare(&Rotate::in_place(&q))?;
    gpu().submit(|pass| rotation.record(pass))?;
    assert_turned(&gpu().read_blocking(&q)?, |row| row);
    Ok(())
}

/// The same for a batch of single tokens, from a table, and for rows that cannot be joined.
#[test]
fn more_rows_of_a_batch_than_a_grid_has_groups() -> phasor::Result<()> {
    let rope = Rope::new(gpu(), &Plain::new(1e4).frequencies(2)?, Pairing::Interleaved)?;
    let table = rope.table(0, 4)?;
    gpu().submit(|pass| table.record(pass))?;
    for tokens in [1, 3] {
        let batch = 64 * GROUPS / tokens + 1000;
        let q = gpu().upload(&units(batch * tokens), [batch, tokens, 1, 2])?;
        let rotate = Rotate::in_place(&q).positions(Positions::Start(1)).from_table(&table);
        let rotation = rope.prepare(&rotate)?;
        gpu().submit(|pass| rotation.record(pass))?;
        assert_turned(&gpu().read_blocking(&q)?, |row| 1 + row % tokens);
    }
    Ok(())
}

#[test]
fn more_heads_than_a_grid_has_groups() -> phasor::Result<()> {
    let rope = Rope::new(gpu(), &Plain::new(1e4).frequencies(2)?, Pairing::Interleaved)?;
    let heads = 8 * GROUPS + 1000;
    let (q, k) = (gpu().upload(&units(heads), [1, 1, heads, 2])?, gpu().upload(&units(3), [1, 1, 3, 2])?);
    let rotate = Rotate::in_place(&q).and_in_place(&k).positions(Positions::Start(9));
    let rotation = rope.prepare(&rotate)?;
    gpu().submit(|pass| rotation.record(pass))?;
    assert_turned(&gpu().read_blocking(&q)?, |_| 9);
    assert_turned(&gpu().read_blocking(&k)?, |_| 9);
    Ok(())
}

#[test]
fn more_table_rows_than_a_grid_has_groups() -> phasor::Result<()> {
    let rope = Rope::new(gpu(), &Plain::new(1e4).frequencies(2)?, Pairing::Interleaved)?;
    let rows = 8 * GROUPS + 1000;
    let positions: Vec<i32> = (0..rows as i32).rev().collect();
    let buffer = gpu().upload_positions(&positions, [1, rows])?;
    for (table, position) in [
        (rope.table(0, rows)?, &(|row: usize| row) as &dyn Fn(usize) -> usize),
        (rope.table_for(&buffer)?, &|row: usize| rows - 1 - row),
    ] {
        gpu().submit(|pass| table.record(pass))?;
        for (row, pair) in gpu().read_blocking(table.view())?.chunks(2).enumerate() {
            let (sin, cos) = (position(row) as f64).sin_cos();
            let off = (f64::from(pair[0]) - cos).abs().max((f64::from(pair[1]) - sin).abs());
            assert!(off <= ANGLE, "row {row}: {pair:?} instead of {cos}, {sin}");
        }
    }
    Ok(())
}

/// What is only read may be the same for all rows of a batch.
#[test]
fn an_input_may_be_broadcast() -> phasor::Result<()> {
    let rope = Rope::new(gpu(), &Plain::new(1e4).frequencies(8)?, Pairing::HalfSplit)?;
    let values = Random::new(4).values(2 * 4 * 8);
    let one = gpu().upload(&values, [1, 2, 4, 8])?;
    let all = gpu().upload(&values.repeat(3), [3, 2, 4, 8])?;
    let broadcast = View::new(one.buffer(), ElementType::F32, Layout::strided([3, 2, 4, 8], [0, 32, 8, 1], 0)?)?;
    let mut outputs = Vec::new();
    for q in [broadcast, all] {
        let out = gpu().zeros(ElementType::F32, [3, 2, 4, 8])?;
        let rotation = rope.prepare(&Rotate::into(&q, &out).positions(Positions::Start(3)))?;
        gpu().submit(|pass| rotation.record(pass))?;
        outputs.push(gpu().read_blocking(&out)?);
    }
    assert_eq!(outputs[0], outputs[1]);
    Ok(())
}

/// A row that a buffer names and the table lacks is known to the shader alone: its token stays as it is.
#[test]
fn a_position_that_the_table_lacks_leaves_its_token_alone() -> phasor::Result<()> {
    let frequencies = Frequencies::new(Plain::new(1e4).frequencies(8)?.inv_freq().to_vec(), 1.5)?;
    let rope = Rope::new(gpu(), &frequencies, Pairing::HalfSplit)?;
    let table = rope.table(100, 10)?;
    gpu().submit(|pass| table.record(pass))?;
    let absent = [99, 110, 0, -1, i32::MIN, i32::MAX, -2_147_483_549];
    let values = Random::new(6).values(absent.len() * 8);
    let positions = Positions::PerToken(gpu().upload_positions(&absent, [1, absent.len()])?);
    for direction in [Direction::Forward, Direction::Inverse, Direction::Adjoint] {
        let q = gpu().upload(&values, [1, absent.len(), 1, 8])?;
        let rotate = Rotate::in_place(&q).positions(positions.clone()).direction(direction).from_table(&table);
        let rotation = rope.prepare(&rotate)?;
        gpu().submit(|pass| rotation.record(pass))?;
        for (got, value) in gpu().read_blocking(&q)?.into_iter().zip(&values) {
            // To the bit, but for the inverse: it takes the table's magnitude out again, by a quotient and a product.
            let ulps = if direction == Direction::Inverse { 4.0 } else { 0.0 };
            assert!((got - value).abs() <= ulps * f32::EPSILON * value.abs(), "{direction:?}: {got}, not {value}");
        }
    }
    Ok(())
}

/// A buffer that is mostly gap.
#[test]
fn rows_may_lie_far_apart() -> phasor::Result<()> {
    let rope = Rope::new(gpu(), &Plain::new(1e4).frequencies(4)?, Pairing::HalfSplit)?;
    let far = 5_000_003;
    let layout = Layout::strided([1, 3, 1, 4], [0, far, 0, 1], 1)?;
    let all = gpu().upload(&vec![1.0; layout.span().end + 1], [1, 1, 1, layout.span().end + 1])?;
    let q = View::new(all.buffer(), ElementType::F32, layout)?;
    let rotation = rope.prepare(&Rotate::in_place(&q).positions(Positions::Start(1)))?;
    gpu().submit(|pass| rotation.record(pass))?;
    let got = gpu().read_blocking(&all)?;
    let turned: Vec<usize> = (0..got.len()).filter(|&i| got[i] != 1.0).collect();
    assert_eq!(turned, layout.places().collect::<Vec<_>>());
    Ok(())
}
