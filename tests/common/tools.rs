//! Programs that check or compile shaders.

use std::path::{Path, PathBuf};

/// Where `cargo xtask test` puts the programs that it builds, each in a folder of its name.
const BUILT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/tools");

/// A tool on the path, or one that `cargo xtask test` has built. Tint is built from source and rarely there, so that no run
/// demands it.
pub fn find(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([Path::new(BUILT).join(tool)]);
    let found = folders.map(|folder| folder.join(tool)).find(|file| file.is_file());
    if found.is_none() {
        let required = std::env::var("PHASOR_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        assert!(!required || tool == "tint", "{tool} is not installed");
        println!("{tool} is not installed: this check was left out");
    }
    found
}

/// What a program printed.
pub fn said(output: &std::process::Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
