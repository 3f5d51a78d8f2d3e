//! The command `phasor`.

use std::process::ExitCode;

fn main() -> ExitCode {
    phasor_demo::run(std::env::args_os())
}
