//! Set-up: sees what is there and installs what is not, having said so; nothing is ever installed twice.

use crate::command::Command;
use crate::need::{Need, on_path};
use crate::screen;
use crate::system::System;

/// Sees to it that all of these are there. An error says what the user must do.
pub fn provide(needs: &[Need]) -> Result<(), String> {
    let missing = report(needs);
    if missing.is_empty() {
        return Ok(());
    }
    let missing = try_components(missing);
    let (made, missing): (Vec<Need>, Vec<Need>) = missing.into_iter().partition(|need| need.recipe().is_some());
    let (components, packages): (Vec<Need>, Vec<Need>) =
        missing.into_iter().partition(|need| need.component().is_some() && on_path("rustup").is_some());
    if !components.is_empty() {
        let names: Vec<&str> = components.iter().filter_map(|need| need.component()).collect();
        Command::new("rustup component add").arguments(&names).run()?;
    }
    if !packages.is_empty() {
        install(&packages)?;
    }
    made.iter().filter_map(|need| need.recipe()).try_for_each(|make| make())?;
    match needs.iter().find(|need| need.found().is_none()) {
        None => Ok(()),
        Some(need) => Err(format!("{} is still not to be found after it was installed", need.name())),
    }
}

/// What is still missing after rustup has been asked for what it may have, where there is another way if it has not.
fn try_components(missing: Vec<Need>) -> Vec<Need> {
    let names: Vec<&str> = missing.iter().filter_map(|need| need.optional_component()).collect();
    if names.is_empty() || on_path("rustup").is_none() {
        return missing;
    }
    let command = Command::new("rustup component add").arguments(&names);
    if let Err(message) = command.run() {
        println!("{} {message}; there is another way", screen::yellow("warning:"));
    }
    missing.into_iter().filter(|need| need.found().is_none()).collect()
}

/// Prints where each need is found, or what the missing ones are for; those are returned.
fn report(needs: &[Need]) -> Vec<Need> {
    let mut missing = Vec::new();
    for &need in needs {
        match need.found() {
            Some(place) => println!("  {}    {:<17}  {}", screen::green("found"), need.name(), screen::dim(&place)),
            None => {
                println!("  {}  {:<17}  {}", screen::yellow("missing"), need.name(), need.purpose());
                missing.push(need);
            }
        }
    }
    missing
}

/// Installs the packages of these needs by apt-get, or says how to.
fn install(needs: &[Need]) -> Result<(), String> {
    let system = System::here();
    let mut packages: Vec<&str> = needs.iter().map(|need| need.package(system)).collect();
    packages.sort_unstable();
    packages.dedup();
    let advice = system.advice(&packages);
    if !matches!(system, System::Debian | System::Ubuntu) {
        return Err(format!("something is missing. Install it, then try again:\n    {advice}"));
    }
    let Some(as_root) = as_root() else {
        return Err(format!("installing needs root or sudo. As root, run\n    {advice}\nthen try again"));
    };
    println!("Installing (this can take some minutes): {}", screen::bold(&format!("{as_root}{advice}")));
    // One archive that cannot be reached, out of several, fails the update and yet may not matter.
    if let Err(message) = Command::new(&format!("{as_root}apt-get -qq update")).run_quietly() {
        println!("{} {message}; trying on", screen::yellow("warning:"));
    }
    let install = format!("{as_root}env DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends");
    Command::new(&install).arguments(&packages).run_quietly()
}

/// What to put before a command so that it runs as root; `None` where there is no way.
fn as_root() -> Option<&'static str> {
    if Command::new("id -u").output().as_deref() == Some("0") { Some("") } else { on_path("sudo").map(|_| "sudo ") }
}
