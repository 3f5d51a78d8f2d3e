//! Set-up, tests and the demo, each in one command.

fn main() {}
