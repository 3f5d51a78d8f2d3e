//! What is said to people.

use crate::Results;
use crate::comparison::{Clock, Comparison, Deviation, Error, Outcome, Row};
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
    let rows = comparison.rows.iter().map(|Row { name, outcome }| match outcome {
        Outcome::Failed { problem } => vec![(*name).to_owned(), problem.clone()],
        Outcome::Done(times) => vec![
            (*name).to_owned(),
            seconds(times.first_result),
            seconds(times.time.minimum),
            seconds(times.time.median),
            seconds(times.time.spread),
            seconds(times.wall.minimum),
            format!("{:.2}", times.over_phasor),
        ],
    });
    format!("\n{}\n\n{}", title(comparison.task), columns(&header, rows, &[1, 2, 3, 4, 5, 6]))
}

fn deviated(deviation: &Deviation) -> String {
    let rows = deviation.rows.iter().map(|Error { name, outcome }| match outcome {
        Outcome::Failed { problem } => vec![(*name).to_owned(), problem.clone()],
        Outcome::Done(largest) => vec![(*name).to_owned(), format!("{:.1e}", largest.error)],
    });
    format!("\n{}\n\n{}", title(deviation.task), columns(&["", "error against f64"], rows, &[1]))
}
