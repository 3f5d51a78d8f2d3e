//! What is said to people.

use crate::Results;
use crate::comparison::{Clock, Comparison, Deviation, Outcome, Row, Table};
use crate::report::{columns, seconds};
use crate::task::{ATTENTION, Operation, POSITIONS, ROTATION, Task};

pub fn all(results: &Results) -> String {
    let device = &results.device;
    let versions = results.versions.iter().map(|(peer, version)| format!("{peer} {version}")).collect::<Vec<_>>();
    let mut text = format!("{} ({}, {})\n", device.name, device.backend, device.driver);
    text += &format!("phasor {}, {}\n", results.version, versions.join(", "));
    results.comparisons.iter().for_each(|comparison| text += &compared(comparison, results.clock));
    results.deviations.iter().for_each(|deviation| text += &deviated(deviation));
    text
}

/// The operation in a few words.
pub fn title(task: Task) -> String {
    let Task { operation, tokens, start } = task;
    let s = if tokens == 1 { "" } else { "s" };
    let at = if start > 0 { format!(" at position {start}") } else { String::new() };
    let [heads, channels] = ATTENTION;
    match operation {
        Operation::Rotation => {
            let [heads, kv_heads, channels] = ROTATION;
            format!("Rotation: {tokens} token{s}{at}, {heads} + {kv_heads} heads of {channels} channels, f32")
        }
        Operation::Attention => {
            format!("Attention: {tokens} tokens, causal, {heads} heads of {channels} channels, f32")
        }
        Operation::Cope => format!(
            "Attention with CoPE: {tokens} tokens, causal, {heads} heads of {channels} channels, {POSITIONS} positions, f32"
        ),
    }
}

fn compared(comparison: &Comparison, clock: Clock) -> String {
    let minimum = if clock == Clock::Processor { "processor" } else { "minimum" };
    let header = ["", "first result", minimum, "median", "spread", "host's clock", "x phasor"];
    table(comparison, &header, |times| {
        vec![
            seconds(times.first_result),
            seconds(times.time.minimum),
            seconds(times.time.median),
            seconds(times.time.spread),
            seconds(times.wall.minimum),
            format!("{:.2}", times.over_phasor),
        ]
    })
}

fn deviated(deviation: &Deviation) -> String {
    table(deviation, &["", "error against f64"], |largest| vec![format!("{:.1e}", largest.error)])
}

/// Numbers, or why there are none.
fn table<T>(of: &Table<T>, header: &[&str], numbers: impl Fn(&T) -> Vec<String>) -> String {
    let rows = of.rows.iter().map(|Row { name, outcome }| {
        let cells = match outcome {
            Outcome::Failed { problem } => vec![problem.clone()],
            Outcome::Done(done) => numbers(done),
        };
        [(*name).to_owned()].into_iter().chain(cells).collect()
    });
    let right: Vec<_> = (1..header.len()).collect();
    format!("\n{}\n\n{}", title(of.task), columns(header, rows, &right))
}
