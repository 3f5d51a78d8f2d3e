//! The rotation kernel: one case, from its buffers to the comparison of every number in them.

use super::bound::Bound;
use super::case::{ANCHORS, Angles, Case, Channels, Data, Lanes, Rows};
use super::tally::{Compared, Tally};
use phasor::frequencies::{Frequencies, Plain, Yarn};
use phasor::{Gpu, Layout, Positions, Result, Rope, RopeTable, Rotate, View, reference};

const Q_HEADS: usize = 6;
const K_HEADS: usize = 2;
const HEAD_DIM: usize = 32;
/// Rows of a table over a range: what [`ANCHORS`] leaves room for.
const TABLE_ROWS: usize = 20;

/// A device and the frequencies of the cases.
pub(super) struct Bench<'a> {
    gpu: &'a Gpu,
    /// For whole heads and for half of them.
    plain: [Frequencies; 2],
    /// The same, with an attention factor other than 1.
    yarn: [Frequencies; 2],
    noise: fastrand::Rng,
}

/// A tensor before and after: which buffer, and where in it.
#[derive(Debug, Clone, Copy)]
struct Operand {
    input: (usize, Layout),
    output: (usize, Layout),
}

impl<'a> Bench<'a> {
    pub fn new(gpu: &'a Gpu) -> Result<Self> {
        let (plain, yarn) = (Plain::new(10_000.0), Yarn::new(10_000.0, 16.0, 2048));
        Ok(Self {
            gpu,
            plain: [plain.frequencies(HEAD_DIM as u32)?, plain.frequencies(16)?],
            yarn: [yarn.frequencies(HEAD_DIM as u32)?, yarn.frequencies(16)?],
            noise: fastrand::Rng::with_seed(1),
        })
    }

    /// Runs a case and compares every number of its buffers, those outside of the views too.
    pub async fn check(&mut self, case: &Case, tally: &mut Tally) -> Result<()> {
        let operands = operands(case)?;
        let buffers: Vec<Vec<f32>> = sizes(&operands)
            .into_iter()
            .map(|n| (0..n).map(|_| self.noise.f32() * 2.0 - 1.0).collect())
            .collect();
        let rope = Rope::new(self.gpu, self.frequencies(case), case.pairing)?.from_channel(case.channels.range().0);
        let (positions, table, list) = self.positions(case, &rope)?;
        let device: Vec<View> = buffers
            .iter()
            .map(|values| self.gpu.upload(values, [1, 1, 1, values.len()]))
            .collect::<Result<_>>()?;
        let mut rotate = rotate(&device, &operands)?.direction(case.direction).positions(positions);
        if let Some(table) = &table {
            rotate = rotate.from_table(table);
        }
        let rotation = rope.prepare(&rotate)?;
        self.gpu.submit(|pass| {
            if let Some(table) = &table {
                table.record(pass);
            }
            rotation.record(pass);
        })?;
        let mut numbers = self.expected(case, &operands, &buffers, &list, table.is_some())?;
        for (buffer, view) in numbers.iter_mut().zip(&device) {
            for (number, got) in buffer.iter_mut().zip(self.gpu.read(view).await?) {
                number.got = got;
            }
        }
        let shader = rotation.shaders().next().map_or("", |shader| &shader.name);
        tally.add(shader, &case.to_string(), numbers.into_iter().flatten());
        Ok(())
    }

    fn frequencies(&self, case: &Case) -> &Frequencies {
        let [whole, half] = match case.rows {
            Rows::One | Rows::Apart => &self.plain,
            Rows::Following | Rows::Decode => &self.yarn,
        };
        if case.channels == Channels::All { whole } else { half }
    }

    /// What to tell the device, and the position of each token in `[batch, tokens]`.
    fn positions(&self, case: &Case, rope: &Rope) -> Result<(Positions, Option<RopeTable>, Vec<i32>)> {
        let [batch, tokens] = case.rows.extent();
        let anchor = |n: usize| ANCHORS[(case.anchor + n) % ANCHORS.len()];
        // Free positions jump from anchor to anchor, others stay within a table's range, and none is its first.
        let start = |row: usize| if case.angles.are_free() { anchor(row) } else { anchor(0) + 2 + 3 * row as i32 };
        let each = |i: usize| {
            if case.angles.are_free() { anchor(i) + i as i32 } else { anchor(0) + (2 + 7 * i as i32) % TABLE_ROWS as i32 }
        };
        let per_row = || (0..batch).map(start).collect::<Vec<_>>();
        let per_token: Vec<i32> = (0..batch * tokens).map(each).collect();
        let following = |first: &dyn Fn(usize) -> i32| {
            (0..batch).flat_map(|b| (0..tokens as i32).map(move |t| (b, t))).map(|(b, t)| first(b) + t).collect()
        };
        let range = || rope.table(anchor(0), TABLE_ROWS).map(Some);
        let upload = |list: &[i32], shape| self.gpu.upload_positions(list, shape);
        Ok(match case.angles {
            Angles::TurnsFromStart => (Positions::Start(start(0)), None, following(&|_| start(0))),
            Angles::TableFromStart => (Positions::Start(start(0)), range()?, following(&|_| start(0))),
            Angles::TurnsPerRow => (Positions::StartPerRow(upload(&per_row(), [batch, 1])?), None, following(&start)),
            Angles::TablePerRow => (Positions::StartPerRow(upload(&per_row(), [batch, 1])?), range()?, following(&start)),
            Angles::TurnsPerToken => (Positions::PerToken(upload(&per_token, [batch, tokens])?), None, per_token),
            Angles::TablePerToken => (Positions::PerToken(upload(&per_token, [batch, tokens])?), range()?, per_token),
            Angles::TableOfTokens => {
                let table = rope.table_for(&upload(&per_token, [batch, tokens])?)?;
                (Positions::default(), Some(table), per_token)
            }
        })
    }

    /// What every buffer should hold: as before outside of the outputs, and the reference's numbers there.
    fn expected(
        &self,
        case: &Case,
        operands: &[Operand],
        buffers: &[Vec<f32>],
        positions: &[i32],
        from_table: bool,
    ) -> Result<Vec<Vec<Compared>>> {
        let frequencies = self.frequencies(case);
        let factor = frequencies.attention_factor();
        let magnitude = case.direction.magnitude(factor);
        let bound = if from_table { Bound::new(factor).times(magnitude / factor) } else { Bound::new(magnitude) };
        let [_, tokens] = case.rows.extent();
        let position = |b: usize, t: usize| positions[b * tokens + t];
        let first = case.channels.range().0;
        let mut exact: Vec<Vec<f64>> = buffers.iter().map(|values| values.iter().map(|&x| x.into()).collect()).collect();
        let mut bounds: Vec<Vec<f64>> = buffers.iter().map(|values| vec![0.0; values.len()]).collect();
        for Operand { input: (from, input), output: (to, output) } in operands {
            for (i, o) in input.places().zip(output.places()) {
                exact[*to][o] = buffers[*from][i].into();
            }
            let (pairing, direction) = (case.pairing, case.direction);
            reference::rope_rotate(&mut exact[*to], *output, frequencies, pairing, first, direction, position)?;
            let [batch, tokens, heads, _] = input.shape();
            let pairs = frequencies.pairs() as u32;
            for (b, t, h) in (0..batch).flat_map(|b| (0..tokens).flat_map(move |t| (0..heads).map(move |h| (b, t, h)))) {
                for (i, j) in (0..pairs).map(|pair| pairing.channels(pair, pairs)) {
                    let [i, j] = [i, j].map(|channel| [b, t, h, first + channel as usize]);
                    let [x0, x1] = [i, j].map(|at| buffers[*from][input.at(at)]);
                    let allowed = bound.rotation(position(b, t), x0, x1);
                    bounds[*to][output.at(i)] = allowed;
                    bounds[*to][output.at(j)] = allowed;
                }
            }
        }
        let compared = |(expected, bound)| Compared { got: f32::NAN, expected, bound };
        Ok(exact.into_iter().zip(bounds).map(|(e, b)| e.into_iter().zip(b).map(compared).collect()).collect())
    }
}

fn rotate(device: &[View], operands: &[Operand]) -> Result<Rotate> {
    let view = |(buffer, layout): (usize, Layout)| View::new(device[buffer].buffer(), device[buffer].element(), layout);
    let q = operands[0];
    let rotate = Rotate::into(&view(q.input)?, &view(q.output)?);
    Ok(match operands.get(1) {
        Some(k) => rotate.and_into(&view(k.input)?, &view(k.output)?),
        None => rotate,
    })
}

/// How many numbers each buffer holds: some more than the views reach.
fn sizes(operands: &[Operand]) -> Vec<usize> {
    let places = || operands.iter().flat_map(|operand| [operand.input, operand.output]);
    let n = places().map(|(buffer, _)| buffer + 1).max().unwrap_or(0);
    (0..n)
        .map(|i| places().filter(|(buffer, _)| *buffer == i).map(|(_, layout)| layout.span().end).max().unwrap_or(0) + 9)
        .collect()
}

/// Where queries and keys lie.
fn operands(case: &Case) -> Result<Vec<Operand>> {
    let place = |heads, after, moved| layout(case, heads, after, moved);
    let in_place = |at: (usize, Layout)| Operand { input: at, output: at };
    Ok(match case.data {
        Data::Alone => vec![in_place((0, place(Q_HEADS, 0, false)?))],
        Data::Packed => {
            let all = place(Q_HEADS + K_HEADS, 0, false)?;
            let k = all.heads(Q_HEADS..Q_HEADS + K_HEADS)?;
            vec![in_place((0, all.heads(0..Q_HEADS)?)), in_place((0, k))]
        }
        Data::Arena => {
            let q = place(Q_HEADS, 0, false)?;
            let k = place(K_HEADS, q.span().end, false)?;
            let q_out = place(Q_HEADS, k.span().end, true)?;
            let k_out = place(K_HEADS, q_out.span().end, true)?;
            vec![Operand { input: (0, q), output: (0, q_out) }, Operand { input: (0, k), output: (0, k_out) }]
        }
        Data::InPlace => vec![in_place((0, place(Q_HEADS, 0, false)?)), in_place((1, place(K_HEADS, 0, false)?))],
        Data::CopyQ => {
            vec![Operand { input: (0, place(Q_HEADS, 0, false)?), output: (1, place(Q_HEADS, 9, true)?) }]
        }
        Data::Copy => vec![
            Operand { input: (0, place(Q_HEADS, 0, false)?), output: (1, place(Q_HEADS, 9, true)?) },
            Operand { input: (2, place(K_HEADS, 3, false)?), output: (3, place(K_HEADS, 0, true)?) },
        ],
    })
}

/// A tensor of so many heads behind `after` elements of a buffer. A moved one with gaps has heads before tokens.
fn layout(case: &Case, heads: usize, after: usize, moved: bool) -> Result<Layout> {
    let [batch, tokens] = case.rows.extent();
    let gap = usize::from(case.rows == Rows::Apart);
    let (offset, channel, channels, gap) = match case.lanes {
        Lanes::Vector => (after.next_multiple_of(4) + 4, 1, HEAD_DIM, 8 * gap),
        Lanes::Any => (after + 3 + after % 2, 2, 2 * HEAD_DIM + 1, 3 * gap),
    };
    let (token, head) = match moved && case.rows == Rows::Apart {
        true => (channels, channels * tokens),
        false => (channels * heads, channels),
    };
    let row = heads * tokens * channels + gap;
    Layout::strided([batch, tokens, heads, HEAD_DIM], [row, token, head, channel], offset)
}
