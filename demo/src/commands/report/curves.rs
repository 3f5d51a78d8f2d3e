//! A picture of curves: time and memory over the length of a sequence, both scales logarithmic, a row for each device.

use super::picture::{Area, FAINT, INK, LEGEND_LINE, colour, failed, legend, svg, text};
use super::results::{Column, Curve, Point};
use crate::failure::Failure;
use crate::report::{bytes, curve_label, power, seconds};
use plotters::prelude::*;
use std::ops::Range;

const WIDTH: u32 = 1100;
const PANEL: u32 = 420;

/// What a panel shows of a point, if that is above 0, as it is on a logarithmic scale.
type Cost = fn(&Point) -> Option<f64>;

fn time(point: &Point) -> Option<f64> {
    point.seconds
}

fn memory(point: &Point) -> Option<f64> {
    (point.memory > 0).then_some(point.memory as f64)
}

/// Two panels for each device, and a legend with the powers beneath; `None` if no curve has two times.
pub fn picture(columns: &[Column]) -> Result<Option<String>, Failure> {
    let line = |curve: &Curve| places(curve, time).count() > 1;
    let drawn: Vec<_> = columns.iter().filter(|column| column.curves.iter().any(line)).collect();
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
    panel(&left, &title("time"), &column.curves, (time, 10.0), &|s| seconds(*s))?;
    panel(&right, &title("memory"), &column.curves, (memory, 2.0), &|n| bytes(*n as u64))?;
    let names: Vec<_> = column.curves.iter().map(name).collect();
    legend(&beneath, (40, 10), names.iter().map(String::as_str))
}

/// `attention, fused, CoPE: time n^1.98, memory n^1.00, from 2048 tokens on`.
fn name(curve: &Curve) -> String {
    let name = curve_label(&curve.subject, &curve.name);
    let powers = || {
        let (time, memory) = (curve.time_exponent?, curve.memory_exponent?);
        let (of_time, of_memory) = (power(time.value?), power(memory.value?));
        Some(format!("{name}: time {of_time}, memory {of_memory}, from {} tokens on", time.from))
    };
    powers().unwrap_or(name.clone())
}

/// Where a curve's points are, of those that have a place.
fn places(curve: &Curve, cost: Cost) -> impl Iterator<Item = (f64, f64)> {
    curve.points.iter().filter_map(move |point| Some((f64::from(point.tokens.get()), cost(point)?)))
}

fn panel(
    area: &Area<'_>,
    title: &str,
    curves: &[Curve],
    (cost, base): (Cost, f64),
    told: &dyn Fn(&f64) -> String,
) -> Result<(), Failure> {
    let all = || curves.iter().flat_map(|curve| places(curve, cost));
    let (Some(tokens), Some(costs)) = (around(all().map(|place| place.0)), around(all().map(|place| place.1))) else {
        let nothing = format!("{title}: no number above 0");
        return area.draw(&Text::new(nothing, (14, 14), text(19))).map_err(failed);
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
        chart.draw_series(LineSeries::new(places(curve, cost), colour(i).stroke_width(2))).map_err(failed)?;
        let dots = places(curve, cost).map(|place| Circle::new(place, 3, colour(i).filled()));
        chart.draw_series(dots).map_err(failed)?;
    }
    Ok(())
}

/// A range that holds all of these, with some room; `None` for nothing.
fn around(values: impl Iterator<Item = f64>) -> Option<Range<f64>> {
    let (least, most) = values.fold((f64::INFINITY, 0f64), |(a, b), x| (a.min(x), b.max(x)));
    (least <= most).then(|| least / 1.3..most * 1.3)
}
