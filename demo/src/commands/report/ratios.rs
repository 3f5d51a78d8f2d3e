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

/// All measurements one under the other; `None` if there is none.
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
        scale.draw(area, top, height - 20)?;
        let places = (0..).map(|i| top + ROW * i + ROW / 2);
        lines.iter().zip(places).try_for_each(|(line, y)| line.draw(area, y, &scale))
    };
    svg((WIDTH as u32, height as u32), draw).map(Some)
}

fn lines(columns: &[Column], of: &Subject) -> Vec<Line> {
    let (names, baseline) = operations(columns, of);
    let title = Line::Title(format!("{}: time ÷ {baseline}", subject(of)));
    let row = |name: String| {
        let ratios = columns.iter().map(|column| Some(column.operation(of, &name)?.over_baseline));
        Line::Row(name.clone(), ratios.collect())
    };
    [title].into_iter().chain(names.into_iter().map(row)).collect()
}

impl Line {
    fn draw(&self, area: &Area<'_>, y: i32, scale: &Scale) -> Result<(), Failure> {
        match self {
            Self::Title(title) => {
                // Out of the scale's lines, which would cross it.
                area.draw(&Text::new(title.clone(), (20, y - 6), text(14).color(&INK))).map_err(failed)
            }
            Self::Row(name, ratios) => {
                area.draw(&Text::new(name.clone(), (36, y - 6), text(13))).map_err(failed)?;
                area.draw(&PathElement::new([(LEFT, y), (RIGHT, y)], FAINT)).map_err(failed)?;
                for (i, ratio) in ratios.iter().enumerate() {
                    let Some(ratio) = ratio else { continue };
                    area.draw(&Circle::new((scale.x(*ratio), y), 5, colour(i).filled())).map_err(failed)?;
                }
                Ok(())
            }
        }
    }
}

/// A logarithmic scale, on which twice as long is as far everywhere.
struct Scale {
    least: f64,
    most: f64,
}

impl Scale {
    /// From a power of two below all ratios to one above all, with 1 between them.
    fn of(lines: &[Line]) -> Self {
        let ratios = lines.iter().flat_map(|line| match line {
            Line::Title(_) => &[],
            Line::Row(_, ratios) => ratios.as_slice(),
        });
        let (least, most) = ratios.flatten().fold((1f64, 1f64), |(least, most), &r| (least.min(r), most.max(r)));
        Self { least: (least / 1.02).log2().floor().exp2(), most: (most * 1.02).log2().ceil().exp2() }
    }

    fn x(&self, ratio: f64) -> i32 {
        let share = (ratio / self.least).ln() / (self.most / self.least).ln();
        LEFT + (share * f64::from(RIGHT - LEFT)).round() as i32
    }

    /// A line at each power of two.
    fn draw(&self, area: &Area<'_>, top: i32, bottom: i32) -> Result<(), Failure> {
        let marks = std::iter::successors(Some(self.least), |mark| Some(2.0 * mark));
        for mark in marks.take_while(|&mark| mark <= self.most) {
            let x = self.x(mark);
            // What everything is measured by stands out.
            let style = if mark == 1.0 { INK.to_rgba() } else { FAINT };
            area.draw(&PathElement::new([(x, top), (x, bottom)], style)).map_err(failed)?;
            let number = Text::new(format!("{mark}"), (x - 4, top - 18), text(13));
            area.draw(&number).map_err(failed)?;
        }
        Ok(())
    }
}
