//! The command `phasor`.

fn main() {}
