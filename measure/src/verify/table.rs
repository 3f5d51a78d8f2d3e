//! The table kernel: laws, head dims and positions.

use super::bound::Bound;
use super::case::{ANCHORS, LAST};
use super::tally::{Compared, Tally};
use phasor::frequencies::{Axes, Frequencies, Linear, NtkAware, Plain, Yarn};
use phasor::{Gpu, Layout, Pairing, Result, Rope, View, reference};

/// One table.
pub(super) struct Case {
    name: &'static str,
    frequencies: Frequencies,
    positions: At,
}

/// Where its rows stand.
enum At {
    Range(i32),
    Each(Vec<i32>),
    /// Three to a token, of which pairs take turns.
    Axes(Vec<[i32; 3]>),
}

/// Rows of a table over a range.
const ROWS: i32 = 16;

/// Laws of every kind, with head dims for the vector path and for the other, each over ranges and over a sweep.
pub(super) fn cases() -> Result<Vec<Case>> {
    let laws = [
        ("plain, 128 channels", Plain::new(10_000.0).frequencies(128)?),
        ("plain, 6 channels", Plain::new(10_000.0).frequencies(6)?),
        ("linear, 64 channels", Linear::new(500_000.0, 4.0).frequencies(64)?),
        ("ntk, 90 channels", NtkAware::new(1_000_000.0, 16.0).frequencies(90)?),
        ("yarn, 64 channels", Yarn::new(10_000.0, 16.0, 2048).frequencies(64)?),
        ("yarn, 2 channels", Yarn::new(10_000.0, 16.0, 2048).frequencies(2)?),
    ];
    let mut cases = Vec::new();
    for (name, frequencies) in laws {
        let case = |positions| Case { name, frequencies: frequencies.clone(), positions };
        cases.extend(ANCHORS.map(|anchor| case(At::Range(anchor))));
        cases.push(case(At::Each(sweep())));
        cases.push(case(At::Axes(sweep().chunks_exact(3).map(|three| [three[2], three[0], three[1]]).collect())));
    }
    Ok(cases)
}

/// Positions from one end of ±(2^24 - 1) to the other in uneven steps, and the ends of i32.
fn sweep() -> Vec<i32> {
    let wide = (-LAST..=LAST).step_by(65_521);
    wide.chain(-64..64).chain([LAST, 131_071, i32::MAX, i32::MIN, i32::MIN + 1]).collect()
}

pub(super) async fn check(gpu: &Gpu, case: &Case, tally: &mut Tally) -> Result<()> {
    let mut rope = Rope::new(gpu, &case.frequencies, Pairing::HalfSplit)?;
    let pairs = case.frequencies.pairs();
    // For each row, the positions of its axes.
    let (table, positions): (_, Vec<Vec<i32>>) = match &case.positions {
        At::Range(start) => (rope.table(*start, ROWS as usize)?, (0..ROWS).map(|t| vec![start + t]).collect()),
        At::Each(list) => {
            let view = gpu.upload_positions(list, [1, list.len()])?;
            (rope.table_for(&view)?, list.iter().map(|&position| vec![position]).collect())
        }
        At::Axes(list) => {
            rope = rope.with_axes(&Axes::new((0..pairs).map(|pair| (pair % 3) as u8).collect(), 3)?)?;
            let flat = gpu.upload_positions(list.as_flattened(), [1, 3 * list.len()])?;
            let view = View::new(flat.buffer(), flat.element(), Layout::contiguous([1, list.len(), 3, 1])?)?;
            (rope.table_for(&view)?, list.iter().map(|three| three.to_vec()).collect())
        }
    };
    gpu.submit(|pass| table.record(pass))?;
    let got = gpu.read(table.view()).await?;
    let bound = Bound::new(case.frequencies.attention_factor());
    // Row by row, cosines first.
    let expected = positions.iter().flat_map(|axes| {
        let (cos, sin): (Vec<_>, Vec<_>) =
            axes.iter().map(|&at| reference::rope_table(&case.frequencies, [at])).unzip();
        let axis = |i: usize| i % axes.len();
        let pick =
            move |of: Vec<Vec<f64>>| (0..pairs).map(|i| (of[axis(i)][i], bound.cos_sin(axes[axis(i)]))).collect();
        let parts: [Vec<_>; 2] = [cos, sin].map(pick);
        parts.into_iter().flatten()
    });
    let numbers = got.iter().zip(expected).map(|(&got, (expected, bound))| Compared { got, expected, bound });
    tally.add(table.shader(), case.name, &numbers.collect::<Vec<_>>());
    Ok(())
}
