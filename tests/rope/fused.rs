//! One dispatch that does several things gives the bits that one after the other gives.

use crate::common::{Random, gpu};
use crate::raw::{bits, frequencies, run};
use phasor::ElementType::{BF16, F16, F32};
use phasor::{Direction, ElementType, Layout, Pairing, Positions, Rope, Rotate, View};

const BATCH: usize = 2;
const TOKENS: usize = 5;
const HEADS: [usize; 2] = [4, 2];

/// A head's pairing, its channels, how many of them turn and from which one on: three on the vector path, and one on the
/// path for any layout, where either pairing is the same code.
const TURNING: [(Pairing, usize, usize, usize); 4] = [
    (Pairing::HalfSplit, 16, 16, 0),
    (Pairing::HalfSplit, 16, 8, 4),
    (Pairing::Interleaved, 24, 16, 0),
    (Pairing::Interleaved, 11, 6, 3),
];

/// What says where tokens stand.
#[derive(Debug, Clone, Copy)]
enum Standing {
    Start,
    Same,
    StartPerRow,
    PerToken,
    TableRows,
}

/// A rotation's angles, in everything that can vary.
#[derive(Debug, Clone, Copy)]
struct Angles {
    direction: Direction,
    standing: Standing,
    table: bool,
}

impl Angles {
    fn all() -> Vec<Self> {
        use Standing::{PerToken, Same, Start, StartPerRow, TableRows};
        let mut all = Vec::new();
        for direction in [Direction::Forward, Direction::Inverse] {
            let from_range = [Start, Same, StartPerRow, PerToken].map(|standing| (standing, true));
            let made = [Start, Same, StartPerRow, PerToken].map(|standing| (standing, false));
            for (standing, table) in made.into_iter().chain(from_range).chain([(TableRows, true)]) {
                all.push(Self { direction, standing, table });
            }
        }
        all
    }

    /// The same rotation, turned by these angles; returns how many dispatches it took.
    fn run(&self, rope: &Rope, rotate: Rotate) -> phasor::Result<usize> {
        let scattered: Vec<i32> = (0..BATCH * TOKENS).map(|i| (i * 37 % 61) as i32).collect();
        let per_token = || gpu().upload_positions(&scattered, [BATCH, TOKENS]);
        let table = match (self.table, self.standing) {
            (true, Standing::TableRows) => Some(rope.table_for(&per_token()?)?),
            (true, _) => Some(rope.table(0, 80)?),
            (false, _) => None,
        };
        let rotate = rotate.direction(self.direction).positions(match self.standing {
            Standing::Start => Positions::Start(60),
            Standing::Same => Positions::Same(33),
            Standing::StartPerRow => Positions::StartPerRow(gpu().upload_positions(&[70, 9], [BATCH, 1])?),
            Standing::PerToken => Positions::PerToken(per_token()?),
            Standing::TableRows => Positions::default(),
        });
        let Some(table) = table else { return run(gpu(), rope, &rotate) };
        gpu().submit(|pass| table.record(pass))?;
        run(gpu(), rope, &rotate.from_table(&table))
    }
}

fn rope(pairing: Pairing, rotary_dim: usize, first: usize, attention_factor: f64) -> phasor::Result<Rope> {
    Ok(Rope::new(gpu(), &frequencies(rotary_dim, attention_factor)?, pairing)?.from_channel(first))
}

fn shape(heads: usize, channels: usize) -> [usize; 4] {
    [BATCH, TOKENS, heads, channels]
}

fn upload(heads: usize, channels: usize, element: ElementType) -> phasor::Result<View> {
    let shape = shape(heads, channels);
    gpu().upload_as(element, &Random::new(71 + heads as u64).values(shape.iter().product()), shape)
}

/// Queries and keys at once, in place, in one buffer and out of place, and each alone.
#[test]
fn queries_and_keys_at_once_are_each_of_them_alone() -> phasor::Result<()> {
    for (pairing, channels, rotary_dim, first) in TURNING {
        let rope = rope(pairing, rotary_dim, first, 1.25)?;
        for angles in Angles::all() {
            let tensors = || phasor::Result::Ok([upload(HEADS[0], channels, F32)?, upload(HEADS[1], channels, F32)?]);
            let [q, k] = tensors()?;
            let mut alone = Vec::new();
            for view in [&q, &k] {
                let out = gpu().zeros(F32, view.shape())?;
                angles.run(&rope, Rotate::into(view, &out))?;
                alone.push(bits(gpu(), &out)?);
            }
            let outs = [gpu().zeros(F32, q.shape())?, gpu().zeros(F32, k.shape())?];
            let packed = packed(&q, &k)?;
            for (way, rotate, after) in [
                ("out of place", Rotate::into(&q, &outs[0]).and_into(&k, &outs[1]), &outs),
                ("in one buffer", Rotate::in_place(&packed[0]).and_in_place(&packed[1]), &packed),
                ("in place", Rotate::in_place(&q).and_in_place(&k), &[q.clone(), k.clone()]),
            ] {
                assert_eq!(angles.run(&rope, rotate)?, 1);
                let after = [bits(gpu(), &after[0])?, bits(gpu(), &after[1])?];
                assert!(after[..] == alone[..], "{way}, {pairing:?}, {channels} channels, {angles:?}");
            }
        }
    }
    Ok(())
}

/// Queries and keys side by side in the heads of one buffer.
fn packed(q: &View, k: &View) -> phasor::Result<[View; 2]> {
    let (queries, keys) = (gpu().read_blocking(q)?, gpu().read_blocking(k)?);
    let channels = q.shape()[3];
    let rows = queries.chunks(HEADS[0] * channels).zip(keys.chunks(HEADS[1] * channels));
    let all: Vec<f32> = rows.flat_map(|(q, k)| [q, k].concat()).collect();
    let all = gpu().upload(&all, shape(HEADS[0] + HEADS[1], channels))?;
    Ok([all.heads(0..HEADS[0])?, all.heads(HEADS[0]..HEADS[0] + HEADS[1])?])
}

/// bf16 is rounded by the kernel's own arithmetic, f16 by the device's.
const CONVERSIONS: [(ElementType, ElementType); 4] = [(F32, F16), (F16, F32), (F32, BF16), (BF16, F16)];

/// From one type to another while turning: a rotation in f32, and then a conversion by itself, which is a rotation at
/// position 0.
#[test]
fn a_conversion_at_once_is_a_conversion_afterwards() -> phasor::Result<()> {
    for (pairing, channels, rotary_dim, first) in TURNING {
        let (rope, still) = (rope(pairing, rotary_dim, first, 1.25)?, rope(pairing, rotary_dim, first, 1.0)?);
        for (i, angles) in Angles::all().into_iter().enumerate() {
            // Each of these meets each angle in one direction or the other: a pipeline for all would take minutes.
            for (from, to) in [CONVERSIONS[i % 4], CONVERSIONS[(i + 1) % 4]] {
                let q = upload(HEADS[0], channels, from)?;
                let [wide, turned, at_once, afterwards] = [F32, F32, to, to].map(|to| gpu().zeros(to, q.shape()));
                let (wide, turned, at_once, afterwards) = (wide?, turned?, at_once?, afterwards?);
                angles.run(&rope, Rotate::into(&q, &at_once))?;
                run(gpu(), &still, &Rotate::into(&q, &wide).positions(Positions::Same(0)))?;
                angles.run(&rope, Rotate::into(&wide, &turned))?;
                run(gpu(), &still, &Rotate::into(&turned, &afterwards).positions(Positions::Same(0)))?;
                let same = bits(gpu(), &at_once)? == bits(gpu(), &afterwards)?;
                assert!(same, "{from} to {to}, {pairing:?}, {channels} channels, {angles:?}");
            }
        }
    }
    Ok(())
}

/// The channels that do not turn are copied in the same dispatch: the whole is a copy, and then a rotation in place.
#[test]
fn out_of_place_is_a_copy_turned_in_place() -> phasor::Result<()> {
    for (pairing, channels, rotary_dim, first) in TURNING {
        let rope = rope(pairing, rotary_dim, first, 1.25)?;
        for (i, angles) in Angles::all().into_iter().enumerate() {
            for element in [[F32, F16], [BF16, F32], [F16, BF16]][i % 3] {
                let q = upload(HEADS[0], channels, element)?;
                let both = gpu().zeros(element, [BATCH, 2 * TOKENS, HEADS[0], channels])?;
                let within = View::new(both.buffer(), element, Layout::contiguous(q.shape())?.offset_by(8)?)?;
                angles.run(&rope, Rotate::into(&q, &within))?;
                angles.run(&rope, Rotate::in_place(&q))?;
                let same = bits(gpu(), &q)? == bits(gpu(), &within)?;
                assert!(same, "{element}, {pairing:?}, {channels} channels, {angles:?}");
            }
        }
    }
    Ok(())
}
