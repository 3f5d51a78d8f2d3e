//! What fuzzing kept: each input is answered or refused, on the CPU and on the device alike.

mod common;

#[path = "../../fuzz/entry/command.rs"]
mod command;

use common::{Scratch, phasor};
use std::path::Path;

#[test]
fn the_corpus_is_answered_or_refused() {
    let scratch = Scratch::new();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/command");
    let mut inputs: Vec<_> = std::fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    assert!(inputs.len() > 10, "{inputs:?}");
    for input in inputs {
        let arguments = command::prepared(&std::fs::read(&input).unwrap(), scratch.path());
        let arguments = arguments.unwrap_or_else(|| panic!("{} is no input", input.display()));
        let arguments: Vec<_> = arguments.iter().map(String::as_str).skip(1).collect();
        let on_device: Vec<_> = arguments.iter().copied().filter(|&argument| argument != "--cpu").collect();
        let codes = [arguments, on_device].map(|arguments| {
            let output = phasor(scratch.path(), &arguments);
            let code = output.status.code();
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(matches!(code, Some(0..=2)), "{}, {arguments:?}: {code:?}: {error}", input.display());
            (code, error)
        });
        assert_eq!(codes[0].0, codes[1].0, "{}: {codes:?}", input.display());
    }
}
