//! A rotation: what is asked for, and how it becomes dispatches.

use super::positions::Numbers;
use super::table::Serves;
use super::{CacheRows, Positions, Rope, RopeTable};
use crate::gpu::{Dispatch, Prepared, Slot, View};
use crate::kernels::grid::Limits;
use crate::kernels::rope_rotate::{Angles, CacheRows as RowsOfCache, Data, Elements, Job, Tensor};
use crate::{Direction, Error, ErrorKind, Result};

/// What to rotate, from where to where, by which angles.
///
/// Queries and keys may have different numbers of heads and different element types, but have the same batch, tokens
/// and channels. Out of place, the output may be of another type than the input.
///
/// # Which kernel
/// [`Prepared::shaders`] and `phasor info` tell which variant was chosen, `phasor bench rotation` what it costs beside the
/// best of three copies.
///
/// * **Angles** are made in the kernel, unless [`Rotate::from_table`] says otherwise: on lavapipe that takes as long as
///   reading them from a table, on SwiftShader two or three per cent longer, and there is no table to fill, to hold and to outgrow.
/// * **Words of four channels** are loaded and stored where all tensors lie in them, offset, strides and the channels that
///   turn; else single channels, which any layout allows.
/// * **Heads to an invocation**, which share its angles: all of a token's on a device that is a CPU, where one at a time
///   takes longer. On a GPU as many as leave it some hundred thousand invocations, from one to eight: one for a
///   decode step, which is bound by its dispatch. That is an estimate until GPUs are measured.
/// * **Batch and tokens** are one axis wherever memory and positions allow: to tell them apart costs a division.
#[derive(Debug, Clone)]
#[must_use]
pub struct Rotate {
    pub(super) q: Operand,
    pub(super) k: Option<Operand>,
    pub(super) positions: Positions,
    pub(super) direction: Direction,
    pub(super) table: Option<RopeTable>,
}

/// A tensor before and after; the same view for work in place.
#[derive(Debug, Clone)]
pub(super) struct Operand {
    /// What the caller knows it by: `q` or `k`.
    pub name: &'static str,
    pub input: View,
    pub output: View,
    /// Which rows of the output the tokens go to, if it is a cache.
    pub rows: Option<CacheRows>,
}

impl Rotate {
    /// Queries, overwritten with their rotation.
    pub fn in_place(q: &View) -> Self {
        Self::into(q, q)
    }

    /// Queries, with their rotation written to another view of the same shape. Channels that do not turn are copied.
    pub fn into(q: &View, output: &View) -> Self {
        Self::of(Operand { name: "q", input: q.clone(), output: output.clone(), rows: None })
    }

    /// Keys alone, with their rotation written to rows of a cache `[batch, rows, heads, channels]`.
    pub fn into_cache(k: &View, cache: &View, rows: CacheRows) -> Self {
        Self::of(Operand { name: "k", input: k.clone(), output: cache.clone(), rows: Some(rows) })
    }

    fn of(q: Operand) -> Self {
        Self { q, k: None, positions: Positions::default(), direction: Direction::default(), table: None }
    }

    /// Keys too, in the same dispatch, overwritten with their rotation.
    pub fn and_in_place(self, k: &View) -> Self {
        self.and_into(k, k)
    }

    /// Keys too, in the same dispatch, with their rotation written to another view of the same shape.
    pub fn and_into(mut self, k: &View, output: &View) -> Self {
        self.k = Some(Operand { name: "k", input: k.clone(), output: output.clone(), rows: None });
        self
    }

    /// Keys too, with their rotation written to rows of a cache `[batch, rows, heads, channels]`.
    pub fn and_into_cache(mut self, k: &View, cache: &View, rows: CacheRows) -> Self {
        self.k = Some(Operand { name: "k", input: k.clone(), output: cache.clone(), rows: Some(rows) });
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

    /// Reads cosines and sines from a table instead of making them, which is the default, needs no memory and has no
    /// limit of positions. A token whose position comes from a buffer and is not in the table stays as it is.
    pub fn from_table(mut self, table: &RopeTable) -> Self {
        self.table = Some(table.clone());
        self
    }

    /// `[batch, tokens]`.
    pub(super) fn rows(&self) -> [usize; 2] {
        let [batch, tokens, ..] = self.q.input.shape();
        [batch, tokens]
    }
}

impl Operand {
    pub(super) fn is_one_buffer(&self) -> bool {
        self.input.buffer() == self.output.buffer()
    }

    pub(super) fn is_in_place(&self) -> bool {
        self.is_one_buffer() && self.input.layout().is_same_places(&self.output.layout()) && self.rows.is_none()
    }

    /// Whether there is nothing to turn, or no row of a cache to keep it in.
    fn is_empty(&self) -> bool {
        self.input.layout().is_empty() || self.output.layout().is_empty()
    }
}

impl Rope {
    /// Checks a rotation, finds its pipeline and makes its bind groups.
    ///
    /// One dispatch turns queries and keys, unless a limit of the device makes it necessary to split the work, or
    /// queries and keys lie in buffers that one dispatch may not bind together. Empty tensors need none.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) for shapes, strides and element types that do not go together,
    /// [`Overlap`](crate::ErrorKind::Overlap) where a written view meets another, [`Usage`](crate::ErrorKind::Usage) for a
    /// buffer without `STORAGE`, [`Position`](crate::ErrorKind::Position) for a position outside of the table or past
    /// `i32::MAX`, [`Limit`](crate::ErrorKind::Limit) where not even one token's head fits into the device's limits.
    pub fn prepare(&self, rotate: &Rotate) -> Result<Prepared> {
        rotate.check(self)?;
        let pieces = rotate.pieces(Limits::from(self.gpu.limits()));
        let prepared = pieces
            .into_iter()
            .try_fold(Prepared::nothing(), |done, (data, q, k)| Ok(done.then(self.prepare_piece(rotate, data, q, k)?)));
        let named = rotate.named();
        prepared.map_err(|error| self.gpu.blame(error, named.iter().map(|(name, view)| (name.as_str(), *view))))
    }

    fn prepare_piece(&self, rotate: &Rotate, data: Data, q: &Operand, k: Option<&Operand>) -> Result<Prepared> {
        let rows = rotate.rows();
        let steps = rotate.steps(self.n_axes())?;
        // A table holds the attention factor of the encoding that made it.
        let factor = match rotate.table {
            None => rotate.direction.magnitude(self.attention_factor),
            Some(ref table) => rotate.direction.magnitude(self.attention_factor) / table.attention_factor,
        };
        let cache = k.unwrap_or(q).rows.as_ref().map(|cache_rows| cache_rows.numbers(rows));
        let key = k.unwrap_or(q);
        let job = Job {
            name: q.name,
            data,
            elements: Elements {
                q: q.input.element(),
                q_out: q.output.element(),
                k: key.input.element(),
                k_out: key.output.element(),
            },
            angles: if rotate.table.is_some() { Angles::Table } else { Angles::Turns },
            pairing: self.pairing,
            pairs: self.pairs(),
            first_channel: self.first_channel,
            q: q.input.layout(),
            q_out: q.output.layout(),
            k: k.map(|k| (k.input.layout(), k.output.layout())),
            positions: steps.positions.as_ref().map(|numbers| numbers.layout(rows)),
            axes: self.n_axes() > 1 && rotate.table.is_none(),
            rows: cache.as_ref().map(|numbers| RowsOfCache { rows: numbers.layout(rows), step: numbers.step }),
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
        let view = |tensor: Tensor| match tensor {
            Tensor::Q => Some(&q.input),
            Tensor::QOut => Some(&q.output),
            Tensor::K => k.map(|k| &k.input),
            Tensor::KOut => k.map(|k| &k.output),
            Tensor::Positions => steps.positions.as_ref().map(|numbers| numbers.view),
            Tensor::Rows => cache.as_ref().map(|numbers| numbers.view),
        };
        let angles = rotate.table.as_ref().map_or_else(|| self.turns_slot(), RopeTable::slot);
        let dispatches: Vec<_> = parts
            .iter()
            .map(|part| {
                let data = part.ranges.iter().filter_map(|(index, tensor, range)| {
                    let buffer = view(*tensor)?.buffer();
                    Some(Slot { index: *index, buffer, offset: range.start, size: range.end - range.start })
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
    positions: Option<Numbers<'a>>,
    start: i32,
    batch: i32,
    token: i32,
}

impl Rotate {
    /// Where positions, or rows of the table, come from.
    fn steps(&self, axes: usize) -> Result<Steps<'_>> {
        let first_row = match self.table.as_ref().map(|table| &table.serves) {
            None => None,
            Some(Serves::Range(range)) => Some(range.clone()),
            Some(&Serves::Tokens(rows)) => return self.steps_of_table(rows),
        };
        let (start, token) = match self.positions {
            Positions::Start(start) => (start, 1),
            Positions::Same(position) => (position, 0),
            Positions::StartPerRow(_) | Positions::PerToken(_) => (0, 0),
        };
        let positions = self.positions.numbers(self.rows(), axes);
        let [_, tokens] = self.rows();
        if positions.is_none() && tokens > 0 {
            let steps = i64::try_from(tokens - 1).unwrap_or(i64::MAX).saturating_mul(token.into());
            let last = i64::from(start).saturating_add(steps);
            let holds = first_row.clone().unwrap_or(i64::from(i32::MIN)..i64::from(i32::MAX) + 1);
            if !holds.contains(&i64::from(start)) || !holds.contains(&last) {
                let may_be = format!("within {} to {}", holds.start, holds.end - 1);
                return Err(position(format!("{start} to {last}"), may_be));
            }
        }
        let token = positions.as_ref().map_or(token, |numbers| numbers.step);
        // With a buffer of positions the shader looks whether the table has their rows.
        let start = first_row.map_or(start, |range| start.wrapping_sub(range.start as i32));
        Ok(Steps { positions, start, batch: 0, token })
    }

    /// Row after row of a table that has one for each token.
    fn steps_of_table(&self, [b, t]: [usize; 2]) -> Result<Steps<'_>> {
        let [batch, tokens] = self.rows();
        if !matches!(self.positions, Positions::Start(0)) {
            return Err(position("given beside a table that has a row for each token".into(), "left out".into()));
        }
        if (b != batch && b != 1) || t != tokens {
            let may_be = format!("for [{batch}, {tokens}] or [1, {tokens}]");
            return Err(position(format!("those of a table for [{b}, {t}] tokens"), may_be));
        }
        let batch = if b == 1 { 0 } else { t as i32 };
        Ok(Steps { positions: None, start: 0, batch, token: 1 })
    }

    /// What one dispatch may bind together: queries and keys if it can be, else one after the other.
    fn pieces(&self, limits: Limits) -> Vec<(Data, &Operand, Option<&Operand>)> {
        let alone = |operand: &Operand| if operand.is_one_buffer() { Data::One } else { Data::CopyQ };
        let q = &self.q;
        let Some(k) = self.k.as_ref().filter(|k| !k.is_empty()) else {
            return if q.is_empty() { Vec::new() } else { vec![(alone(q), q, None)] };
        };
        if q.is_empty() {
            return vec![(alone(k), k, None)];
        }
        let together = match (q.is_one_buffer(), k.is_one_buffer()) {
            (true, true) if q.output.buffer() != k.output.buffer() => Some(Data::InPlace),
            (true, true) if q.input.element() == k.input.element() => {
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
            // Rows of a cache are looked up for the last output only.
            Some(data) if q.rows.is_none() => vec![(data, q, Some(k))],
            _ => vec![(alone(q), q, None), (alone(k), k, None)],
        }
    }
}

fn position(was: String, may_be: String) -> Error {
    Error::new(ErrorKind::Position, "positions", was, may_be)
}
