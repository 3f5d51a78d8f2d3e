//! Tells the command which commit it was built from, so that its results name it wherever it is carried: `PHASOR_COMMIT`
//! if that is set, else what git says, with `-dirty` for sources that were changed since.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=PHASOR_COMMIT");
    // What the binary is made of: a change of it may make the sources dirty or clean again.
    for path in ["src", "build.rs", "Cargo.toml", "../measure", "../src", "../shaders", "../Cargo.lock"] {
        println!("cargo::rerun-if-changed={path}");
    }
    // A commit changes none of those; it adds a line here.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| std::path::Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
    let given = std::env::var("PHASOR_COMMIT").ok().filter(|commit| !commit.is_empty());
    if let Some(commit) = given.or_else(|| git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])) {
        println!("cargo::rustc-env=PHASOR_COMMIT={commit}");
    }
}

/// What git prints; `None` where there is no git, or no repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
}
