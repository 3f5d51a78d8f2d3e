//! `shaders/rope_table.wgsl`: a table's rows, from turns.

use super::grid::Limits;
use super::modules::{self, Lane, Module};
use crate::gpu::{Access, Binding, Shader};
use bytemuck::{Pod, Zeroable};

const KERNEL: Module = modules::module!("rope_table");

/// Invocations to a group: lanes of a row, and rows.
const WORKGROUP: [u32; 2] = [16, 4];

/// Where a row's position comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rows {
    pub rows: u32,
    pub start: i32,
    pub start_step: i32,
    /// Where positions lie in the buffer that is bound, if there is one.
    pub positions: Option<Positions>,
}

/// Where the positions of a table's rows lie, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Positions {
    pub first: u32,
    pub row: u32,
    pub axis: u32,
}

/// The uniform, as the shader declares it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub(crate) struct Params {
    rows: u32,
    pairs: u32,
    start: i32,
    start_step: i32,
    scale: f32,
    first_row: u32,
    position: u32,
    position_row: u32,
    position_axis: u32,
    _pad: [u32; 3],
}

/// One dispatch: its parameters and its groups.
pub(crate) type Part = (Params, [u32; 3]);

/// The lane that a table of so many pairs can be made and read with.
pub(crate) fn lane(pairs: usize) -> Lane {
    if pairs.is_multiple_of(4) { Lane::Four } else { Lane::One }
}

/// Groups side by side for the lanes of one row.
pub(crate) fn groups_of_a_row(pairs: usize, lane: Lane) -> u32 {
    ((pairs / lane.pairs()) as u32).div_ceil(WORKGROUP[0])
}

/// Bytes of a table.
pub(crate) fn bytes(rows: u32, pairs: usize) -> u64 {
    u64::from(rows) * 2 * pairs as u64 * 4
}

pub(crate) fn shader(lane: Lane, from_buffer: bool, axes: bool) -> Shader {
    let positions = lane.positions(from_buffer);
    let parts = [lane.module(), modules::TURN, modules::ANGLES_TURNS, positions, KERNEL];
    let mut bindings = vec![
        Binding { index: 0, name: "params", access: Access::Uniform },
        Binding { index: 1, name: "turns", access: Access::Read },
        Binding { index: 3, name: "table", access: Access::ReadWrite },
    ];
    if from_buffer {
        bindings.insert(2, Binding { index: 2, name: "positions", access: Access::Read });
    }
    Shader {
        name: format!("{}.{}.{}", KERNEL.name, lane.module().name, positions.name),
        wgsl: Shader::compose(&parts.map(|module| module.wgsl)),
        constants: vec![
            ("WG_X", f64::from(WORKGROUP[0])),
            ("WG_Y", f64::from(WORKGROUP[1])),
            ("AXES", f64::from(u8::from(axes))),
        ],
        bindings,
        workgroup: [WORKGROUP[0], WORKGROUP[1], 1],
    }
}

/// Every variant.
pub(crate) fn all() -> impl Iterator<Item = Shader> {
    [Lane::One, Lane::Four]
        .into_iter()
        .flat_map(|lane| [false, true].map(|from_buffer| shader(lane, from_buffer, from_buffer)))
}

/// One dispatch for as many rows as the device's grid reaches.
pub(crate) fn plan(rows: Rows, pairs: usize, lane: Lane, scale: f32, limits: Limits) -> Vec<Part> {
    let positions = rows.positions.unwrap_or_default();
    let at_once = limits.groups.saturating_mul(WORKGROUP[1]);
    (0..rows.rows)
        .step_by(at_once as usize)
        .map(|first_row| {
            let end = first_row.saturating_add(at_once).min(rows.rows);
            let params = Params {
                rows: end,
                pairs: pairs as u32,
                start: rows.start,
                start_step: rows.start_step,
                scale,
                first_row,
                position: positions.first,
                position_row: positions.row,
                position_axis: positions.axis,
                _pad: [0; 3],
            };
            (params, [groups_of_a_row(pairs, lane), (end - first_row).div_ceil(WORKGROUP[1]), 1])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_that_is_too_large_goes_on_in_the_next_dispatch() {
        let limits = Limits { groups: 10, ..Limits::LOWEST };
        let rows = Rows { rows: 95, start: 7, start_step: 1, positions: None };
        let parts = plan(rows, 32, Lane::Four, 1.0, limits);
        assert_eq!(parts.iter().map(|p| (p.0.first_row, p.0.rows)).collect::<Vec<_>>(), [(0, 40), (40, 80), (80, 95)]);
        assert_eq!(parts[2].1, [1, 4, 1]);
        assert!(plan(Rows { rows: 0, ..rows }, 32, Lane::Four, 1.0, limits).is_empty());
    }
}
