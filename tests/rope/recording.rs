//! Prepared once, recorded many times, from any thread; what changes from step to step is in a buffer.

use crate::case::{Case, Memory, Order, ROTATION, Standing};
use crate::common::{Random, gpu, gpu_with};
use phasor::frequencies::Plain;
use phasor::reference::rope_rotate;
use phasor::{Direction, Layout, Pairing, Positions, Prepared, Rope, Rotate, View};

const SHAPE: [usize; 4] = [2, 3, 4, 32];

fn rope() -> phasor::Result<Rope> {
    Rope::new(gpu(), &Plain::new(1e4).frequencies(32)?, Pairing::HalfSplit)
}

/// Every element of a `SHAPE` tensor of ones, rotated by these positions: off by at most what two ones may be.
#[track_caller]
fn assert_ones_turned(got: &[f32], turns: f64, position: impl Fn(usize, usize) -> i32) {
    let layout = Layout::contiguous(SHAPE).unwrap();
    let mut expected = vec![1.0; layout.elements()];
    let frequencies = Plain::new(1e4).frequencies(32).unwrap();
    rope_rotate(&mut expected, layout, &frequencies, Pairing::HalfSplit, 0, Direction::Forward, position).unwrap();
    for (i, (&got, expected)) in got.iter().zip(expected).enumerate() {
        assert!(
            (f64::from(got) - expected).abs() <= turns * 2.0 * ROTATION,
            "element {i}: {got} instead of {expected}"
        );
    }
}

fn ones() -> phasor::Result<View> {
    gpu().upload(&vec![1.0; SHAPE.iter().product()], SHAPE)
}

#[test]
fn recording_again_gives_the_same_bits() -> phasor::Result<()> {
    let q = gpu().upload(&Random::new(1).values(SHAPE.iter().product()), SHAPE)?;
    let out = gpu().zeros(q.element(), SHAPE)?;
    let rotation = rope()?.prepare(&Rotate::into(&q, &out).positions(Positions::Start(77)))?;
    gpu().submit(|pass| rotation.record(pass))?;
    let first = gpu().read_blocking(&out)?;
    for _ in 0..3 {
        // Several times in one pass, too.
        gpu().submit(|pass| (0..3).for_each(|_| rotation.record(pass)))?;
        assert_eq!(gpu().read_blocking(&out)?, first);
    }
    Ok(())
}

/// In place, each recording turns on from where the last one ended.
#[test]
fn recordings_in_place_add_up() -> phasor::Result<()> {
    let q = ones()?;
    let rotation = rope()?.prepare(&Rotate::in_place(&q).positions(Positions::Start(100)))?;
    gpu().submit(|pass| (0..3).for_each(|_| rotation.record(pass)))?;
    gpu().submit(|pass| (0..2).for_each(|_| rotation.record(pass)))?;
    // Five turns, each adding its own error to what it is given: two ones grow to sqrt(2) at most.
    assert_ones_turned(&gpu().read_blocking(&q)?, 5.0 * 2f64.sqrt(), |_, t| 5 * (100 + t as i32));
    Ok(())
}

#[test]
fn positions_may_change_between_recordings() -> phasor::Result<()> {
    let (q, out) = (ones()?, gpu().zeros(phasor::ElementType::F32, SHAPE)?);
    let positions = gpu().upload_positions(&[0; 6], [2, 3])?;
    let starts = gpu().upload_positions(&[0; 2], [2, 1])?;
    let rope = rope()?;
    let table = rope.table(0, 2000)?;
    let rows = rope.table_for(&positions)?;
    gpu().submit(|pass| table.record(pass))?;
    let rotate = || Rotate::into(&q, &out);
    let per_token = rope.prepare(&rotate().positions(Positions::PerToken(positions.clone())))?;
    let per_row = rope.prepare(&rotate().positions(Positions::StartPerRow(starts.clone())))?;
    let looked_up = rope.prepare(&rotate().positions(Positions::PerToken(positions.clone())).from_table(&table))?;
    let by_rows = rope.prepare(&rotate().from_table(&rows))?;
    let write = |view: &View, numbers: &[i32]| {
        gpu().queue().write_buffer(view.buffer(), 0, bytemuck::cast_slice(numbers));
    };
    for step in [3, 500, 1996] {
        let list: Vec<i32> = (0..6).map(|i| step - i % 4).collect();
        write(&positions, &list);
        write(&starts, &[step, step + 1]);
        for rotation in [&per_token, &looked_up] {
            gpu().submit(|pass| rotation.record(pass))?;
            assert_ones_turned(&gpu().read_blocking(&out)?, 1.0, |b, t| list[3 * b + t]);
        }
        // The table is made anew and used within one pass.
        gpu().submit(|pass| {
            rows.record(pass);
            by_rows.record(pass);
        })?;
        assert_ones_turned(&gpu().read_blocking(&out)?, 1.0, |b, t| list[3 * b + t]);
        gpu().submit(|pass| per_row.record(pass))?;
        assert_ones_turned(&gpu().read_blocking(&out)?, 1.0, |b, t| step + (b + t) as i32);
    }
    Ok(())
}

/// The caller's encoder, the caller's pass, one submission; what it was made from is gone by then.
#[test]
fn records_into_a_pass_of_the_caller_s() -> phasor::Result<()> {
    let (q, k) = (ones()?, ones()?);
    let (table, rotation) = {
        let rope = rope()?;
        let table = rope.table(10, 3)?;
        let positions = Positions::Start(10);
        let rotation = rope.prepare(&Rotate::in_place(&q).and_in_place(&k).positions(positions).from_table(&table))?;
        (table, rotation)
    };
    let mut encoder = gpu().device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        table.record(&mut pass);
        rotation.record(&mut pass);
    }
    drop((table, rotation));
    gpu().queue().submit([encoder.finish()]);
    gpu().wait()?;
    for view in [q, k] {
        assert_ones_turned(&gpu().read_blocking(&view)?, 1.0, |_, t| 10 + t as i32);
    }
    Ok(())
}

/// Threads that meet at the same pipelines and at others, on a device that has built none yet.
#[test]
fn one_gpu_serves_many_threads() {
    let gpu = gpu_with(|_| ());
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let gpu = &gpu;
            scope.spawn(move || {
                for memory in [Memory::InPlace, Memory::Copy] {
                    let order = if thread % 2 == 0 { Order::TokensFirst } else { Order::OddGaps };
                    let standing = Standing::ALL[thread];
                    for case in [Case { memory, order, ..Case::default() }, Case { standing, ..Case::default() }] {
                        assert_eq!(case.run(gpu), Ok(1));
                    }
                }
            });
        }
    });
}

#[test]
fn what_is_prepared_may_be_sent_to_another_thread() -> phasor::Result<()> {
    fn is_send_and_sync<T: Send + Sync>(_: &T) {}
    let q = ones()?;
    let rope = rope()?;
    let rotation: Prepared = rope.prepare(&Rotate::in_place(&q).positions(Positions::Start(5)))?;
    is_send_and_sync(&rotation);
    is_send_and_sync(&rope);
    std::thread::scope(|scope| scope.spawn(|| gpu().submit(|pass| rotation.record(pass))).join().unwrap())?;
    assert_ones_turned(&gpu().read_blocking(&q)?, 1.0, |_, t| 5 + t as i32);
    Ok(())
}

/// A table holds the factor of the encoding that made it; one without a factor must not hand it on.
#[test]
fn a_shift_by_a_table_leaves_the_attention_factor_alone() -> phasor::Result<()> {
    let frequencies = phasor::frequencies::Frequencies::new(vec![0.5; 16], 2.0)?;
    let rope = Rope::new(gpu(), &frequencies, Pairing::HalfSplit)?;
    let table = rope.table(-8, 16)?;
    let rotated = |rope: &Rope, with_table: bool| -> phasor::Result<Vec<f32>> {
        let q = ones()?;
        let rotate = Rotate::in_place(&q).positions(Positions::Same(-3));
        let rotate = if with_table { rotate.from_table(&table) } else { rotate };
        let rotation = rope.prepare(&rotate)?;
        gpu().submit(|pass| {
            table.record(pass);
            rotation.record(pass);
        })?;
        gpu().read_blocking(&q)
    };
    for rope in [rope.clone(), rope.without_attention_factor()] {
        let (with, without) = (rotated(&rope, true)?, rotated(&rope, false)?);
        for (a, b) in with.into_iter().zip(without) {
            assert!(f64::from((a - b).abs()) <= 4.0 * ROTATION, "{a} by the table, {b} without it");
        }
    }
    Ok(())
}
