//! What fuzzing kept: no text makes the parsers panic, and what they accept makes sense.
#![cfg(feature = "config")]

#[path = "../fuzz/entry/config.rs"]
mod config;

use std::path::Path;

#[test]
fn the_corpus_is_answered_or_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/config");
    let mut inputs = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        config::run(&std::fs::read_to_string(&path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 10);
}
