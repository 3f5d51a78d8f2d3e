//! A progress bar on standard error, if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use phasor_measure::Step;

/// A bar that follows the steps of a run and is gone when the run is over.
pub struct Bar(ProgressBar);

impl Bar {
    pub fn new() -> Self {
        let bar = ProgressBar::new(0);
        // The template is a constant; should it ever be wrong, indicatif's own does as well.
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    pub fn step(&self, step: Step<'_>) {
        self.0.set_length(step.total);
        self.0.set_position(step.done);
        self.0.set_message(step.name.to_owned());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
