//! Rotary encoding on the device: frequencies once, then rotations that are prepared once and recorded many times.

use crate::frequencies::Frequencies;
use crate::gpu::{Dispatch, Gpu, Prepared, Shader, Slot, View};
use crate::kernels::grid::Limits;
use crate::kernels::rope_rotate::{Angles, Data, Job, Tensor};
use crate::kernels::rope_table::{self, Rows};
use crate::{Direction, ElementType, Error, Pairing, Result};
use std::ops::Range;

/// A rotary encoding on a device: frequencies, pairing, and which channels of a head turn.
///
/// ```no_run
/// use phasor::{Gpu, Pairing, Rope, Rotate, View, frequencies::Plain};
/// # fn engine(gpu: Gpu, q: View, k: View, pass: &mut wgpu::ComputePass<'_>) -> phasor::Result<()> {
/// let frequencies = Plain { base: 500_000.0 }.frequencies(128)?;
/// let rope = Rope::new(&gpu, &frequencies, Pairing::HalfSplit)?;
/// let rotation = rope.prepare(&Rotate::in_place(&q).and_in_place(&k))?;
/// rotation.record(pass);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Rope {
    gpu: Gpu,
    turns: wgpu::Buffer,
    pairs: usize,
    attention_factor: f64,
    pairing: Pairing,
    first_channel: usize,
}

/// Where the tokens stand.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Positions {
    /// Token `t` of every row stands at this position plus `t`.
    Start(i32),
    /// Token `t` of row `b` stands at the `b`-th number of a device buffer plus `t`: an i32 view `[batch, 1, 1, 1]`, or
    /// `[1, 1, 1, 1]` for all rows. A prepared step is recorded again for the next token once the buffer has changed.
    StartPerRow(View),
    /// Each token stands where a device buffer says: an i32 view `[batch, tokens, 1, 1]`, or `[1, tokens, 1, 1]` for
    /// all rows.
    PerToken(View),
}

impl Default for Positions {
    fn default() -> Self {
        Self::Start(0)
    }
}

/// What to rotate, from where to where, by which angles.
///
/// Queries and keys may have different numbers of heads, but have the same batch, tokens and channels.
#[derive(Debug, Clone)]
#[must_use]
pub struct Rotate {
    q: Operand,
    k: Option<Operand>,
    positions: Positions,
    direction: Direction,
    table: Option<RopeTable>,
}

/// A tensor before and after; the same view for work in place.
#[derive(Debug, Clone)]
struct Operand {
    input: View,
    output: View,
}

impl Rotate {
    /// Queries, overwritten with their rotation.
    pub fn in_place(q: &View) -> Self {
        Self::into(q, q)
    }

    /// Queries, with their rotation written to another view of the same shape. Channels that do not turn are copied.
    pub fn into(q: &View, output: &View) -> Self {
        Self {
            q: Operand { input: q.clone(), output: output.clone() },
            k: None,
            positions: Positions::default(),
            direction: Direction::default(),
            table: None,
        }
    }

    /// Keys too, in the same dispatch, overwritten with their rotation.
    pub fn and_in_place(self, k: &View) -> Self {
        self.and_into(k, k)
    }

    /// Keys too, in the same dispatch, with their rotation written to another view of the same shape.
    pub fn and_into(mut self, k: &View, output: &View) -> Self {
        self.k = Some(Operand { input: k.clone(), output: output.clone() });
        self
    }

    /// Where the tokens stand; from 0 on if this is not said.
    pub fn positions(mut self, positions: Positions) -> Self {
        self.positions = positions;
        self
    }

    /// Which way to turn; forward if this is not said.
    pub fn direction(mut self, direction: Direction) -> Self {
        self.direction = direction;
        self
    }

    /// Reads cosines and sines from a table instead of making them, which is the default and needs no memory.
    pub fn from_table(mut self, table: &RopeTable) -> Self {
        self.table = Some(table.clone());
        self
    }
}

/// Cosines and sines on the device: f32 `[rows, 2, pairs]`, in each row the cosines first.
///
/// It holds what was there when [`RopeTable::record`] was last executed; until then it is all zeros.
#[derive(Debug, Clone)]
pub struct RopeTable {
    view: View,
    fill: Prepared,
    pairs: usize,
    serves: Serves,
}

/// Which rows a table has.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Serves {
    /// A row for each position of a range.
    Range(Range<i64>),
    /// A row for each `[batch, tokens]` of a buffer of positions.
    Tokens([usize; 2]),
}

impl RopeTable {
    /// Records the computation of the whole table. Once is enough, unless its positions come from a buffer that changed.
    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        self.fill.record(pass);
    }

    /// The shader that computes it: none for an empty table.
    #[must_use]
    pub fn shader(&self) -> Option<&Shader> {
        self.fill.shaders().next()
    }

    /// The table as a tensor `[rows, 2, 1, pairs]`: cosines at index 0 of the second axis, sines at index 1.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }
}

impl Rope {
    /// Puts frequencies on the device. The channels that turn are the first `frequencies.rotary_dim()` of each head.
    ///
    /// # Errors
    /// [`Error::Limit`], [`Error::OutOfMemory`] or [`Error::DeviceLost`] if the device cannot take them.
    pub fn new(gpu: &Gpu, frequencies: &Frequencies, pairing: Pairing) -> Result<Self> {
        // By fours, as a lane of the vector path reads them: four wholes, then four rests.
        let turns = frequencies.turns();
        let words: Vec<u32> = turns
            .chunks(4)
            .flat_map(|four| {
                let get = |i: usize| four.get(i).copied().unwrap_or_default();
                let whole = [0, 1, 2, 3].map(|i| get(i).whole);
                let rest = [0, 1, 2, 3].map(|i| get(i).rest.to_bits());
                whole.into_iter().chain(rest)
            })
            .collect();
        Ok(Self {
            gpu: gpu.clone(),
            turns: gpu.filled_buffer(bytemuck::cast_slice(&words))?,
            pairs: frequencies.pairs(),
            attention_factor: frequencies.attention_factor(),
            pairing,
            first_channel: 0,
        })
    }

    /// The same encoding for heads of which the turning channels begin at this one (DeepSeek-V4 turns the last 64).
    #[must_use]
    pub fn from_channel(mut self, first: usize) -> Self {
        self.first_channel = first;
        self
    }

    /// A table for `tokens` positions from `start` on.
    ///
    /// # Errors
    /// [`Error::Position`] if the last position is not an i32; [`Error::Limit`] if the table is larger than a binding of
    /// this device; [`Error::OutOfMemory`] if there is no room for it.
    pub fn table(&self, start: i32, tokens: usize) -> Result<RopeTable> {
        let end = i64::try_from(tokens).ok().and_then(|n| n.checked_add(start.into()));
        let Some(end) = end.filter(|&end| end <= i64::from(i32::MAX) + 1) else {
            return Err(Error::Position {
                argument: "tokens".into(),
                was: format!("{tokens} from position {start} on"),
                may_be: format!("up to position {}", i32::MAX),
            });
        };
        let rows = Rows { rows: tokens as u32, start, start_step: 1, from_buffer: false, first_position: 0 };
        self.table_of(rows, None, Serves::Range(start.into()..end))
    }

    /// A table with a row for each position in a device buffer: an i32 view `[batch, tokens, 1, 1]` without gaps.
    ///
    /// A rotation that uses it takes its angles from there, row by row, and needs no positions of its own.
    ///
    /// # Errors
    /// [`Error::Tensor`] if the view is not of that kind, [`Error::Usage`] if its buffer lacks `STORAGE`; else as
    /// [`Rope::table`].
    pub fn table_for(&self, positions: &View) -> Result<RopeTable> {
        positions.expect_element("positions", ElementType::I32)?;
        positions.expect_usage("positions", wgpu::BufferUsages::STORAGE)?;
        let [batch, tokens, heads, channels] = positions.shape();
        let joined = positions.layout().rows_joined().filter(|rows| rows.strides()[1] == 1 || batch * tokens <= 1);
        let (Some(layout), 1, 1) = (joined, heads, channels) else {
            return Err(Error::Tensor {
                argument: "positions".into(),
                was: format!("{:?}", positions.layout()),
                may_be: "[batch, tokens, 1, 1] without gaps".into(),
            });
        };
        let rows = u32::try_from(batch * tokens).map_err(|_| Error::Tensor {
            argument: "positions".into(),
            was: format!("{} of them", batch * tokens),
            may_be: format!("up to {}", u32::MAX),
        })?;
        let limits = Limits::from(self.gpu.limits());
        let bytes = limits.range([(layout, ElementType::I32)]);
        limits.expect_binding("positions", bytes.end - bytes.start)?;
        // A binding begins where the device allows, which may be before the first position.
        let first_position = (layout.offset() as u64 - bytes.start / 4) as u32;
        let slot = Slot { index: 2, buffer: positions.buffer(), offset: bytes.start, size: bytes.end - bytes.start };
        let rows = Rows { rows, start: 0, start_step: 0, from_buffer: true, first_position };
        self.table_of(rows, Some(slot), Serves::Tokens([batch, tokens]))
    }

    fn table_of(&self, rows: Rows, positions: Option<Slot<'_>>, serves: Serves) -> Result<RopeTable> {
        let limits = Limits::from(self.gpu.limits());
        limits.expect_binding("the table", rope_table::bytes(rows.rows, self.pairs))?;
        let view = self.gpu.zeros(ElementType::F32, [rows.rows as usize, 2, 1, self.pairs])?;
        let lane = rope_table::lane(self.pairs);
        let dispatches: Vec<_> = rope_table::plan(rows, self.pairs, lane, self.attention_factor as f32, limits)
            .into_iter()
            .map(|(params, groups)| Dispatch {
                params: bytemuck::bytes_of(&params).to_vec(),
                slots: [
                    self.turns_slot(),
                    Slot { index: 3, buffer: view.buffer(), offset: 0, size: view.buffer().size() },
                ]
                .into_iter()
                .chain(positions.clone())
                .collect(),
                groups,
            })
            .collect();
        let fill = Prepared::new(&self.gpu, &rope_table::shader(lane, rows.from_buffer), &dispatches)?;
        Ok(RopeTable { view, fill, pairs: self.pairs, serves })
    }

    fn turns_slot(&self) -> Slot<'_> {
        Slot { index: 1, buffer: &self.turns, offset: 0, size: self.turns.size() }
    }

    /// Checks a rotation, finds its pipeline and makes its bind groups.
    ///
    /// One dispatch turns queries and keys, unless a limit of the device makes it necessary to split the work, or
    /// queries and keys lie in buffers that one dispatch may not bind together. Empty tensors need none.
    ///
    /// # Errors
    /// [`Error::Tensor`] for shapes, strides and element types that do not go together, [`Error::Overlap`] where a
    /// written view meets another, [`Error::Usage`] for a buffer without `STORAGE`, [`Error::Position`] for a position
    /// outside of the table or past `i32::MAX`, [`Error::Limit`] where not even one token fits into the device's limits.
    pub fn prepare(&self, rotate: &Rotate) -> Result<Prepared> {
        rotate.check(self)?;
        let pieces = rotate.pieces(Limits::from(self.gpu.limits()));
        pieces
            .into_iter()
            .try_fold(Prepared::nothing(), |done, (data, q, k)| Ok(done.then(self.prepare_piece(rotate, data, q, k)?)))
    }

    fn prepare_piece(&self, rotate: &Rotate, data: Data, q: &Operand, k: Option<&Operand>) -> Result<Prepared> {
        let [batch, tokens, ..] = q.input.shape();
        let steps = rotate.steps([batch, tokens])?;
        // A table holds the attention factor already.
        let factor = match rotate.table {
            None => rotate.direction.magnitude(self.attention_factor),
            Some(_) => rotate.direction.magnitude(self.attention_factor) / self.attention_factor,
        };
        let job = Job {
            data,
            angles: if rotate.table.is_some() { Angles::Table } else { Angles::Turns },
            pairing: self.pairing,
            pairs: self.pairs,
            first_channel: self.first_channel,
            q: q.input.layout(),
            q_out: q.output.layout(),
            k: k.map(|k| (k.input.layout(), k.output.layout())),
            positions: steps.positions.map(|view| {
                let [b, t, ..] = view.shape();
                let rows = if b == 1 { view.layout().repeated(0, batch) } else { view.layout() };
                if t == 1 { rows.repeated(1, tokens) } else { rows }
            }),
            start: steps.start,
            start_batch: steps.batch,
            start_token: steps.token,
            cos_scale: factor as f32,
            sin_scale: (factor * rotate.direction.sign()) as f32,
        };
        if job.is_empty() {
            return Ok(Prepared::nothing());
        }
        let (variant, parts) = job.plan(Limits::from(self.gpu.limits()), self.gpu.is_software())?;
        let buffer = |tensor: Tensor| match (tensor, k, steps.positions) {
            (Tensor::Positions, _, Some(positions)) => positions.buffer(),
            (Tensor::K, Some(k), _) => k.input.buffer(),
            (Tensor::KOut, Some(k), _) => k.output.buffer(),
            (Tensor::QOut, ..) => q.output.buffer(),
            _ => q.input.buffer(),
        };
        let angles = match &rotate.table {
            None => self.turns_slot(),
            Some(table) => {
                let buffer = table.view.buffer();
                Slot { index: 1, buffer, offset: 0, size: rope_table::bytes(table.rows(), self.pairs) }
            }
        };
        let dispatches: Vec<_> = parts
            .iter()
            .map(|part| {
                let data = part.ranges.iter().map(|(index, tensor, range)| Slot {
                    index: *index,
                    buffer: buffer(*tensor),
                    offset: range.start,
                    size: range.end - range.start,
                });
                Dispatch {
                    params: bytemuck::bytes_of(&part.params).to_vec(),
                    slots: data.chain([angles.clone()]).collect(),
                    groups: part.groups,
                }
            })
            .collect();
        Prepared::new(&self.gpu, &variant.shader(), &dispatches)
    }
}

/// How a token's position, or its row of the table, comes about: a number from a buffer if there is one, plus
/// `start + batch index * batch + token index * token`.
struct Steps<'a> {
    positions: Option<&'a View>,
    start: i32,
    batch: i32,
    token: i32,
}

impl RopeTable {
    fn rows(&self) -> u32 {
        self.view.shape()[0] as u32
    }
}

impl Rotate {
    fn operands(&self) -> impl Iterator<Item = (&'static str, &Operand)> {
        [("q", &self.q)].into_iter().chain(self.k.iter().map(|k| ("k", k)))
    }

    /// All views, each with its argument's name and whether it is written.
    fn views(&self) -> Vec<(String, &View, bool)> {
        self.operands()
            .flat_map(|(name, operand)| {
                let output = (format!("{name}.output"), &operand.output, true);
                if operand.is_in_place() {
                    vec![(name.to_string(), &operand.output, true)]
                } else {
                    vec![(name.to_string(), &operand.input, false), output]
                }
            })
            .collect()
    }

    fn check(&self, rope: &Rope) -> Result<()> {
        self.check_shapes(rope)?;
        let views = self.views();
        for (name, view, written) in &views {
            view.expect_element(name, ElementType::F32)?;
            view.expect_usage(name, wgpu::BufferUsages::STORAGE)?;
            if *written && view.layout().repeats_elements() {
                return Err(Error::Tensor {
                    argument: name.clone(),
                    was: format!("{:?}, where several indices name one element", view.layout()),
                    may_be: "one that names each element once, since it is written".into(),
                });
            }
        }
        for (i, (name, view, written)) in views.iter().enumerate() {
            for (other, other_view, other_written) in &views[i + 1..] {
                let shared = (*written || *other_written) && view.buffer() == other_view.buffer();
                if shared && view.layout().may_overlap(&other_view.layout()) {
                    return Err(Error::Overlap {
                        argument: name.clone(),
                        other: other.clone(),
                        may_be: "the same view in place, or views that share no element".into(),
                    });
                }
            }
        }
        self.check_positions(&views)
    }

    fn check_shapes(&self, rope: &Rope) -> Result<()> {
        let [batch, tokens, _, channels] = self.q.input.shape();
        let needed = rope.first_channel.checked_add(2 * rope.pairs);
        if needed.is_none_or(|needed| needed > channels) {
            return Err(Error::Tensor {
                argument: "q".into(),
                was: format!("{:?}, heads of {channels} channels", self.q.input.shape()),
                may_be: format!("one whose heads hold the {} channels from {} on", 2 * rope.pairs, rope.first_channel),
            });
        }
        for (name, operand) in self.operands() {
            let [b, t, heads, c] = operand.input.shape();
            if [b, t, c] != [batch, tokens, channels] {
                return Err(Error::Tensor {
                    argument: name.into(),
                    was: format!("{:?}", operand.input.shape()),
                    may_be: format!("[{batch}, {tokens}, any number of heads, {channels}], as q is"),
                });
            }
            if operand.output.shape() != operand.input.shape() {
                return Err(Error::Tensor {
                    argument: format!("{name}.output"),
                    was: format!("{:?}", operand.output.shape()),
                    may_be: format!("{:?}, as {name} is", [b, t, heads, c]),
                });
            }
        }
        match &self.table {
            Some(table) if table.pairs != rope.pairs => Err(Error::Tensor {
                argument: "table".into(),
                was: format!("one of {} pairs", table.pairs),
                may_be: format!("one of {} pairs, as this encoding has", rope.pairs),
            }),
            _ => Ok(()),
        }
    }

    fn check_positions(&self, views: &[(String, &View, bool)]) -> Result<()> {
        let [batch, tokens, ..] = self.q.input.shape();
        let (view, wanted) = match &self.positions {
            Positions::Start(_) => return Ok(()),
            Positions::StartPerRow(view) => (view, [batch, 1]),
            Positions::PerToken(view) => (view, [batch, tokens]),
        };
        view.expect_element("positions", ElementType::I32)?;
        view.expect_usage("positions", wgpu::BufferUsages::STORAGE)?;
        let [b, t, heads, channels] = view.shape();
        if (b != wanted[0] && b != 1) || [t, heads, channels] != [wanted[1], 1, 1] {
            return Err(Error::Tensor {
                argument: "positions".into(),
                was: format!("{:?}", view.shape()),
                may_be: format!("[{}, {}, 1, 1] or [1, {1}, 1, 1]", wanted[0], wanted[1]),
            });
        }
        match views.iter().find(|(_, written_to, written)| *written && written_to.buffer() == view.buffer()) {
            Some((name, ..)) => Err(Error::Overlap {
                argument: "positions".into(),
                other: name.clone(),
                may_be: "in another buffer: one dispatch may not read and write the same one".into(),
            }),
            None => Ok(()),
        }
    }

    /// Where positions, or rows of the table, come from.
    fn steps(&self, [batch, tokens]: [usize; 2]) -> Result<Steps<'_>> {
        let refused = |was: String, may_be: String| Err(Error::Position { argument: "positions".into(), was, may_be });
        let first_row = match self.table.as_ref().map(|table| &table.serves) {
            None => None,
            Some(Serves::Range(range)) => Some(range.clone()),
            Some(&Serves::Tokens([b, t])) => {
                let rows = match b {
                    1 => 0,
                    _ => t as i32,
                };
                let fits = (b == batch || b == 1) && t == tokens;
                return match (&self.positions, fits) {
                    (Positions::Start(0), true) => Ok(Steps { positions: None, start: 0, batch: rows, token: 1 }),
                    (Positions::Start(0), false) => refused(
                        format!("a table for [{b}, {t}] tokens"),
                        format!("a table for [{batch}, {tokens}] or [1, {tokens}]"),
                    ),
                    _ => refused("given beside a table that has a row for each token".into(), "left out".into()),
                };
            }
        };
        let (positions, start, token) = match &self.positions {
            Positions::Start(start) => (None, *start, 1),
            Positions::StartPerRow(view) => (Some(view), 0, 1),
            Positions::PerToken(view) => (Some(view), 0, 0),
        };
        if positions.is_none() && tokens > 0 {
            let last = i64::from(start).saturating_add(i64::try_from(tokens - 1).unwrap_or(i64::MAX));
            let holds = first_row.clone().unwrap_or(i64::from(i32::MIN)..i64::from(i32::MAX) + 1);
            if !holds.contains(&i64::from(start)) || !holds.contains(&last) {
                return refused(format!("{start} to {last}"), format!("within {} to {}", holds.start, holds.end - 1));
            }
        }
        // With a buffer of positions the shader looks whether the table has their rows.
        let start = first_row.map_or(start, |range| start.wrapping_sub(range.start as i32));
        Ok(Steps { positions, start, batch: 0, token })
    }

    /// What one dispatch may bind together: queries and keys if it can be, else one after the other.
    fn pieces(&self, limits: Limits) -> Vec<(Data, &Operand, Option<&Operand>)> {
        let alone = |operand: &Operand| if operand.is_one_buffer() { Data::One } else { Data::CopyQ };
        let q = &self.q;
        let Some(k) = self.k.as_ref().filter(|k| !k.input.layout().is_empty()) else {
            return vec![(alone(q), q, None)];
        };
        if q.input.layout().is_empty() {
            return vec![(alone(k), k, None)];
        }
        let together = match (q.is_one_buffer(), k.is_one_buffer()) {
            (true, true) if q.output.buffer() != k.output.buffer() => Some(Data::InPlace),
            (true, true) => {
                let views = [&q.input, &q.output, &k.input, &k.output];
                let bytes = limits.range(views.map(|view| (view.layout(), view.element())));
                (bytes.end - bytes.start <= limits.binding).then_some(Data::One)
            }
            // What is written may be bound once only, and not be read.
            (false, false) => {
                let inputs = [q.input.buffer(), k.input.buffer()];
                let outputs = [q.output.buffer(), k.output.buffer()];
                let apart = outputs[0] != outputs[1] && !outputs.iter().any(|buffer| inputs.contains(buffer));
                apart.then_some(Data::Copy)
            }
            _ => None,
        };
        match together {
            Some(data) => vec![(data, q, Some(k))],
            None => vec![(alone(q), q, None), (alone(k), k, None)],
        }
    }
}

impl Operand {
    fn is_one_buffer(&self) -> bool {
        self.input.buffer() == self.output.buffer()
    }

    fn is_in_place(&self) -> bool {
        self.is_one_buffer() && self.input.layout() == self.output.layout()
    }
}
