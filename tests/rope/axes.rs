//! Several positions to a token: every pattern that models have, against exact angles, and as text where all are alike.

use crate::case::{ANGLE, ROTATION};
use crate::common::{Random, gpu};
use crate::raw::{bits, frequencies, positions, run};
use phasor::ElementType::F32;
use phasor::frequencies::{Axes, Axial, AxialSeries, Frequencies};
use phasor::reference::rope_table;
use phasor::{Layout, Pairing, Positions, Rope, Rotate, View};

const BATCH: usize = 2;
const TOKENS: usize = 5;

/// A head with some channels that do not turn.
fn shape(pairs: usize) -> [usize; 4] {
    [BATCH, TOKENS, 3, 2 * pairs + 4]
}

/// Every way in which pairs are given to axes: of 32 pairs on the vector path, and of 30 on the other.
fn patterns() -> phasor::Result<Vec<(&'static str, Frequencies, Axes)>> {
    let mut list = Vec::new();
    for (pairs, three) in [(32, [12, 11, 9]), (30, [10, 12, 8])] {
        let plain = || frequencies(2 * pairs, 1.25);
        list.extend([
            ("sections", plain()?, Axes::sections(&three, pairs)?),
            ("four sections", plain()?, Axes::sections(&[8, 8, 8, pairs as u32 - 24], pairs)?),
            ("interleaved", plain()?, Axes::interleaved(&three, pairs)?),
            ("interleaved as ggml has it", plain()?, Axes::interleaved_ggml(&three, pairs)?),
            ("interleaved as GLM has it", plain()?, Axes::interleaved_glm(&three, pairs)?),
            ("ernie", plain()?, Axes::ernie(&three, pairs)?),
        ]);
        for series in [AxialSeries::Same, AxialSeries::Alternating] {
            let axial = Axial { series, ..Axial::new(1e4) };
            list.push(("axial", axial.frequencies(2 * pairs as u32)?, Axes::axial(pairs)?));
        }
    }
    Ok(list)
}

/// Where a token stands on an axis: no two axes, tokens or rows alike.
fn standing(b: usize, t: usize, axis: usize) -> i32 {
    (1000 * axis + 100 * b + 7 * t) as i32 - 1500
}

/// A view `[batch, tokens, axes, 1]` of positions that lie `[batch, tokens, axes]` in memory.
fn tokens_first([b, t]: [usize; 2], axes: usize) -> phasor::Result<Layout> {
    Layout::contiguous([b, t, axes, 1])
}

/// One of positions that lie `[axes, batch, tokens]`, as Hugging Face has them.
fn axes_first([b, t]: [usize; 2], axes: usize) -> phasor::Result<Layout> {
    Layout::strided([b, t, axes, 1], [t, 1, b * t, 1], 0)
}

fn upload(layout: Layout, position: impl Fn(usize, usize, usize) -> i32) -> phasor::Result<View> {
    let [b, t, axes, _] = layout.shape();
    let index = (0..b).flat_map(|b| (0..t).flat_map(move |t| (0..axes).map(move |axis| (b, t, axis))));
    positions(gpu(), layout, index.map(|(b, t, axis)| position(b, t, axis)))
}

/// The tensor after a rotation out of place.
fn rotated(rope: &Rope, q: &View, change: impl FnOnce(Rotate) -> Rotate) -> phasor::Result<View> {
    let out = gpu().zeros(F32, q.shape())?;
    assert_eq!(run(gpu(), rope, &change(Rotate::into(q, &out)))?, 1);
    Ok(out)
}

/// Each pair is turned by its own axis' position; what does not turn is as it was.
fn assert_turned(
    name: &str,
    [before, after]: [&View; 2],
    frequencies: &Frequencies,
    axes: &Axes,
    pairing: Pairing,
    position: impl Fn(usize, usize, usize) -> i32,
) -> phasor::Result<()> {
    let layout = before.layout();
    let (x, y) = (gpu().read_blocking(before)?, gpu().read_blocking(after)?);
    let [batch, tokens, heads, channels] = layout.shape();
    let (pairs, factor) = (frequencies.pairs(), frequencies.attention_factor());
    for (i, (&w, &axis)) in frequencies.inv_freq().iter().zip(axes.axis_of_pair()).enumerate() {
        let (first, second) = pairing.channels(i as u32, pairs as u32);
        let alone = Frequencies::new(vec![w], factor)?;
        for (b, t) in (0..batch).flat_map(|b| (0..tokens).map(move |t| (b, t))) {
            let (cos, sin) = rope_table(&alone, [position(b, t, axis.into())]);
            for h in 0..heads {
                let [i, j] = [first, second].map(|channel| layout.at([b, t, h, channel as usize]));
                let [a, b] = [x[i], x[j]].map(f64::from);
                let tolerance = factor * (a.abs() + b.abs()) * ROTATION;
                for (got, exact) in [(y[i], a * cos[0] - b * sin[0]), (y[j], a * sin[0] + b * cos[0])] {
                    assert!((f64::from(got) - exact).abs() <= tolerance, "{name}, element {i}: {got} for {exact}");
                }
            }
        }
    }
    for head in (0..x.len()).step_by(channels) {
        let rest = head + 2 * pairs..head + channels;
        assert_eq!(y[rest.clone()], x[rest], "{name}: channels that do not turn");
    }
    Ok(())
}

#[test]
fn every_pattern_turns_its_pairs_by_their_own_axes() -> phasor::Result<()> {
    for (name, frequencies, axes) in patterns()? {
        let (n, shape) = (usize::from(axes.count()), shape(frequencies.pairs()));
        let q = gpu().upload(&Random::new(21).values(shape.iter().product()), shape)?;
        for pairing in [Pairing::Interleaved, Pairing::HalfSplit] {
            let rope = Rope::new(gpu(), &frequencies, pairing)?.with_axes(&axes)?;
            let check = |way: &str, out: View, position: &dyn Fn(usize, usize, usize) -> i32| {
                let name = format!("{name}, {pairing:?}, {way}");
                assert_turned(&name, [&q, &out], &frequencies, &axes, pairing, position)
            };
            for lay in [tokens_first, axes_first] {
                for rows in [[BATCH, TOKENS], [1, TOKENS], [BATCH, 1], [1, 1]] {
                    let of = |n: usize, i: usize| if n == 1 { 0 } else { i };
                    let position = |b, t, axis| standing(of(rows[0], b), of(rows[1], t), axis);
                    let view = upload(lay(rows, n)?, position)?;
                    let out = rotated(&rope, &q, |rotate| rotate.positions(Positions::PerToken(view.clone())))?;
                    check(&format!("per token {rows:?}"), out, &position)?;
                    if rows[1] == TOKENS {
                        let table = rope.table_for(&view)?;
                        gpu().submit(|pass| table.record(pass))?;
                        let out = rotated(&rope, &q, |rotate| rotate.from_table(&table))?;
                        check(&format!("from a table for {rows:?}"), out, &position)?;
                    } else {
                        let out = rotated(&rope, &q, |rotate| rotate.positions(Positions::StartPerRow(view)))?;
                        let from_start = |b, t, axis| position(b, 0, axis) + t as i32;
                        check(&format!("from the start in {rows:?}"), out, &from_start)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Text stands at one place on all axes, and is turned as if there were but one: the same bits.
#[test]
fn text_is_turned_as_by_a_single_axis() -> phasor::Result<()> {
    let text = |b: usize, t: usize, _: usize| (4000 + 31 * b + t) as i32;
    for (name, frequencies, axes) in patterns()? {
        let (n, shape) = (usize::from(axes.count()), shape(frequencies.pairs()));
        let q = gpu().upload(&Random::new(22).values(shape.iter().product()), shape)?;
        let single = Rope::new(gpu(), &frequencies, Pairing::HalfSplit)?;
        let several = single.clone().with_axes(&axes)?;
        let all = |axes| upload(tokens_first([BATCH, TOKENS], axes)?, text);
        let starts = |axes| upload(axes_first([BATCH, 1], axes)?, text);
        let table = |rope: &Rope, axes| {
            let table = rope.table_for(&all(axes)?)?;
            gpu().submit(|pass| table.record(pass))?;
            phasor::Result::Ok(table)
        };
        let ways = |rope: &Rope, axes| {
            phasor::Result::Ok([
                bits(gpu(), &rotated(rope, &q, |r| r.positions(Positions::PerToken(all(axes).unwrap())))?)?,
                bits(gpu(), &rotated(rope, &q, |r| r.positions(Positions::StartPerRow(starts(axes).unwrap())))?)?,
                bits(gpu(), &rotated(rope, &q, |r| r.from_table(&table(rope, axes).unwrap()))?)?,
            ])
        };
        let (one, other) = (ways(&single, 1)?, ways(&several, n)?);
        for (way, (one, other)) in ["per token", "from a start", "from a table"].iter().zip(one.iter().zip(&other)) {
            assert!(one == other, "{name}, {way}");
        }
    }
    Ok(())
}

/// The table itself has each pair's own axis, in either arrangement of positions, and follows them when they change.
#[test]
fn a_table_has_each_pair_s_own_axis() -> phasor::Result<()> {
    for (name, frequencies, axes) in patterns()? {
        let (n, pairs) = (usize::from(axes.count()), frequencies.pairs());
        let rope = Rope::new(gpu(), &frequencies, Pairing::HalfSplit)?.with_axes(&axes)?;
        for lay in [tokens_first, axes_first] {
            let layout = lay([BATCH, TOKENS], n)?;
            let view = upload(layout, |_, _, _| 0)?;
            let table = rope.table_for(&view)?;
            for moved in [0, 1234] {
                let position = |b, t, axis| standing(b, t, axis) + moved;
                let mut list = vec![0; layout.elements()];
                for (b, t, axis) in grid(n) {
                    list[layout.at([b, t, axis, 0])] = position(b, t, axis);
                }
                gpu().queue().write_buffer(view.buffer(), 0, bytemuck::cast_slice(&list));
                gpu().submit(|pass| table.record(pass))?;
                let got = gpu().read_blocking(table.view())?;
                for (b, t) in (0..BATCH).flat_map(|b| (0..TOKENS).map(move |t| (b, t))) {
                    let row = &got[(b * TOKENS + t) * 2 * pairs..];
                    for (i, (&w, &axis)) in frequencies.inv_freq().iter().zip(axes.axis_of_pair()).enumerate() {
                        let factor = frequencies.attention_factor();
                        let alone = Frequencies::new(vec![w], factor)?;
                        let (cos, sin) = rope_table(&alone, [position(b, t, axis.into())]);
                        let off = (f64::from(row[i]) - cos[0]).abs().max((f64::from(row[pairs + i]) - sin[0]).abs());
                        assert!(off <= factor * ANGLE, "{name}, [{b}, {t}], pair {i}: off by {off}");
                    }
                }
            }
        }
    }
    Ok(())
}

fn grid(axes: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..BATCH).flat_map(move |b| (0..TOKENS).flat_map(move |t| (0..axes).map(move |axis| (b, t, axis))))
}
