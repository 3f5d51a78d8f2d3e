//! What all pictures share: colours that can be told on light pages and on dark ones, text, and a legend.

use crate::failure::Failure;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::fmt;

pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Text and axes: as far from white as from black.
pub const INK: RGBColor = RGBColor(0x7a, 0x7a, 0x7a);

/// Lines behind everything.
pub const FAINT: RGBAColor = RGBAColor(0x7a, 0x7a, 0x7a, 0.3);

/// One for each device or operation, in turn.
pub const COLOURS: [RGBColor; 6] = [
    RGBColor(0x3b, 0x82, 0xc4),
    RGBColor(0xd0, 0x7a, 0x1e),
    RGBColor(0x2a, 0x9d, 0x6f),
    RGBColor(0xc0, 0x53, 0x9b),
    RGBColor(0x8b, 0x6f, 0xd6),
    RGBColor(0xb5, 0x5a, 0x3c),
];

pub fn colour(i: usize) -> RGBColor {
    COLOURS[i % COLOURS.len()]
}

pub fn text(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

/// A picture without a background, drawn by `draw`. What XML has no place for is left out of names.
pub fn svg(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Result<(), Failure>) -> Result<String, Failure> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    draw(&area)?;
    area.present().map_err(failed)?;
    drop(area);
    svg.retain(|c| c == '\n' || !(c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}')));
    Ok(svg)
}

/// Drawing into a string does not fail; should it ever, the command says so.
pub fn failed(error: impl fmt::Display) -> Failure {
    Failure::new(format!("drawing: {error}"))
}

/// A dot of each colour with its name, one under the other from a place on.
pub fn legend<'a>(area: &Area<'_>, at: (i32, i32), names: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let (x, mut y) = at;
    for (i, name) in names.enumerate() {
        area.draw(&Circle::new((x, y), 5, colour(i).filled())).map_err(failed)?;
        area.draw(&Text::new(name.to_owned(), (x + 14, y - 6), text(17))).map_err(failed)?;
        y += LEGEND_LINE;
    }
    Ok(())
}

/// From one name of a legend to the next.
pub const LEGEND_LINE: i32 = 20;
