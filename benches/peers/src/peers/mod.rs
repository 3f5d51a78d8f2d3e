//! Who computes, in a process of its own that answers on standard output.

mod burn;
mod candle;
mod phasor;

use crate::Failure;
use crate::task::Task;
use clap::ValueEnum;
use phasor_measure::bench::processor_time;
use serde::{Deserialize, Serialize};
use std::io::{Write, stdin, stdout};
use std::time::Instant;

/// Who computes in this program; PyTorch is a script's affair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Peer {
    Phasor,
    Burn,
    Candle,
}

/// A task whose tensors are where they are needed.
pub trait Prepared {
    /// Computes it once, and waits for the end.
    fn run(&mut self) -> Result<(), Failure>;

    /// What the last run gave, on the host, in the order of [`Task::reference`].
    fn answer(&self) -> Result<Vec<f32>, Failure>;
}

/// How long a run took, in seconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Lap {
    pub wall: f64,
    /// The time of all of the process's threads on a processor.
    pub processor: f64,
}

/// Gets the first result and says `ready`; then, for each line that comes in, runs once more for `lap` and says how long
/// that took, or says for `answer` what the first result was.
pub fn serve(peer: Peer, task: Task, adapter: &str) -> Result<(), Failure> {
    let mut prepared: Box<dyn Prepared> = match peer {
        Peer::Phasor => Box::new(phasor::prepare(task)?),
        Peer::Burn => burn::prepare(task, adapter)?,
        Peer::Candle => candle::prepare(task)?,
    };
    prepared.run()?;
    let answer = prepared.answer()?;
    say("ready")?;
    for request in stdin().lines() {
        match request?.as_str() {
            "answer" => say(&serde_json::to_string(&answer)?)?,
            _ => say(&serde_json::to_string(&lap(&mut *prepared)?)?)?,
        }
    }
    Ok(())
}

fn lap(prepared: &mut dyn Prepared) -> Result<Lap, Failure> {
    let (used, begin) = (processor_time(), Instant::now());
    prepared.run()?;
    let wall = begin.elapsed().as_secs_f64();
    let processor = processor_time().zip(used).map(|(now, before)| now - before);
    Ok(Lap { wall, processor: processor.ok_or("this system tells no processor time")? })
}

fn say(line: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
