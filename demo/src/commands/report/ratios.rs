//! A picture of ratios: a row for each operation, a dot for each device.

use super::markdown::{operations, subjects};
use super::picture::{Area, FAINT, INK, LEGEND_LINE, colour, failed, legend, svg, text};
use super::results::Column;
use crate::failure::Failure;
use crate::report::subject;
use phasor_measure::Subject;
use plotters::prelude::*;

const WIDTH: i32 = 960;
/// Where the scale begins and ends.
const LEFT: i32 = 330;
const RIGHT: i32 = WIDTH - 30;
const ROW: i32 = 20;
/// Room above the rows for the scale's numbers.
const SCALE: i32 = 30;

/// A line of the picture.
enum Line {
    /// What the rows under it are of.
    Title(String),
    /// An operation and its ratio on each device.
    Row(String, Vec<Option<f64>>),
}

/// All measurements one under the other; `None` if none has a ratio.
pub fn picture(columns: &[Column]) -> Result<Option<String>, Failure> {
    let lines: Vec<_> = subjects(columns).iter().flat_map(|subject| lines(columns, subject)).collect();
    if lines.is_empty() {
        return Ok(None);
    }
    let scale = Scale::of(&lines);
    let top = 20 + LEGEND_LINE * columns.len() as i32 + SCALE;
    let height = top + ROW * lines.len() as i32 + 20;
    let draw = |area: &Area<'_>| {
        legend(area, (20, 20), columns.iter().map(|column| column.name.as_str()))?;
        scale.draw_numbers(area, top - 18)?;
        let places = (0..).map(|i| top + ROW * i + ROW / 2);
        lines.iter().zip(places).try_for_each(|(line, y)| line.draw(area, y, &scale))
    };
    svg((WIDTH as u32, height as u32), draw).map(Some)
}

/// A title and the operations that have a ratio on some device; nothing if none has.
fn lines(columns: &[Column], of: &Subject) -> Vec<Line> {
    let (names, baseline) = operations(columns, of);
    let title = Line::Title(format!("{}: time ÷ {baseline}", subject(of)));
    let row = |name: String| {
        let ratios: Vec<_> = columns.iter().map(|column| column.operation(of, &name)?.over_baseline).collect();
        ratios.iter().any(Option::is_some).then_some(Line::Row(name, ratios))
    };
    let rows: Vec<_> = names.into_iter().filter_map(row).collect();
    let title = (!rows.is_empty()).then_some(title);
    title.into_iter().chain(rows).collect()
}

impl Line {
    fn draw(&self, area: &Area<'_>, y: i32, scale: &Scale) -> Result<(), Failure> {
        match self {
            Self::Title(title) => area.draw(&Text::new(title.clone(), (20, y - 6), text(17))).map_err(failed),
            Self::Row(name, ratios) => {
                area.draw(&Text::new(name.clone(), (36, y - 6), text(16))).map_err(failed)?;
                scale.draw_lines(area, y)?;
                for (i, ratio) in ratios.iter().enumerate() {
                    let Some(ratio) = ratio else { continue };
                    area.draw(&Circle::new((scale.x(*ratio), y), 5, colour(i).filled())).map_err(failed)?;
                }
                Ok(())
            }
        }
    }
}

/// As many intervals as there is room for numbers.
const INTERVALS: u32 = 14;

/// A logarithmic scale, on which twice as long is as far everywhere.
struct Scale {
    /// The binary logarithms of where it begins and ends.
    least: i32,
    most: i32,
}

impl Scale {
    /// From a power of two below all ratios to one above all, with 1 between them.
    fn of(lines: &[Line]) -> Self {
        let ratios = lines.iter().flat_map(|line| match line {
            Line::Title(_) => &[],
            Line::Row(_, ratios) => ratios.as_slice(),
        });
        let (least, most) = ratios.flatten().fold((1f64, 1f64), |(least, most), &r| (least.min(r), most.max(r)));
        Self { least: (least / 1.02).log2().floor() as i32, most: (most * 1.02).log2().ceil() as i32 }
    }

    fn x(&self, ratio: f64) -> i32 {
        let share = (ratio.log2() - f64::from(self.least)) / (f64::from(self.most) - f64::from(self.least));
        LEFT + (share * f64::from(RIGHT - LEFT)).round() as i32
    }

    /// Logarithms of powers of two, each or every so many, always with that of 1.
    fn marks(&self) -> impl Iterator<Item = i32> {
        let step = self.most.abs_diff(self.least).div_ceil(INTERVALS).max(1) as i32;
        (self.least / step..=self.most / step).map(move |i| step * i)
    }

    fn draw_numbers(&self, area: &Area<'_>, y: i32) -> Result<(), Failure> {
        for mark in self.marks() {
            let number = match mark {
                0..=10 => format!("{}", 1 << mark),
                -10..0 => format!("1/{}", 1 << -mark),
                _ => format!("2^{mark}"),
            };
            area.draw(&Text::new(number, (self.x(f64::from(mark).exp2()) - 4, y), text(16))).map_err(failed)?;
        }
        Ok(())
    }

    /// Behind a row: along it, and across it at each mark.
    fn draw_lines(&self, area: &Area<'_>, y: i32) -> Result<(), Failure> {
        area.draw(&PathElement::new([(LEFT, y), (RIGHT, y)], FAINT)).map_err(failed)?;
        for mark in self.marks() {
            // What everything is measured by stands out.
            let style = if mark == 0 { INK.to_rgba() } else { FAINT };
            let across = [y - ROW / 2, y + ROW / 2].map(|y| (self.x(f64::from(mark).exp2()), y));
            area.draw(&PathElement::new(across, style)).map_err(failed)?;
        }
        Ok(())
    }
}
