//! What a rotation must fulfil before anything is recorded.

use super::rotate::{Operand, Rotate};
use super::table::Serves;
use super::{Rope, RopeTable};
use crate::gpu::View;
use crate::{Error, ErrorKind, Result};

/// A view, its argument's name, and whether it is written.
struct Used<'a> {
    argument: String,
    view: &'a View,
    written: bool,
}

impl Rotate {
    pub(super) fn check(&self, rope: &Rope) -> Result<()> {
        self.check_shapes(rope)?;
        let used = self.used();
        for Used { argument, view, written } in &used {
            match written {
                true => view.expect_written(argument)?,
                false => view.expect_floats(argument)?,
            }
        }
        check_overlap(&used)?;
        self.check_numbers(rope, &used)
    }

    fn operands(&self) -> impl Iterator<Item = &Operand> {
        [&self.q].into_iter().chain(&self.k)
    }

    /// All tensors, with those in place but once.
    fn used(&self) -> Vec<Used<'_>> {
        self.operands()
            .flat_map(|operand| {
                let name = operand.name;
                let in_place = operand.is_in_place();
                let input = Used { argument: name.into(), view: &operand.input, written: in_place };
                let output = Used { argument: format!("{name}.output"), view: &operand.output, written: true };
                [Some(input), (!in_place).then_some(output)].into_iter().flatten()
            })
            .collect()
    }

    /// Everything that a rotation binds, with its argument's name.
    pub(super) fn named(&self) -> Vec<(String, &View)> {
        let tensors = self.used().into_iter().map(|used| (used.argument, used.view));
        let positions = self.positions.view().map(|view| ("positions".into(), view));
        let rows = self.operands().filter_map(|operand| Some(("rows".into(), operand.rows.as_ref()?.view())));
        let table = self.table.iter().map(|table| ("table".into(), table.view()));
        tensors.chain(positions).chain(rows).chain(table).collect()
    }

    fn check_shapes(&self, rope: &Rope) -> Result<()> {
        let [batch, tokens, _, channels] = self.q.input.shape();
        let needed = rope.first_channel.checked_add(2 * rope.pairs());
        if needed.is_none_or(|needed| needed > channels) {
            let may_be =
                format!("one whose heads hold the {} channels from {} on", 2 * rope.pairs(), rope.first_channel);
            let was = format!("{:?}, heads of {channels} channels", self.q.input.shape());
            return Err(Error::tensor(self.q.name, was, may_be));
        }
        for operand in self.operands() {
            let name = operand.name;
            let [b, t, heads, c] = operand.input.shape();
            if [b, t, c] != [batch, tokens, channels] {
                let may_be = format!("[{batch}, {tokens}, any number of heads, {channels}], as {} is", self.q.name);
                return Err(Error::tensor(name, format!("{:?}", operand.input.shape()), may_be));
            }
            let output = operand.output.shape();
            let (fits, may_be) = match operand.rows {
                None => (output == [b, t, heads, c], format!("{:?}, as {name} is", [b, t, heads, c])),
                Some(_) => ([output[0], output[2], output[3]] == [b, heads, c], {
                    format!("[{b}, any number of rows, {heads}, {c}], for {name}")
                }),
            };
            if !fits {
                return Err(Error::tensor(format!("{name}.output"), format!("{output:?}"), may_be));
            }
            if operand.is_one_buffer() && operand.input.element() != operand.output.element() {
                let may_be = format!("{}, as {name} in the same buffer is", operand.input.element());
                return Err(Error::tensor(format!("{name}.output"), operand.output.element().to_string(), may_be));
            }
        }
        self.table.as_ref().map_or(Ok(()), |table| self.check_table(rope, table))
    }

    fn check_table(&self, rope: &Rope, table: &RopeTable) -> Result<()> {
        let (pairs, axes) = (table.view().shape()[3], rope.n_axes());
        let (was, may_be) = if pairs != rope.pairs() {
            (format!("one of {pairs} pairs"), format!("one of {} pairs, as this encoding has", rope.pairs()))
        } else if axes > 1 && matches!(table.serves, Serves::Range(_)) {
            // Its rows stand for a single position each.
            let rows = table.view().shape()[0];
            let may_be = format!("one made by Rope::table_for, as tokens have {axes} positions each");
            (format!("one of a range of {rows} positions"), may_be)
        } else if !table.has_angles_of(rope) {
            ("one of other frequencies or axes".into(), "one that this encoding made, or one of the same".into())
        } else if table.is_empty() && !self.q.input.layout().is_empty() {
            ("one without rows".into(), "one with a row for each token's position".into())
        } else {
            return Ok(());
        };
        Err(Error::tensor("table", was, may_be))
    }

    /// Positions and rows of a cache, which the same dispatch reads.
    fn check_numbers(&self, rope: &Rope, used: &[Used<'_>]) -> Result<()> {
        let axes = rope.n_axes();
        let positions = self.positions.numbers(self.rows(), axes);
        if positions.is_none() && axes > 1 && self.table.is_none() {
            return Err(Error::new(
                ErrorKind::Position,
                "positions",
                "one number for a token",
                format!("a view with {axes} numbers for each token, as the encoding has axes"),
            ));
        }
        let rows = self.operands().filter_map(|operand| Some(operand.rows.as_ref()?.numbers(self.rows())));
        for numbers in positions.into_iter().chain(rows) {
            numbers.check()?;
            expect_unwritten(numbers.argument, numbers.view, used)?;
        }
        self.table.as_ref().map_or(Ok(()), |table| expect_unwritten("table", table.view(), used))
    }
}

/// Refuses to read from a buffer that the same dispatch writes.
fn expect_unwritten(argument: &str, view: &View, used: &[Used<'_>]) -> Result<()> {
    let mut written = used.iter().filter(|used| used.written);
    written.try_for_each(|used| view.expect_other_buffer(argument, used.view, &used.argument))
}

fn check_overlap(used: &[Used<'_>]) -> Result<()> {
    for (i, a) in used.iter().enumerate() {
        for b in &used[i + 1..] {
            let shared = (a.written || b.written) && a.view.buffer() == b.view.buffer();
            if shared && a.view.may_overlap(b.view) {
                return Err(Error::new(
                    ErrorKind::Overlap,
                    a.argument.clone(),
                    b.argument.clone(),
                    "the same view in place, or views that share no element",
                ));
            }
        }
    }
    Ok(())
}
