//! The rotation kernel: one case, from its buffers to the comparison of every number in them.

use super::bound::{Bound, stored};
use super::case::{ANCHORS, Angles, Case, Channels, Data, Lanes, Rows};
use super::tally::{Compared, Tally};
use phasor::frequencies::{Axes, Frequencies, Plain, Yarn};
use phasor::{
    CacheRows, ElementType, Error, ErrorKind, Gpu, Layout, Positions, Result, Rope, RopeTable, Rotate, View, reference,
};

const Q_HEADS: usize = 6;
const K_HEADS: usize = 2;
const HEAD_DIM: usize = 32;
/// Rows of a table over a range: what [`ANCHORS`] leaves room for.
const TABLE_ROWS: usize = 20;
/// Rows of a cache beyond the tokens that go there.
const SPARE_ROWS: usize = 3;
/// Positions of a token, where it has several.
const AXES: usize = 3;

/// A device and the frequencies of the cases.
pub(super) struct Bench<'a> {
    gpu: &'a Gpu,
    /// For whole heads and for half of them.
    plain: [Frequencies; 2],
    /// The same, with an attention factor other than 1.
    yarn: [Frequencies; 2],
    noise: fastrand::Rng,
}

/// A tensor in a buffer.
#[derive(Debug, Clone, Copy)]
struct Tensor {
    buffer: usize,
    element: ElementType,
    layout: Layout,
}

/// A tensor before and after, and whether it goes to rows of a cache.
#[derive(Debug, Clone, Copy)]
struct Operand {
    input: Tensor,
    output: Tensor,
    cached: bool,
}

/// What one token's rotation depends on.
#[derive(Debug, Clone)]
struct Token {
    /// Its positions: one for each axis.
    positions: Vec<i32>,
    /// Where it goes if there is a cache; nowhere if the number is not one of its rows.
    row: i32,
}

/// What the device is told beside the tensors.
struct Told {
    positions: Positions,
    table: Option<RopeTable>,
    rows: Option<CacheRows>,
    /// What it should make of it: `[batch][tokens]`.
    tokens: Vec<Vec<Token>>,
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
        let buffers: Vec<_> =
            buffers(&operands).into_iter().map(|(element, n)| (element, self.noise(element, n))).collect();
        let mut rope = Rope::new(self.gpu, self.frequencies(case), case.pairing)?.from_channel(case.channels.range().0);
        if case.angles == Angles::TurnsPerAxis {
            rope = rope.with_axes(&axes(self.frequencies(case).pairs())?)?;
        }
        let told = self.tell(case, &rope)?;
        let device: Vec<View> = buffers
            .iter()
            .map(|(element, values)| self.gpu.upload_as(*element, values, [1, 1, 1, values.len()]))
            .collect::<Result<_>>()?;
        let rotation = rope.prepare(&rotate(&device, &operands, &told)?.direction(case.direction))?;
        self.gpu.submit(|pass| {
            if let Some(table) = &told.table {
                table.record(pass);
            }
            rotation.record(pass);
        })?;
        let mut numbers = self.expected(case, &operands, &buffers, &told)?;
        for (buffer, view) in numbers.iter_mut().zip(&device) {
            for (number, got) in buffer.iter_mut().zip(self.gpu.read(view).await?) {
                number.got = got;
            }
        }
        tally.add(rotation.shaders(), &case.to_string(), &numbers.concat());
        Ok(())
    }

    /// Numbers from -1 to 1 that this element type holds exactly.
    fn noise(&mut self, element: ElementType, n: usize) -> Vec<f32> {
        let mut one = || match element.bytes() {
            2 => self.noise.i32(-128..=128) as f32 / 128.0,
            _ => self.noise.f32() * 2.0 - 1.0,
        };
        (0..n).map(|_| one()).collect()
    }

    fn frequencies(&self, case: &Case) -> &Frequencies {
        let plain = matches!(case.rows, Rows::One | Rows::Apart) || case.angles == Angles::TurnsPerAxis;
        let [whole, half] = if plain { &self.plain } else { &self.yarn };
        if case.channels == Channels::All { whole } else { half }
    }

    fn tell(&self, case: &Case, rope: &Rope) -> Result<Told> {
        let [batch, tokens] = case.rows.extent();
        let anchor = |n: usize| ANCHORS[(case.anchor + n) % ANCHORS.len()];
        // Free positions jump from anchor to anchor, others stay within a table's range, and none is its first.
        let start = |row: usize| if case.angles.are_free() { anchor(row) } else { anchor(0) + 2 + 3 * row as i32 };
        let each = |i: usize| match case.angles.are_free() {
            true => anchor(i) + i as i32 % TABLE_ROWS as i32,
            false => anchor(0) + (2 + 7 * i as i32) % TABLE_ROWS as i32,
        };
        let per_row: Vec<i32> = (0..batch).map(start).collect();
        let per_token: Vec<i32> = (0..batch * tokens).map(each).collect();
        let per_axis: Vec<i32> = (0..batch * tokens * AXES).map(each).collect();
        let view = |list: &[i32], shape: [usize; 4]| {
            let flat = self.gpu.upload_positions(list, [1, list.len()])?;
            View::new(flat.buffer(), flat.element(), Layout::contiguous(shape)?)
        };
        let of_rows = || view(&per_row, [batch, 1, 1, 1]);
        let of_tokens = || view(&per_token, [batch, tokens, 1, 1]);
        let range = || rope.table(anchor(0), TABLE_ROWS).map(Some);
        let (positions, table) = match case.angles {
            Angles::TurnsFromStart => (Positions::Start(start(0)), None),
            Angles::TableFromStart => (Positions::Start(start(0)), range()?),
            Angles::TurnsPerRow => (Positions::StartPerRow(of_rows()?), None),
            Angles::TablePerRow => (Positions::StartPerRow(of_rows()?), range()?),
            Angles::TurnsPerToken => (Positions::PerToken(of_tokens()?), None),
            Angles::TurnsPerAxis => (Positions::PerToken(view(&per_axis, [batch, tokens, AXES, 1])?), None),
            Angles::TablePerToken => (Positions::PerToken(of_tokens()?), range()?),
            Angles::TableOfTokens => (Positions::default(), Some(rope.table_for(&of_tokens()?)?)),
        };
        let position = |b: usize, t: usize| match case.angles {
            Angles::TurnsFromStart | Angles::TableFromStart => vec![start(0) + t as i32],
            Angles::TurnsPerRow | Angles::TablePerRow => vec![start(b) + t as i32],
            Angles::TurnsPerAxis => (0..AXES).map(|axis| each((b * tokens + t) * AXES + axis)).collect(),
            _ => vec![each(b * tokens + t)],
        };
        // A start per row, or tokens from the last row on down: in rows of several, the first one past the end.
        let starts_per_row = case.anchor.is_multiple_of(2);
        let row = |b: usize, t: usize| match starts_per_row {
            true => b as i32 + t as i32,
            false => (tokens + SPARE_ROWS - t) as i32 - i32::from(tokens == 1),
        };
        let per = if starts_per_row { 1 } else { tokens };
        let list: Vec<i32> = (0..batch).flat_map(|b| (0..per).map(move |t| row(b, t))).collect();
        let rows = match case.data.has_cache() {
            false => None,
            true if starts_per_row => Some(CacheRows::StartPerRow(view(&list, [batch, 1, 1, 1])?)),
            true => Some(CacheRows::PerToken(view(&list, [batch, tokens, 1, 1])?)),
        };
        let token = |b, t| Token { positions: position(b, t), row: row(b, t) };
        let tokens = (0..batch).map(|b| (0..tokens).map(|t| token(b, t)).collect()).collect();
        Ok(Told { positions, table, rows, tokens })
    }

    /// What every buffer should hold: as before outside of the outputs, and the reference's numbers there.
    fn expected(
        &self,
        case: &Case,
        operands: &[Operand],
        buffers: &[(ElementType, Vec<f32>)],
        told: &Told,
    ) -> Result<Vec<Vec<Compared>>> {
        let as_before = |&x: &f32| Compared { got: f32::NAN, expected: x.into(), bound: 0.0 };
        let mut numbers: Vec<Vec<_>> =
            buffers.iter().map(|(_, values)| values.iter().map(as_before).collect()).collect();
        for operand in operands {
            let Operand { input, output, cached } = operand;
            let before: Vec<f32> = input.layout.places().map(|place| buffers[input.buffer].1[place]).collect();
            let after = self.rotated(case, input.layout.shape(), &before, told)?;
            let [batch, tokens, heads, channels] = input.layout.shape();
            let inner = Layout::contiguous(input.layout.shape())?;
            for (b, t) in (0..batch).flat_map(|b| (0..tokens).map(move |t| (b, t))) {
                let row = if *cached { usize::try_from(told.tokens[b][t].row).ok() } else { Some(t) };
                let Some(row) = row.filter(|row| *row < output.layout.shape()[1]) else { continue };
                for (h, c) in (0..heads).flat_map(|h| (0..channels).map(move |c| (h, c))) {
                    let (expected, bound) = after[inner.at([b, t, h, c])];
                    let same_type = input.element == output.element;
                    let exact = bound == 0.0 && same_type;
                    let bound = if exact { 0.0 } else { stored(output.element, expected, bound) };
                    let place = output.layout.at([b, row, h, c]);
                    numbers[output.buffer][place] = Compared { got: f32::NAN, expected, bound };
                }
            }
        }
        Ok(numbers)
    }

    /// A tensor's numbers after the rotation in f64, each with its bound before it is stored; 0 for those that do not
    /// turn.
    fn rotated(&self, case: &Case, shape: [usize; 4], before: &[f32], told: &Told) -> Result<Vec<(f64, f64)>> {
        let frequencies = self.frequencies(case);
        let (factor, pairs) = (frequencies.attention_factor(), frequencies.pairs());
        let magnitude = case.direction.magnitude(factor);
        let bound = match told.table {
            Some(_) => Bound::new(factor).times(magnitude / factor),
            None => Bound::new(magnitude),
        };
        let layout = Layout::contiguous(shape)?;
        let first = case.channels.range().0;
        let axis_of_pair: Vec<usize> = match case.angles {
            Angles::TurnsPerAxis => axes(pairs)?.axis_of_pair().iter().map(|&axis| axis.into()).collect(),
            _ => vec![0; pairs],
        };
        let mut exact: Vec<f64> = before.iter().map(|&x| x.into()).collect();
        for axis in 0..=axis_of_pair.iter().copied().max().unwrap_or(0) {
            // Axis by axis, with the pairs of the others at rest: the factor is 1 wherever there are several.
            let own = |(&w, &its): (&f64, &usize)| if its == axis { w } else { 0.0 };
            let inv_freq = frequencies.inv_freq().iter().zip(&axis_of_pair).map(own).collect();
            let frequencies = Frequencies::new(inv_freq, factor)?;
            let position = |b: usize, t: usize| told.tokens[b][t].positions[axis];
            reference::rope_rotate(&mut exact, layout, &frequencies, case.pairing, first, case.direction, position)?;
        }
        let mut rotated: Vec<(f64, f64)> = exact.into_iter().map(|x| (x, 0.0)).collect();
        let [batch, tokens, heads, _] = shape;
        for (b, t, h) in (0..batch).flat_map(|b| (0..tokens).flat_map(move |t| (0..heads).map(move |h| (b, t, h)))) {
            for (pair, &axis) in axis_of_pair.iter().enumerate() {
                let (i, j) = case.pairing.channels(pair as u32, pairs as u32);
                let [i, j] = [i, j].map(|channel| layout.at([b, t, h, first + channel as usize]));
                let allowed = bound.rotation(told.tokens[b][t].positions[axis], before[i], before[j]);
                rotated[i].1 = allowed;
                rotated[j].1 = allowed;
            }
        }
        Ok(rotated)
    }
}

/// Three axes that take turns, in shares that are not equal.
fn axes(pairs: usize) -> Result<Axes> {
    Axes::new((0..pairs).map(|pair| (pair * pair % AXES) as u8).collect(), AXES as u8)
}

fn rotate(device: &[View], operands: &[Operand], told: &Told) -> Result<Rotate> {
    let view = |tensor: Tensor| View::new(device[tensor.buffer].buffer(), tensor.element, tensor.layout);
    let nothing = || Error::new(ErrorKind::Tensor, "q", "missing", "a tensor");
    let mut operands = operands.iter();
    let q = operands.next().ok_or_else(nothing)?;
    let rotate = match &told.rows {
        Some(rows) if q.cached => Rotate::into_cache(&view(q.input)?, &view(q.output)?, rows.clone()),
        _ => Rotate::into(&view(q.input)?, &view(q.output)?),
    };
    let rotate = match (operands.next(), &told.rows) {
        (Some(k), Some(rows)) => rotate.and_into_cache(&view(k.input)?, &view(k.output)?, rows.clone()),
        (Some(k), None) => rotate.and_into(&view(k.input)?, &view(k.output)?),
        (None, _) => rotate,
    };
    let rotate = rotate.positions(told.positions.clone());
    Ok(match &told.table {
        Some(table) => rotate.from_table(table),
        None => rotate,
    })
}

/// Each buffer's element type, and how many elements it holds: some more than the views reach.
fn buffers(operands: &[Operand]) -> Vec<(ElementType, usize)> {
    let mut buffers = Vec::new();
    for tensor in operands.iter().flat_map(|operand| [operand.input, operand.output]) {
        while buffers.len() <= tensor.buffer {
            buffers.push((tensor.element, 0));
        }
        buffers[tensor.buffer].0 = tensor.element;
        buffers[tensor.buffer].1 = buffers[tensor.buffer].1.max(tensor.layout.span().end + 9);
    }
    buffers
}

/// Where queries and keys lie.
fn operands(case: &Case) -> Result<Vec<Operand>> {
    let [_, tokens] = case.rows.extent();
    let [q_type, q_out_type, k_type, k_out_type] = case.elements.types();
    let place = |buffer, element, heads, after, moved| {
        Ok::<_, Error>(Tensor { buffer, element, layout: layout(case, [tokens, heads], after, moved)? })
    };
    let in_place = |at: Tensor| Operand { input: at, output: at, cached: false };
    let moved = |input, output| Operand { input, output, cached: false };
    let cache = |buffer| {
        let layout = layout(case, [tokens + SPARE_ROWS, K_HEADS], 0, true)?;
        Ok::<_, Error>(Tensor { buffer, element: k_out_type, layout })
    };
    Ok(match case.data {
        Data::Alone => vec![in_place(place(0, q_type, Q_HEADS, 0, false)?)],
        Data::Packed => {
            let all = place(0, q_type, Q_HEADS + K_HEADS, 0, false)?;
            let heads = |range| Ok::<_, Error>(Tensor { layout: all.layout.heads(range)?, ..all });
            vec![in_place(heads(0..Q_HEADS)?), in_place(heads(Q_HEADS..Q_HEADS + K_HEADS)?)]
        }
        Data::Arena => {
            let q = place(0, q_type, Q_HEADS, 0, false)?;
            let k = place(0, q_type, K_HEADS, q.layout.span().end, false)?;
            let q_out = place(0, q_type, Q_HEADS, k.layout.span().end, true)?;
            let k_out = place(0, q_type, K_HEADS, q_out.layout.span().end, true)?;
            vec![moved(q, q_out), moved(k, k_out)]
        }
        Data::InPlace => {
            vec![in_place(place(0, q_type, Q_HEADS, 0, false)?), in_place(place(1, k_type, K_HEADS, 0, false)?)]
        }
        Data::CopyQ => vec![moved(place(0, q_type, Q_HEADS, 0, false)?, place(1, q_out_type, Q_HEADS, 9, true)?)],
        Data::CacheK => {
            vec![Operand { cached: true, ..moved(place(0, k_type, K_HEADS, 0, false)?, cache(1)?) }]
        }
        Data::Copy | Data::CacheBoth => {
            let q = moved(place(0, q_type, Q_HEADS, 0, false)?, place(1, q_out_type, Q_HEADS, 9, true)?);
            let k = place(2, k_type, K_HEADS, 3, false)?;
            let cached = case.data == Data::CacheBoth;
            let k_out = if cached { cache(3)? } else { place(3, k_out_type, K_HEADS, 0, true)? };
            vec![q, Operand { cached, ..moved(k, k_out) }]
        }
    })
}

/// A tensor of so many tokens and heads behind `after` elements of a buffer. A moved one with gaps has heads before
/// tokens.
fn layout(case: &Case, [tokens, heads]: [usize; 2], after: usize, moved: bool) -> Result<Layout> {
    let [batch, _] = case.rows.extent();
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
