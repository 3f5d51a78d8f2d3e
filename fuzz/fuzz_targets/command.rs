//! The command, its options and the files that it reads.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use std::sync::LazyLock;

#[path = "../entry/command.rs"]
mod command;

static DIRECTORY: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory can be made"));

fuzz_target!(|data: &[u8]| -> Corpus {
    let Some(arguments) = command::prepared(data, DIRECTORY.path()) else { return Corpus::Reject };
    phasor_demo::run(arguments);
    Corpus::Keep
});
