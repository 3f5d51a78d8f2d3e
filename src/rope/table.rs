//! Tables of cosines and sines on the device.

use super::Rope;
use super::positions::Numbers;
use crate::frequencies::{Axes, Frequencies};
use crate::gpu::{Dispatch, Prepared, Shader, Slot, View};
use crate::kernels::grid::Limits;
use crate::kernels::rope_table::{self, Rows};
use crate::{ElementType, Error, ErrorKind, Result};
use std::ops::Range;

/// Cosines and sines on the device: f32 `[rows, 2, pairs]`, in each row the cosines first.
///
/// It holds what was there when [`RopeTable::record`] was last executed; until then it is all zeros.
#[derive(Debug, Clone)]
pub struct RopeTable {
    view: View,
    fill: Prepared,
    frequencies: Frequencies,
    axes: Axes,
    /// The factor that its numbers hold.
    pub(super) attention_factor: f64,
    pub(super) serves: Serves,
}

/// Which rows a table has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Serves {
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

    /// Whether its angles are those of an encoding.
    pub(super) fn has_angles_of(&self, rope: &Rope) -> bool {
        self.frequencies.inv_freq() == rope.frequencies.inv_freq() && self.axes == rope.axes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.view.layout().is_empty()
    }

    /// The whole table, at a rotation's binding for angles.
    pub(super) fn slot(&self) -> Slot<'_> {
        let buffer = self.view.buffer();
        Slot { index: 1, buffer, offset: 0, size: buffer.size() }
    }
}

impl Rope {
    /// A table for `tokens` positions from `start` on.
    ///
    /// # Errors
    /// [`Position`](crate::ErrorKind::Position) if the last position is not an i32; [`Setting`](crate::ErrorKind::Setting)
    /// if a token has several positions, of which a range says nothing; [`Limit`](crate::ErrorKind::Limit) if the table is
    /// larger than a binding of this device; [`OutOfMemory`](crate::ErrorKind::OutOfMemory) if there is no room for it.
    pub fn table(&self, start: i32, tokens: usize) -> Result<RopeTable> {
        if self.n_axes() > 1 {
            return Err(Error::setting("axes", self.n_axes(), "1 for a range of positions; else Rope::table_for"));
        }
        let end = i64::try_from(tokens).ok().and_then(|n| n.checked_add(start.into()));
        let Some(end) = end.filter(|&end| end <= i64::from(i32::MAX) + 1) else {
            return Err(Error::new(
                ErrorKind::Position,
                "tokens",
                format!("{tokens} from position {start} on"),
                format!("up to position {}", i32::MAX),
            ));
        };
        // All i32 positions at once are one row more than a u32 counts.
        let rows = u32::try_from(tokens).map_err(|_| {
            Error::new(ErrorKind::Position, "tokens", tokens.to_string(), format!("up to {} at once", u32::MAX))
        })?;
        let rows = Rows { rows, start, start_step: 1, positions: None };
        self.table_of(rows, None, Serves::Range(start.into()..end))
    }

    /// A table with a row for each token of a device buffer of positions: an i32 view `[batch, tokens, axes, 1]` whose
    /// rows of the batch follow each other. (Hugging Face's `[axes, batch, tokens]` is such a view, by its strides.)
    ///
    /// A rotation that uses it takes its angles from there, row by row, and needs no positions of its own.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) if the view is not of that kind, [`Usage`](crate::ErrorKind::Usage) if its
    /// buffer lacks `STORAGE`; else as [`Rope::table`].
    pub fn table_for(&self, positions: &View) -> Result<RopeTable> {
        let [batch, tokens, ..] = positions.shape();
        let wanted = [batch, tokens, self.n_axes()];
        Numbers { argument: "positions", view: positions, step: 0, wanted, shared: false }.check()?;
        let refused = |was: String, may_be: String| Error::tensor("positions", was, may_be);
        let layout = positions
            .layout()
            .rows_joined()
            .ok_or_else(|| refused(format!("{:?}", positions.layout()), "one whose rows follow each other".into()))?;
        let n_rows = u32::try_from(batch * tokens)
            .map_err(|_| refused(format!("{} of them", batch * tokens), format!("up to {}", u32::MAX)))?;
        let serves = Serves::Tokens([batch, tokens]);
        let rows = Rows { rows: n_rows, start: 0, start_step: 0, positions: None };
        if layout.is_empty() {
            return self.table_of(rows, None, serves);
        }
        let limits = Limits::from(self.gpu.limits());
        let bytes = limits.range([(layout, ElementType::I32)]);
        limits.expect_binding("positions", bytes.end - bytes.start)?;
        // A binding begins where the device allows, which may be before the first position.
        let first = layout.offset() as u64 - bytes.start / 4;
        let strides = layout.strides().map(|stride| stride as u32);
        let place = rope_table::Positions { first: first as u32, row: strides[1], axis: strides[2] };
        let slot = Slot { index: 2, buffer: positions.buffer(), offset: bytes.start, size: bytes.end - bytes.start };
        self.table_of(Rows { positions: Some(place), ..rows }, Some(slot), serves)
            .map_err(|error| self.gpu.blame(error, [("positions", positions)]))
    }

    fn table_of(&self, rows: Rows, positions: Option<Slot<'_>>, serves: Serves) -> Result<RopeTable> {
        let limits = Limits::from(self.gpu.limits());
        limits.expect_binding("the table", rope_table::bytes(rows.rows, self.pairs()))?;
        let lane = rope_table::lane(self.pairs());
        limits.expect_groups("one row of the table", rope_table::groups_of_a_row(self.pairs(), lane))?;
        let view = self.gpu.zeros(ElementType::F32, [rows.rows as usize, 2, 1, self.pairs()])?;
        let dispatches: Vec<_> = rope_table::plan(rows, self.pairs(), lane, self.attention_factor as f32, limits)
            .into_iter()
            .map(|(params, groups)| {
                let table = Slot { index: 3, buffer: view.buffer(), offset: 0, size: view.buffer().size() };
                let slots = [self.turns_slot(), table].into_iter().chain(positions.clone()).collect();
                Dispatch { params: bytemuck::bytes_of(&params).to_vec(), slots, groups }
            })
            .collect();
        let shader = rope_table::shader(lane, rows.positions.is_some(), self.n_axes() > 1);
        let fill = Prepared::new(&self.gpu, &shader, &dispatches)?;
        Ok(RopeTable {
            view,
            fill,
            frequencies: self.frequencies.clone(),
            axes: self.axes.clone(),
            attention_factor: self.attention_factor,
            serves,
        })
    }
}
