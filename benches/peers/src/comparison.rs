//! Everyone on one task: times, round after round, and how far answers are from f64.

use crate::Failure;
use crate::contestant::{Arena, Contestant, Program};
use crate::peers::{Lap, Peer};
use crate::task::{Operation, Task};
use phasor_measure::bench::Statistics;
use serde::Serialize;

/// What came of a task for everyone who has the operation.
#[derive(Debug, Serialize)]
pub struct Table<T> {
    #[serde(flatten)]
    pub task: Task,
    pub rows: Vec<Row<T>>,
}

/// How long everyone takes.
pub type Comparison = Table<Times>;

/// How far everyone's answer is from f64.
pub type Deviation = Table<Largest>;

/// One of them.
#[derive(Debug, Serialize)]
pub struct Row<T> {
    pub name: &'static str,
    #[serde(flatten)]
    pub outcome: Outcome<T>,
}

/// Numbers, or why there are none.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome<T> {
    Done(T),
    Failed { problem: String },
}

#[derive(Debug, Serialize)]
pub struct Times {
    /// From the start of the process to numbers on the host, with nothing compiled before, in seconds.
    pub first_result: f64,
    /// By the clock of the whole run.
    pub time: Statistics,
    pub wall: Statistics,
    pub processor: Statistics,
    /// The minimum of `time` over that of phasor.
    pub over_phasor: f64,
}

#[derive(Debug, Serialize)]
pub struct Largest {
    /// The largest difference; inputs are from -1 to 1.
    pub error: f64,
}

/// Which of a lap's times counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// All threads of a process, for devices that are the processor.
    Processor,
    /// The host's clock, from the call to the end of the work.
    Wall,
}

impl<T> From<Result<T, String>> for Outcome<T> {
    fn from(result: Result<T, String>) -> Self {
        result.map_or_else(|problem| Self::Failed { problem }, Self::Done)
    }
}

/// Everyone who has the operation, phasor first.
fn everyone(operation: Operation) -> Vec<(&'static str, Program)> {
    let here = Program::Here;
    let (phasor, eager, compiled) = (here(Peer::Phasor), Program::PyTorch("eager"), Program::PyTorch("compiled"));
    match operation {
        Operation::Rotation => vec![
            ("phasor, wgpu", phasor),
            ("burn, wgpu", here(Peer::Burn)),
            ("candle, CPU", here(Peer::Candle)),
            ("PyTorch, eager", eager),
            ("PyTorch, compiled", compiled),
        ],
        Operation::Attention => vec![
            ("phasor, wgpu", phasor),
            ("burn, wgpu", here(Peer::Burn)),
            ("candle, CPU", here(Peer::Candle)),
            ("PyTorch, its fused kernel", eager),
        ],
        Operation::Cope => {
            vec![("phasor, wgpu", phasor), ("PyTorch, eager", eager), ("PyTorch, compiled", compiled)]
        }
    }
}

/// Starts everyone, one after the other, and then lets all run once in each round, so that all of them meet the same
/// machine.
pub fn compare(arena: &Arena, task: Task, rounds: u32, clock: Clock, tell: &dyn Fn(&str)) -> Comparison {
    let mut contestants: Vec<_> = everyone(task.operation)
        .into_iter()
        .map(|(name, program)| {
            tell(&format!("{name}: the first result"));
            (name, Contestant::start(arena, program, task).map(|contestant| (contestant, Vec::new())))
        })
        .collect();
    tell(&format!("{rounds} rounds"));
    for _ in 0..rounds {
        for (_, contestant) in &mut contestants {
            if let Ok((running, laps)) = contestant {
                match running.lap() {
                    Ok(lap) => laps.push(lap),
                    Err(problem) => *contestant = Err(problem),
                }
            }
        }
    }
    let mut rows: Vec<_> = contestants
        .into_iter()
        .map(|(name, outcome)| {
            let times = outcome.and_then(|(contestant, laps)| {
                times(contestant.first_result, &laps, clock).ok_or_else(|| "was not run".to_owned())
            });
            Row { name, outcome: times.into() }
        })
        .collect();
    relate(&mut rows);
    Table { task, rows }
}

fn times(first_result: f64, laps: &[Lap], clock: Clock) -> Option<Times> {
    let wall = Statistics::of(laps.iter().map(|lap| lap.wall))?;
    let processor = Statistics::of(laps.iter().map(|lap| lap.processor))?;
    let time = if clock == Clock::Wall { wall } else { processor };
    Some(Times { first_result, time, wall, processor, over_phasor: f64::NAN })
}

fn relate(rows: &mut [Row<Times>]) {
    let phasor = match rows.first().map(|row| &row.outcome) {
        Some(Outcome::Done(times)) => times.time.minimum,
        _ => f64::NAN,
    };
    for row in rows {
        if let Outcome::Done(times) = &mut row.outcome {
            times.over_phasor = times.time.minimum / phasor;
        }
    }
}

/// How far everyone's answer is from f64.
pub fn deviation(arena: &Arena, task: Task, tell: &dyn Fn(&str)) -> Result<Deviation, Failure> {
    let reference = task.reference()?;
    let row = |(name, program)| {
        tell(name);
        let answer = Contestant::start(arena, program, task).and_then(|mut contestant| contestant.answer());
        Row { name, outcome: answer.and_then(|answer| largest(&answer, &reference)).into() }
    };
    Ok(Table { task, rows: everyone(task.operation).into_iter().map(row).collect() })
}

fn largest(answer: &[f32], reference: &[f64]) -> Result<Largest, String> {
    if answer.len() != reference.len() {
        return Err(format!("{} numbers instead of {}", answer.len(), reference.len()));
    }
    let errors = answer.iter().zip(reference).map(|(a, r)| (f64::from(*a) - r).abs());
    // A NaN is no small error.
    Ok(Largest {
        error: errors.fold(0.0, |largest, error| if error > largest || error.is_nan() { error } else { largest }),
    })
}
