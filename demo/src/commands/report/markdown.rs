//! Tables in Markdown.

use super::results::{Column, Exponent, FirstResult, Measurement, Part, Point};
use crate::report::{bytes, curve_label, power, seconds, subject};
use phasor_measure::Subject;

/// Where something was measured that gave no number.
const NO_NUMBER: &str = "–";

/// Everything, a heading for each table.
pub fn all(columns: &[Column]) -> String {
    let mut parts = vec![devices(columns)];
    parts.extend(subjects(columns).iter().map(|subject| ratios(columns, subject)));
    parts.extend(first_results(columns));
    parts.extend(columns.iter().filter(|column| !column.curves.is_empty()).map(curves));
    parts.join("\n")
}

/// What was measured anywhere, each once, in its first file's order.
pub fn subjects(columns: &[Column]) -> Vec<Subject> {
    let mut subjects = Vec::new();
    for subject in columns.iter().flat_map(|column| &column.measurements).filter_map(Measurement::subject) {
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    subjects
}

/// The operations of a subject on any device, each once, and what they are measured by.
pub fn operations(columns: &[Column], subject: &Subject) -> (Vec<String>, String) {
    let (mut names, mut baseline) = (Vec::new(), String::new());
    let measured = columns.iter().flat_map(|column| &column.measurements);
    for measured in measured.filter(|measured| measured.subject().as_ref() == Some(subject)) {
        baseline.clone_from(&measured.baseline);
        for operation in &measured.operations {
            if !names.contains(&operation.name) {
                names.push(operation.name.clone());
            }
        }
    }
    (names, baseline)
}

/// Text of a file, which may hold anything, on one line: neither the end of a cell nor HTML.
fn inline(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '|' => safe.extend(['\\', c]),
            '<' => safe.push_str("&lt;"),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

/// Rows of cells as a table whose first column is text.
fn table(header: &[String], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<_> = cells.iter().map(|cell| inline(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = format!("|---|{}\n", "---:|".repeat(header.len().saturating_sub(1)));
    line(header) + &rule + &rows.into_iter().map(|row| line(&row)).collect::<String>()
}

fn header(first: &str, columns: &[Column]) -> Vec<String> {
    [first.to_owned()].into_iter().chain(columns.iter().map(|column| column.name.clone())).collect()
}

fn devices(columns: &[Column]) -> String {
    let header = ["device", "as its driver names it", "kind", "driver", "commit", "date"].map(String::from);
    let rows = columns.iter().map(|column| {
        let device = &column.device;
        let backend = format!("{}, {}", device.backend, device.driver);
        let commit = column.commit.clone().unwrap_or_default();
        // The day is enough for people.
        let date = column.date.split('T').next().unwrap_or_default().to_owned();
        vec![column.name.clone(), device.name.clone(), device.kind.clone(), backend, commit, date]
    });
    table(&header, rows).replace("---:|", "---|")
}

/// How many times as long as the baseline, and at which rate.
fn ratios(columns: &[Column], of: &Subject) -> String {
    let (names, baseline) = operations(columns, of);
    let mut rows: Vec<_> = names.iter().map(|name| row(name, columns, |column| ratio(column, of, name))).collect();
    let product = |column: &Column| column.operation(of, "matrix product")?.gigaflops;
    for name in ["fused, plain", "fused, CoPE"] {
        let share = |column: &Column| Some(column.operation(of, name)?.gigaflops? / product(column)?);
        if columns.iter().any(|column| share(column).is_some()) {
            let cell = |column: &Column| share(column).map(|share| format!("{:.0} %", 100.0 * share));
            rows.push(row(&format!("rate of *{name}* ÷ matrix product"), columns, cell));
        }
    }
    let baseline = inline(&baseline);
    format!("### {}\n\nTime ÷ {baseline}, and rate.\n\n", subject(of)) + &table(&header("operation", columns), rows)
}

fn row(name: &str, columns: &[Column], cell: impl Fn(&Column) -> Option<String>) -> Vec<String> {
    [name.to_owned()].into_iter().chain(columns.iter().map(|column| cell(column).unwrap_or_default())).collect()
}

fn ratio(column: &Column, subject: &Subject, name: &str) -> Option<String> {
    let operation = column.operation(subject, name)?;
    let rate = match (subject, operation.gigaflops) {
        // A decode step is bound by memory, whatever it computes.
        (Subject::Attention(sizes) | Subject::Variants(sizes), Some(giga)) if !sizes.is_decode() => {
            Some(format!("{giga:.1} GFLOP/s"))
        }
        (Subject::Projection(sizes), Some(giga)) if !sizes.is_decode() => Some(format!("{giga:.1} GFLOP/s")),
        _ => operation.gigabytes_per_second.map(|giga| format!("{giga:.1} GB/s")),
    };
    let ratio = number(operation.over_baseline, |ratio| format!("{ratio:.2}"));
    Some(rate.map_or(ratio.clone(), |rate| format!("{ratio} ({rate})")))
}

fn number(x: Option<f64>, told: impl Fn(f64) -> String) -> String {
    x.map_or(NO_NUMBER.to_owned(), told)
}

/// A table for each kind of work, if there is any.
fn first_results(columns: &[Column]) -> Vec<String> {
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for first in columns.iter().flat_map(|column| &column.first_results) {
        let kind = (first.work.as_str(), first.shader_cache.as_str());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let of = |(work, cache): (&str, &str)| {
        let find = |column: &Column| -> Option<FirstResult> {
            column.first_results.iter().find(|first| first.work == work && first.shader_cache == cache).cloned()
        };
        let mut names: Vec<String> = Vec::new();
        for Part(name, _) in columns.iter().filter_map(find).flat_map(|first| first.parts) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let part = |column: &Column, name: &str| {
            find(column)?.parts.iter().find(|part| part.0 == name).map(|part| number(part.1, seconds))
        };
        let mut rows: Vec<_> = names.iter().map(|name| row(name, columns, |column| part(column, name))).collect();
        rows.push(row("all", columns, |column| Some(number(find(column)?.seconds, seconds))));
        let (work, cache) = (inline(work), inline(cache));
        format!("### First result: {work}, {cache} shader cache\n\n") + &table(&header("part", columns), rows)
    };
    kinds.into_iter().map(of).collect()
}

/// The powers, the longest sequence and why there is none longer.
fn curves(column: &Column) -> String {
    let header = ["operation", "time", "memory", "fitted to", "longest", "takes", "and", "stopped"].map(String::from);
    let told = |exponent: Option<Exponent>| exponent.map_or(String::new(), |fitted| number(fitted.value, power));
    let rows = column.curves.iter().map(|curve| {
        let fitted = curve
            .time_exponent
            .map_or("fewer than three lengths".to_owned(), |fitted| format!("{} to {}", fitted.from, fitted.to));
        let longest = curve.points.last();
        let cell = |told: &dyn Fn(&Point) -> String| longest.map_or(String::new(), told);
        let stopped = curve.stopped.as_ref();
        vec![
            curve_label(&curve.subject, &curve.name),
            told(curve.time_exponent),
            told(curve.memory_exponent),
            fitted,
            cell(&|point| point.tokens.to_string()),
            cell(&|point| number(point.seconds, seconds)),
            cell(&|point| bytes(point.memory)),
            stopped.map_or(String::new(), |stop| format!("before {}: {}", stop.tokens, stop.reason)),
        ]
    });
    format!("### Curves: {}\n\n", inline(&column.name)) + &table(&header, rows)
}
