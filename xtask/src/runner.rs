//! `cargo xtask test` and `cargo xtask supply`: runs steps one after the other to the first failure, and closes with a
//! table and a verdict.

use std::time::{Duration, Instant};

use crate::command::Command;
use crate::screen;
use crate::setup;
use crate::steps::{self, Step};

/// The row before the steps' own.
const SET_UP: &str = "set-up";

/// How a row of the closing table ended.
enum Outcome {
    Passed(Duration),
    Failed(Duration, String),
    DoesNotApply(&'static str),
    NotReached,
}

/// Runs the steps named, or all of them; `command` is what they belong to.
pub fn run(steps: Vec<Step>, names: &[String], command: &str) -> Result<(), String> {
    let start = Instant::now();
    let steps = chosen(steps, names)?;
    let mut rows = vec![(SET_UP, attempt(0, steps.len(), SET_UP, || setup::provide(&steps::needs(&steps))))];
    let mut built = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        let failed = rows.iter().any(|(_, outcome)| matches!(outcome, Outcome::Failed(..)));
        let outcome = match step.applies() {
            Err(reason) => Outcome::DoesNotApply(reason),
            Ok(()) if failed => Outcome::NotReached,
            Ok(()) => attempt(i + 1, steps.len(), &format!("{}: {}", step.name, step.about), || {
                let outcome = build(step, &mut built).and_then(|()| step.commands()?.iter().try_for_each(Command::run));
                outcome.map_err(|message| match step.advice {
                    Some(advice) => format!("{message}\n{advice}"),
                    None => message,
                })
            }),
        };
        rows.push((step.name, outcome));
    }
    verdict(&rows, start.elapsed(), command)
}

/// The steps of these names, in the list's own order; all for no name.
fn chosen(mut steps: Vec<Step>, names: &[String]) -> Result<Vec<Step>, String> {
    if let Some(unknown) = names.iter().find(|name| steps.iter().all(|step| step.name != **name)) {
        let known: Vec<&str> = steps.iter().map(|step| step.name).collect();
        return Err(format!("there is no step `{unknown}`; the steps are {}", known.join(", ")));
    }
    steps.retain(|step| names.is_empty() || names.iter().any(|name| name == step.name));
    Ok(steps)
}

/// Builds what a step works on, as far as no step before it has: `built` are the commands that have passed in this run.
fn build(step: &Step, built: &mut Vec<Command>) -> Result<(), String> {
    for command in step.build_commands()? {
        if !built.contains(&command) {
            command.run()?;
            built.push(command);
        }
    }
    Ok(())
}

fn attempt(number: usize, count: usize, title: &str, work: impl FnOnce() -> Result<(), String>) -> Outcome {
    println!("\n{}", screen::bold(&format!("[{number}/{count}] {title}")));
    let start = Instant::now();
    match work() {
        Ok(()) => Outcome::Passed(start.elapsed()),
        Err(message) => Outcome::Failed(start.elapsed(), message),
    }
}

/// Prints the table; an error, naming the step and how to run it alone, if one failed.
fn verdict(rows: &[(&str, Outcome)], total: Duration, command: &str) -> Result<(), String> {
    println!("\n{}", screen::bold(&format!("{:<20} {:>12}  outcome", "step", "time")));
    for (name, outcome) in rows {
        let (time, word) = match outcome {
            Outcome::Passed(time) => (screen::duration(*time), screen::green("passed")),
            Outcome::Failed(time, _) => (screen::duration(*time), screen::red("FAILED")),
            Outcome::DoesNotApply(reason) => (String::new(), screen::dim(&format!("does not apply: {reason}"))),
            Outcome::NotReached => (String::new(), screen::yellow("not reached")),
        };
        println!("{name:<20} {time:>12}  {word}");
    }
    let failure = rows.iter().find_map(|(name, outcome)| match outcome {
        Outcome::Failed(_, message) => Some((name, message)),
        _ => None,
    });
    let total = screen::duration(total);
    let ran = rows.iter().any(|(name, outcome)| *name != SET_UP && matches!(outcome, Outcome::Passed(_)));
    match failure {
        None if ran => {
            println!("\n{} in {total}", screen::green("Every step that applies here has passed,"));
            Ok(())
        }
        None => Err("none of these steps applies here: nothing was checked".to_owned()),
        Some((&SET_UP, message)) => Err(message.clone()),
        Some((name, message)) => Err(format!(
            "step `{name}` failed, after {total} in all: {message}\nAlone again: cargo xtask {command} {name}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_chosen_by_name_and_keep_their_order() {
        let names = |chosen: Vec<Step>| chosen.iter().map(|step| step.name).collect::<Vec<_>>();
        let asked = ["lavapipe".to_owned(), "fmt".to_owned()];
        assert_eq!(names(chosen(steps::all(), &asked).unwrap()), ["fmt", "lavapipe"]);
        assert_eq!(chosen(steps::all(), &[]).unwrap().len(), steps::all().len());
        let Err(message) = chosen(steps::all(), &["tset".to_owned()]) else {
            panic!("a name that is not there was taken")
        };
        assert!(message.contains("`tset`") && message.contains("swiftshader"));
    }

    #[test]
    fn a_failure_is_an_error_that_says_how_to_repeat_it() {
        let failed = Outcome::Failed(Duration::ZERO, "`cargo fmt` ended with 1".to_owned());
        let message =
            verdict(&[(SET_UP, Outcome::Passed(Duration::ZERO)), ("fmt", failed)], Duration::ZERO, "test").unwrap_err();
        assert!(message.contains("cargo xtask test fmt"));
    }

    #[test]
    fn a_run_that_checked_nothing_has_not_passed() {
        let row = |outcome| [(SET_UP, Outcome::Passed(Duration::ZERO)), ("verify-gpu", outcome)];
        assert!(verdict(&row(Outcome::DoesNotApply("no GPU of its own")), Duration::ZERO, "test").is_err());
        assert!(verdict(&row(Outcome::Passed(Duration::ZERO)), Duration::ZERO, "test").is_ok());
    }
}
