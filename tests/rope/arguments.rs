//! Rotations on arguments drawn at random.

use crate::case::ROTATION;
use crate::common::Recording;
use crate::drawn::{Access, Argument, Expected, Host, Named, Near, Numbers, Operation, draw_floats, try_all};
use phasor::frequencies::{Frequencies, Plain};
use phasor::reference::rope_rotate;
use phasor::{CacheRows, Direction, ElementType, Gpu, Pairing, Positions, Result, Rope, Rotate, View};
use proptest::prelude::*;

/// A rotation, but for its tensors.
#[derive(Debug, Clone)]
struct Turn {
    batch: usize,
    tokens: usize,
    channels: usize,
    rotary_dim: usize,
    first_channel: usize,
    pairing: Pairing,
    direction: Direction,
    attention_factor: f64,
    standing: Standing,
    table: bool,
    queries: Operand,
    keys: Option<Operand>,
}

/// A tensor before and after.
#[derive(Debug, Clone, Copy)]
struct Operand {
    heads: usize,
    into: Into,
    elements: [ElementType; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Into {
    InPlace,
    View,
    /// A row for each token.
    CacheRows,
    /// Rows from one on.
    CacheRun,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Start(i32),
    Same(i32),
    /// In a buffer: for each row of the batch or for all, for each token or for all.
    PerRow(bool),
    PerToken(bool, bool),
}

/// Positions of a table, around all that are drawn.
const TABLE: std::ops::Range<i32> = -60..120;

impl Turn {
    fn frequencies(&self) -> Frequencies {
        let plain = Plain::new(1e4).frequencies(self.rotary_dim as u32).expect("an even number of channels");
        Frequencies::new(plain.inv_freq().to_vec(), self.attention_factor).expect("a positive factor")
    }

    fn operands(&self) -> impl Iterator<Item = (&'static str, &'static str, Operand)> {
        [("q", "q.output", self.queries)].into_iter().chain(self.keys.map(|keys| ("k", "k.output", keys)))
    }

    /// Where a token stands; `None` where the table has no row for it.
    fn position(&self, positions: Option<&Host>, b: usize, t: usize) -> Option<i32> {
        let stored = |host: &Host| {
            let [rows, tokens, ..] = host.layout.shape();
            host.values[host.layout.at([if rows == 1 { 0 } else { b }, if tokens == 1 { 0 } else { t }, 0, 0])] as i32
        };
        let t = t as i32;
        let position = match (self.standing, positions) {
            (Standing::Start(start), _) => start + t,
            (Standing::Same(position), _) => position,
            (Standing::PerRow(_), Some(host)) => stored(host).wrapping_add(t),
            (Standing::PerToken(..), Some(host)) => stored(host),
            _ => unreachable!("positions from a buffer come with one"),
        };
        (!self.table || TABLE.contains(&position)).then_some(position)
    }

    /// What one operand's output holds afterwards; `None` where two tokens go to one row.
    fn turned(
        &self,
        operand: Operand,
        input: &Host,
        output: &Host,
        positions: Option<&Host>,
        rows: Option<&Host>,
    ) -> Result<Option<Expected>> {
        let [batch, tokens, heads, channels] = input.layout.shape();
        let mut wide = input.in_order();
        let packed = phasor::Layout::contiguous([batch, tokens, heads, channels])?;
        let position = |b, t| self.position(positions, b, t);
        rope_rotate(
            &mut wide,
            packed,
            &self.frequencies(),
            self.pairing,
            self.first_channel,
            self.direction,
            |b, t| position(b, t).unwrap_or_default(),
        )?;
        let before = input.in_order();
        let pairs = self.rotary_dim as u32 / 2;
        let mut partner = vec![None; channels];
        for pair in 0..pairs {
            let (i, j) = self.pairing.channels(pair, pairs);
            let [i, j] = [i, j].map(|channel| self.first_channel + channel as usize);
            (partner[i], partner[j]) = (Some(j), Some(i));
        }
        let [_, cache, ..] = output.layout.shape();
        let mut all = vec![None; output.layout.elements()];
        for (b, t) in (0..batch).flat_map(|b| (0..tokens).map(move |t| (b, t))) {
            let row = match (operand.into, rows) {
                (Into::CacheRows, Some(rows)) => number(rows, b, t),
                (Into::CacheRun, Some(rows)) => number(rows, b, 0) + t as i64,
                _ => t as i64,
            };
            let Some(row) = usize::try_from(row).ok().filter(|&row| row < cache) else { continue };
            for (h, c) in (0..heads).flat_map(|h| (0..channels).map(move |c| (h, c))) {
                let at = packed.at([b, t, h, c]);
                let turns = partner[c].filter(|_| position(b, t).is_some());
                let near = match turns {
                    Some(partner) => {
                        let reach = before[at].abs() + before[packed.at([b, t, h, partner])].abs();
                        let magnitude = self.direction.magnitude(self.attention_factor);
                        Near(wide[at], magnitude * reach * ROTATION).stored(output.element)
                    }
                    // What does not turn is what it was, but for a type that is another one.
                    None if input.element == output.element => Near(before[at], 0.0),
                    None => Near(before[at], 0.0).stored(output.element),
                };
                let place = ((b * cache + row) * heads + h) * channels + c;
                if all[place].replace(near).is_some() {
                    return Ok(None);
                }
            }
        }
        Ok(Some(Expected::Each(all)))
    }
}

/// The number of a row of the batch and a token, where one may serve the whole batch.
fn number(host: &Host, b: usize, t: usize) -> i64 {
    let [rows, ..] = host.layout.shape();
    host.values[host.layout.at([if rows == 1 { 0 } else { b }, t, 0, 0])] as i64
}

impl Operation for Turn {
    fn arguments(&self) -> Vec<Argument> {
        let Self { batch, tokens, channels, .. } = *self;
        let integers =
            |name, shape, numbers| Argument { name, shape, element: ElementType::I32, access: Access::Reads, numbers };
        let mut all = Vec::new();
        match self.standing {
            Standing::Start(_) | Standing::Same(_) => {}
            Standing::PerRow(shared) => {
                let rows = if shared { 1 } else { batch };
                all.push(integers("positions", [rows, 1, 1, 1], Numbers::Whole(-30, 90)));
            }
            Standing::PerToken(shared, one) => {
                let shape = [if shared { 1 } else { batch }, if one { 1 } else { tokens }, 1, 1];
                all.push(integers("positions", shape, Numbers::Whole(-70, 130)));
            }
        }
        for (name, output, operand) in self.operands() {
            let tensor = |name, tokens, element, access| Argument {
                name,
                shape: [batch, tokens, operand.heads, channels],
                element,
                access,
                numbers: Numbers::Floats(1.0),
            };
            let [from, to] = operand.elements;
            match operand.into {
                Into::InPlace => all.push(tensor(name, tokens, from, Access::Updates)),
                Into::View => {
                    all.extend([tensor(name, tokens, from, Access::Reads), tensor(output, tokens, to, Access::Writes)])
                }
                Into::CacheRows | Into::CacheRun => {
                    let rows = if operand.into == Into::CacheRows { tokens } else { 1 };
                    all.extend([
                        tensor(name, tokens, from, Access::Reads),
                        tensor(output, 8, to, Access::Writes),
                        integers("rows", [batch, rows, 1, 1], Numbers::Rows),
                    ]);
                }
            }
        }
        all
    }

    fn prepare(&self, gpu: &Gpu, views: &Named<'_, View>) -> Result<Recording> {
        let rope = Rope::new(gpu, &self.frequencies(), self.pairing)?.from_channel(self.first_channel);
        let q = views.get("q");
        let mut rotate = match self.queries.into {
            Into::InPlace => Rotate::in_place(q),
            _ => Rotate::into(q, views.get("q.output")),
        };
        let rows = || views.get("rows").clone();
        if let Some(keys) = self.keys {
            let k = views.get("k");
            rotate = match keys.into {
                Into::InPlace => rotate.and_in_place(k),
                Into::View => rotate.and_into(k, views.get("k.output")),
                Into::CacheRows => rotate.and_into_cache(k, views.get("k.output"), CacheRows::PerToken(rows())),
                Into::CacheRun => rotate.and_into_cache(k, views.get("k.output"), CacheRows::StartPerRow(rows())),
            };
        }
        let positions = match self.standing {
            Standing::Start(start) => Positions::Start(start),
            Standing::Same(position) => Positions::Same(position),
            Standing::PerRow(_) => Positions::StartPerRow(views.get("positions").clone()),
            Standing::PerToken(..) => Positions::PerToken(views.get("positions").clone()),
        };
        rotate = rotate.positions(positions).direction(self.direction);
        let table = self.table.then(|| rope.table(TABLE.start, TABLE.len())).transpose()?;
        rotate = table.iter().fold(rotate, |rotate, table| rotate.from_table(table));
        let prepared = rope.prepare(&rotate)?;
        Ok(Recording { table, prepared })
    }

    fn reference(&self, tensors: &Named<'_, Host>) -> Result<Option<Vec<Expected>>> {
        let in_buffer = matches!(self.standing, Standing::PerRow(_) | Standing::PerToken(..));
        let positions = in_buffer.then(|| tensors.get("positions"));
        let mut all = Vec::new();
        for (name, output, operand) in self.operands() {
            let input = tensors.get(name);
            let output = if operand.into == Into::InPlace { input } else { tensors.get(output) };
            let rows = matches!(operand.into, Into::CacheRows | Into::CacheRun).then(|| tensors.get("rows"));
            let Some(expected) = self.turned(operand, input, output, positions, rows)? else { return Ok(None) };
            all.push(expected);
        }
        Ok(Some(all))
    }
}

fn operand(caches: bool) -> impl Strategy<Value = Operand> {
    let into = if caches {
        vec![Into::InPlace, Into::View, Into::CacheRows, Into::CacheRun]
    } else {
        vec![Into::InPlace, Into::View]
    };
    let elements = prop_oneof![Just([ElementType::F32; 2]), [draw_floats(), draw_floats()]];
    (1usize..4, prop::sample::select(into), elements).prop_map(|(heads, into, elements)| Operand {
        heads,
        into,
        elements,
    })
}

fn turns() -> impl Strategy<Value = Turn> {
    let pairing = prop::sample::select(vec![Pairing::Interleaved, Pairing::HalfSplit]);
    let direction = prop::sample::select(vec![Direction::Forward, Direction::Inverse, Direction::Adjoint]);
    let standing = prop_oneof![
        (-50i32..100).prop_map(Standing::Start),
        (-50i32..100).prop_map(Standing::Same),
        any::<bool>().prop_map(Standing::PerRow),
        any::<[bool; 2]>().prop_map(|[shared, one]| Standing::PerToken(shared, one)),
    ];
    let index = any::<prop::sample::Index>;
    let channels = (prop::sample::select(vec![16usize, 8, 7, 2]), index(), index());
    let rest = (direction, prop::sample::select(vec![1.0, 1.277]), standing, any::<bool>());
    ((1usize..4, 0usize..6), channels, pairing, rest, operand(false), prop::option::of(operand(true))).prop_map(
        |((batch, tokens), (channels, pairs, first), pairing, (direction, factor, standing, table), queries, keys)| {
            let rotary_dim = 2 * (1 + pairs.index(channels / 2));
            Turn {
                batch,
                tokens,
                channels,
                rotary_dim,
                first_channel: first.index(channels - rotary_dim + 1),
                pairing,
                direction,
                attention_factor: factor,
                standing,
                table,
                queries,
                keys,
            }
        },
    )
}

#[test]
fn any_rotation() {
    try_all("tests/regressions/rotation.txt", 150, turns());
}
