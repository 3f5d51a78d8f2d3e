//! A picture of curves: time and memory over the length of a sequence, both scales logarithmic, a row for each device.

use super::picture::{Area, FAINT, INK, LEGEND_LINE, colour, failed, legend, svg, text};
use super::results::{Column, Curve, Exponent, Point};
use crate::failure::Failure;
use crate::report::{bytes, curve_label, power, seconds};
use plotters::prelude::*;
use std::ops::Range;

const WIDTH: u32 = 1100;
const PANEL: u32 = 420;

/// What a panel shows of a point.
type Cost = fn(&Point) -> f64;

/// Two panels for each device, and a legend with the powers beneath; `None` if no curve has two points.
pub fn picture(columns: &[Column]) -> Result<Option<String>, Failure> {
    let drawn: Vec<_> = columns.iter().filter(|column| column.curves.iter().any(|c| c.points.len() > 1)).collect();
    if drawn.is_empty() {
        return Ok(None);
    }
    let heights: Vec<_> = drawn.iter().map(|column| PANEL + legend_height(column)).collect();
    svg((WIDTH, heights.iter().sum()), |area| {
        let mut rest = area.clone();
        for (column, &height) in drawn.iter().zip(&heights) {
            let (row, below) = rest.split_vertically(height);
            device(&row, column)?;
            rest = below;
        }
        Ok(())
    })
    .map(Some)
}

fn legend_height(column: &Column) -> u32 {
    (LEGEND_LINE * column.curves.len() as i32 + 20) as u32
}

fn device(area: &Area<'_>, column: &Column) -> Result<(), Failure> {
    let (panels, beneath) = area.split_vertically(PANEL);
    let (left, right) = panels.split_horizontally(WIDTH / 2);
    let title = |what: &str| format!("{}: {what}", column.name);
    panel(&left, &title("time"), &column.curves, (|point| point.seconds, 10.0), &|s| seconds(*s))?;
    panel(&right, &title("memory"), &column.curves, (|point| point.memory, 2.0), &|n| bytes(*n as u64))?;
    let names: Vec<_> = column.curves.iter().map(name).collect();
    legend(&beneath, (40, 10), names.iter().map(String::as_str))
}

/// `attention, fused, CoPE: time n^1.98, memory n^1.00, from 2048 tokens on`.
fn name(curve: &Curve) -> String {
    let name = curve_label(&curve.subject, &curve.name);
    match (curve.time_exponent, curve.memory_exponent) {
        (Some(Exponent { value: time, from, .. }), Some(Exponent { value: memory, .. })) => {
            format!("{name}: time {}, memory {}, from {from} tokens on", power(time), power(memory))
        }
        _ => name,
    }
}

fn panel(
    area: &Area<'_>,
    title: &str,
    curves: &[Curve],
    (cost, base): (Cost, f64),
    told: &dyn Fn(&f64) -> String,
) -> Result<(), Failure> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let (Some(tokens), Some(costs)) = (around(points().map(|p| f64::from(p.tokens))), around(points().map(cost)))
    else {
        return Ok(());
    };
    let mut chart = ChartBuilder::on(area)
        .caption(title, text(19))
        .margin(14)
        .x_label_area_size(34)
        .y_label_area_size(76)
        .build_cartesian_2d(tokens.log_scale().base(2.0), costs.log_scale().base(base))
        .map_err(failed)?;
    chart
        .configure_mesh()
        .axis_style(INK)
        .bold_line_style(FAINT)
        .light_line_style(TRANSPARENT)
        .label_style(text(16))
        .x_desc("tokens")
        .axis_desc_style(text(16))
        .x_label_formatter(&|n| format!("{n:.0}"))
        .y_label_formatter(told)
        .draw()
        .map_err(failed)?;
    for (i, curve) in curves.iter().enumerate() {
        let line: Vec<_> = curve.points.iter().map(|point| (f64::from(point.tokens), cost(point))).collect();
        chart.draw_series(LineSeries::new(line.iter().copied(), colour(i).stroke_width(2))).map_err(failed)?;
        let dots = line.iter().map(|&place| Circle::new(place, 3, colour(i).filled()));
        chart.draw_series(dots).map_err(failed)?;
    }
    Ok(())
}

/// A range that holds all of these, with some room; `None` for nothing, or for what has no logarithm.
fn around(values: impl Iterator<Item = f64>) -> Option<Range<f64>> {
    let (least, most) = values.fold((f64::INFINITY, 0f64), |(a, b), x| (a.min(x), b.max(x)));
    (least > 0.0 && least <= most).then(|| least / 1.3..most * 1.3)
}
