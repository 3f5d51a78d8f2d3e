//! Where tokens stand: one number for many, rows of unequal length, steps of a decoder.

use crate::common::{Random, gpu};
use crate::raw::{bits, frequencies, positions, run};
use phasor::ElementType::{F32, I32};
use phasor::{Layout, Pairing, Positions, Rope, RopeTable, Rotate, View};

/// Channels of a head on the vector path and on the other.
const CHANNELS: [usize; 2] = [16, 10];

fn rope(channels: usize) -> phasor::Result<Rope> {
    Rope::new(gpu(), &frequencies(channels, 1.25)?, Pairing::HalfSplit)
}

/// Queries and keys after a rotation in one dispatch.
fn rotated(rope: &Rope, [q, k]: [&View; 2], at: Positions, table: Option<&RopeTable>) -> phasor::Result<[Vec<u32>; 2]> {
    let (q_out, k_out) = (gpu().zeros(F32, q.shape())?, gpu().zeros(F32, k.shape())?);
    let rotate = Rotate::into(q, &q_out).and_into(k, &k_out).positions(at);
    assert_eq!(run(gpu(), rope, &table.map_or(rotate.clone(), |table| rotate.from_table(table)))?, 1);
    Ok([bits(gpu(), &q_out)?, bits(gpu(), &k_out)?])
}

fn tensors(batch: usize, tokens: usize, channels: usize) -> phasor::Result<[View; 2]> {
    let tensor = |heads, seed| {
        let shape = [batch, tokens, heads, channels];
        gpu().upload(&Random::new(seed).values(shape.iter().product()), shape)
    };
    Ok([tensor(3, 31)?, tensor(2, 32)?])
}

/// The same numbers for each row and token, told in as few as there are.
#[test]
fn one_number_may_serve_many() -> phasor::Result<()> {
    for channels in CHANNELS {
        let rope = rope(channels)?;
        let range = rope.table(-100, 400)?;
        gpu().submit(|pass| range.record(pass))?;
        for (batch, tokens) in [(3, 5), (3, 1), (1, 5)] {
            let [q, k] = tensors(batch, tokens, channels)?;
            for table in [None, Some(&range)] {
                let all = |position: &dyn Fn(usize, usize) -> i32| {
                    let list = (0..batch * tokens).map(|i| position(i / tokens, i % tokens));
                    let view = positions(gpu(), Layout::contiguous([batch, tokens, 1, 1])?, list)?;
                    rotated(&rope, [&q, &k], Positions::PerToken(view), table)
                };
                let number = |b: usize, t: usize| (50 * b + 3 * t) as i32 - 60;
                for [b, t] in [[1, 1], [batch, 1], [1, tokens]] {
                    let told = |b_ix: usize, t_ix: usize| number(b_ix.min(b - 1), t_ix.min(t - 1));
                    let list = || (0..b * t).map(|i| told(i / t, i % t));
                    let few = positions(gpu(), Layout::contiguous([b, t, 1, 1])?, list())?;
                    // The same by strides: one place for all of an axis' indices.
                    let strides = [if b == 1 { 0 } else { t }, usize::from(t > 1), 0, 0];
                    let spread = Layout::strided([batch, tokens, 1, 1], strides, 0)?;
                    let spread = View::new(few.buffer(), I32, spread)?;
                    let expected = all(&told)?;
                    for view in [few.clone(), spread] {
                        let said = format!("{:?} for [{batch}, {tokens}]", view.shape());
                        let got = rotated(&rope, [&q, &k], Positions::PerToken(view), table)?;
                        assert!(got == expected, "{said}, {channels} channels");
                    }
                    if t == 1 {
                        let got = rotated(&rope, [&q, &k], Positions::StartPerRow(few), table)?;
                        assert!(got == all(&|b, t| told(b, 0) + t as i32)?, "starts [{b}, 1], {channels} channels");
                    }
                }
                let got = rotated(&rope, [&q, &k], Positions::Same(-7), table)?;
                assert!(got == all(&|_, _| -7)?, "one position for [{batch}, {tokens}], {channels} channels");
            }
        }
    }
    Ok(())
}

/// A table need not reach farther than the one position that is asked for.
#[test]
fn one_position_takes_one_row_of_a_table() -> phasor::Result<()> {
    let rope = rope(16)?;
    let [q, k] = tensors(2, 70, 16)?;
    for position in [i32::MIN, -4096, 0, i32::MAX] {
        let table = rope.table(position, 1)?;
        gpu().submit(|pass| table.record(pass))?;
        let without = rotated(&rope, [&q, &k], Positions::Same(position), None)?;
        let with = rotated(&rope, [&q, &k], Positions::Same(position), Some(&table))?;
        assert!(with == without, "position {position}");
    }
    Ok(())
}

/// Rows that are padded on the left: what follows the padding is turned as if there were none.
#[test]
fn left_padding_moves_nothing() -> phasor::Result<()> {
    const TOKENS: usize = 7;
    let padding = [0, 3, 6];
    for channels in CHANNELS {
        let rope = rope(channels)?;
        let table = rope.table(-6, 6 + TOKENS)?;
        gpu().submit(|pass| table.record(pass))?;
        let [q, k] = tensors(padding.len(), TOKENS, channels)?;
        let starts = padding.map(|n| -(n as i32));
        let starts = Positions::StartPerRow(gpu().upload_positions(&starts, [padding.len(), 1])?);
        for table in [None, Some(&table)] {
            let padded = rotated(&rope, [&q, &k], starts.clone(), table)?;
            for (row, &n) in padding.iter().enumerate() {
                let text = |view: &View| view.batch(row..row + 1)?.tokens(n..TOKENS);
                let alone = rotated(&rope, [&text(&q)?, &text(&k)?], Positions::Start(0), table)?;
                for ((padded, alone), heads) in padded.iter().zip(&alone).zip([3, 2]) {
                    let token = heads * channels;
                    let behind = &padded[(row * TOKENS + n) * token..(row + 1) * TOKENS * token];
                    assert!(behind == alone, "row {row}, {n} tokens of padding, {channels} channels");
                }
            }
            let finite = |bits: &Vec<u32>| bits.iter().all(|&bits| f32::from_bits(bits).is_finite());
            assert!(padded.iter().all(finite), "padding is turned backwards, not spoiled");
        }
    }
    Ok(())
}

/// One step of a decoder, prepared once: token after token it gives what the whole prompt gives at once.
#[test]
fn a_decoder_s_steps_are_the_prompt_s() -> phasor::Result<()> {
    const TOKENS: usize = 6;
    let starts = [100, -2, 5000];
    for channels in CHANNELS {
        let rope = rope(channels)?;
        let [q, k] = tensors(starts.len(), TOKENS, channels)?;
        let view = |list: &[i32]| gpu().upload_positions(list, [starts.len(), 1]);
        let whole = rotated(&rope, [&q, &k], Positions::StartPerRow(view(&starts)?), None)?;
        let now = view(&[0; 3])?;
        let one = |view: &View| gpu().zeros(F32, [starts.len(), 1, view.shape()[2], channels]);
        let (q_now, k_now) = (one(&q)?, one(&k)?);
        let outs = [one(&q)?, one(&k)?];
        let step = Rotate::into(&q_now, &outs[0]).and_into(&k_now, &outs[1]);
        let step = rope.prepare(&step.positions(Positions::PerToken(now.clone())))?;
        for t in 0..TOKENS {
            let list = starts.map(|start| start + t as i32);
            gpu().queue().write_buffer(now.buffer(), 0, bytemuck::cast_slice(&list));
            for (from, to) in [(&q, &q_now), (&k, &k_now)] {
                let values = gpu().read_blocking(&from.tokens(t..t + 1)?)?;
                gpu().queue().write_buffer(to.buffer(), 0, bytemuck::cast_slice(&values));
            }
            gpu().submit(|pass| step.record(pass))?;
            for (whole, out) in whole.iter().zip(&outs) {
                let token = out.shape()[2] * channels;
                let rows = whole.chunks(TOKENS * token).flat_map(|row| &row[t * token..(t + 1) * token]);
                assert!(bits(gpu(), out)?.iter().eq(rows), "token {t}, {channels} channels");
            }
        }
    }
    Ok(())
}
