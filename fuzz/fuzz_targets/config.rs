//! Config files and settings of ropes.
#![no_main]

#[path = "../entry/config.rs"]
mod config;

libfuzzer_sys::fuzz_target!(|text: &str| config::run(text));
