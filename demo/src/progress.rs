//! How far a longer run is, on standard error: a bar if that is a terminal, else a line wherever a step takes long.

use crate::failure;
use indicatif::{ProgressBar, ProgressStyle};
use phasor_measure::Step;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a step may take before a line says that it does.
const SILENCE: Duration = Duration::from_secs(5);

/// A bar that follows the steps of a run and is gone when the run is over.
pub struct Bar {
    bar: ProgressBar,
    /// Who watches over silence, where no bar is to be seen.
    steps: Option<Sender<String>>,
}

impl Bar {
    pub fn new() -> Self {
        let bar = ProgressBar::new(0);
        // The template is a constant; should it ever be wrong, indicatif's own does as well.
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}") {
            bar.set_style(style);
        }
        let steps = bar.is_hidden().then(|| {
            let (send, receive) = channel();
            thread::spawn(move || watch(&receive, SILENCE, failure::say));
            send
        });
        Self { bar, steps }
    }

    pub fn step(&self, step: Step<'_>) {
        self.bar.set_length(step.total);
        self.bar.set_position(step.done);
        self.bar.set_message(step.name.to_owned());
        if let Some(steps) = &self.steps {
            // Fails if the watch has ended, which it does with the bar.
            let _ = steps.send(step.name.to_owned());
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Says what is being done whenever nothing new has begun for so long, until no step can come any more.
fn watch(steps: &Receiver<String>, silence: Duration, say: impl Fn(&str)) {
    let Ok(mut step) = steps.recv() else { return };
    let mut began = Instant::now();
    loop {
        match steps.recv_timeout(silence) {
            Ok(next) => (step, began) = (next, Instant::now()),
            Err(RecvTimeoutError::Timeout) => say(&format!("{step}: {} s so far", began.elapsed().as_secs())),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_step_that_takes_long_is_said() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let (send, receive) = channel();
        let watched = {
            let said = said.clone();
            let say = move |line: &str| said.lock().unwrap().push(line.to_owned());
            thread::spawn(move || watch(&receive, Duration::from_millis(200), say))
        };
        for step in ["quick", "quick too", "compiling kernels"] {
            send.send(step.to_owned()).unwrap();
        }
        thread::sleep(Duration::from_millis(500));
        drop(send);
        watched.join().unwrap();
        let said = said.lock().unwrap();
        assert!(!said.is_empty() && said.iter().all(|line| line.starts_with("compiling kernels: ")), "{said:?}");
    }
}
