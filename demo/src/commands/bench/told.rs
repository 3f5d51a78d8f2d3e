//! What `phasor bench` says to people.

use super::Results;
use super::first::FirstResult;
use crate::report::{self, curve_label};
use phasor_measure::bench::{Curve, Exponent, Point};
use phasor_measure::{Curves, Device, Measurement, Timing};

pub fn all(results: &Results) -> String {
    let mut text = device(results).map(|device| format!("{} ({}, {})\n", device.name, device.backend, device.driver));
    let text = text.get_or_insert_default();
    if !results.first_results.is_empty() {
        *text += &first(&results.first_results);
    }
    results.measurements.iter().for_each(|measured| *text += &table(measured));
    results.curves.iter().for_each(|all| *text += &curves(all));
    std::mem::take(text)
}

fn device(results: &Results) -> Option<&Device> {
    let first = results.first_results.first().map(|first| &first.device);
    first
        .or(results.measurements.first().map(|measured| &measured.device))
        .or(results.curves.first().map(|curves| &curves.device))
}

/// One run.
fn table(measured: &Measurement) -> String {
    let clock = if measured.clock == "wall" { "host" } else { measured.clock };
    let title = report::subject(&measured.sizes);
    let title = format!("\n{title}; {} rounds, the {clock}'s clock\n\n", measured.rounds);
    let computes = measured.operations.iter().any(|timing| timing.flop.is_some());
    let rows = measured.operations.iter().map(|timing| row(timing, computes));
    let beside = format!("x {}", measured.baseline);
    let header = match computes {
        true => vec!["operation", "memory", "minimum", "median", "spread", "GB/s", "GFLOP/s", &beside],
        false => vec!["operation", "bytes", "minimum", "median", "spread", "GB/s", &beside],
    };
    let right: Vec<_> = (1..header.len()).collect();
    title + &report::columns(&header, rows, &right)
}

fn row(timing: &Timing, computes: bool) -> Vec<String> {
    let mut row = vec![
        timing.name.to_owned(),
        report::bytes(timing.memory.unwrap_or(timing.bytes)),
        report::seconds(timing.time.minimum),
        report::seconds(timing.time.median),
        report::seconds(timing.time.spread),
        format!("{:.1}", timing.gigabytes_per_second),
    ];
    if computes {
        row.push(timing.gigaflops.map_or(String::new(), |giga| format!("{giga:.1}")));
    }
    row.push(format!("{:.2}", timing.over_baseline));
    row
}

/// First results side by side, part by part.
fn first(results: &[FirstResult]) -> String {
    let header: Vec<_> =
        results.iter().map(|result| format!("{}, {}", result.work.told(), result.shader_cache)).collect();
    let header: Vec<_> = ["part"].into_iter().chain(header.iter().map(String::as_str)).collect();
    let parts = results.first().map_or(&[][..], |result| &result.parts);
    let row = |name: &str, seconds: &dyn Fn(&FirstResult) -> f64| {
        let cells = results.iter().map(|result| report::seconds(seconds(result)));
        [name.to_owned()].into_iter().chain(cells).collect::<Vec<_>>()
    };
    let rows = parts
        .iter()
        .enumerate()
        .map(|(i, (name, _))| row(name, &|result| result.parts.get(i).map_or(f64::NAN, |(_, seconds)| *seconds)));
    let rows = rows.chain([row("all", &|result| result.seconds)]);
    let right: Vec<_> = (1..header.len()).collect();
    "\nFirst result, from the start of a process, by its shader cache\n\n".to_owned()
        + &report::columns(&header, rows, &right)
}

/// A line for each length, and the powers beneath.
fn curves(all: &Curves) -> String {
    let sizes = &all.sizes;
    let mut text = format!(
        "\nCurves: {} over {} heads of {} channels, {} positions, f32, causal; minima of {} rounds, the {}'s clock\n\n",
        sizes.heads,
        sizes.kv_heads,
        sizes.head_dim,
        sizes.positions,
        sizes.rounds,
        if all.clock == "wall" { "host" } else { all.clock },
    );
    let labels: Vec<_> = all.curves.iter().map(|curve| curve_label(curve.subject, curve.name)).collect();
    let header: Vec<_> = ["tokens"].into_iter().chain(labels.iter().map(String::as_str)).collect();
    let mut lengths: Vec<_> = all.curves.iter().flat_map(|curve| &curve.points).map(|point| point.tokens).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let mut rows: Vec<_> = lengths
        .into_iter()
        .map(|tokens| {
            line(&all.curves, &tokens.to_string(), |curve| {
                curve.points.iter().find(|point| point.tokens == tokens).map(at)
            })
        })
        .collect();
    let fitted = all.curves.iter().any(|curve| curve.time_exponent.is_some());
    if fitted {
        rows.push(line(&all.curves, "time", |curve| curve.time_exponent.map(power)));
        rows.push(line(&all.curves, "memory", |curve| curve.memory_exponent.map(power)));
    }
    let right: Vec<_> = (0..header.len()).collect();
    text += &report::columns(&header, rows, &right);
    if !fitted {
        text += "\nno powers: they are fitted to three lengths or more";
    }
    let stops = all.curves.iter().filter_map(|curve| Some((curve, curve.stopped.as_ref()?)));
    text.extend(stops.map(|(curve, stop)| {
        format!("\n{} stops before {} tokens: {}", curve_label(curve.subject, curve.name), stop.tokens, stop.reason)
    }));
    text + "\n"
}

fn line(curves: &[Curve], name: &str, cell: impl Fn(&Curve) -> Option<String>) -> Vec<String> {
    [name.to_owned()].into_iter().chain(curves.iter().map(|curve| cell(curve).unwrap_or_default())).collect()
}

fn at(point: &Point) -> String {
    let split = if point.dispatches > 1 { format!(" ({} dispatches)", point.dispatches) } else { String::new() };
    format!("{}, {}{split}", report::seconds(point.seconds), report::bytes(point.memory))
}

/// `n^1.97 from 2048 on`.
fn power(exponent: Exponent) -> String {
    format!("{} from {} on", report::power(exponent.value), exponent.from)
}
