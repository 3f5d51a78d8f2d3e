//! `dxc`, Microsoft's HLSL compiler, for systems that have it in no package: its command line, as far as the tests use it,
//! over its library, which lies beside this program.
//!
//! Usage: `dxc OPTION… -Fo OUTPUT INPUT`; the options are dxc's.

mod library;

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut options: Vec<String>) -> Result<(), String> {
    let (output, input) = match options.as_slice() {
        [.., flag, output, input] if flag == "-Fo" => (output.clone(), input.clone()),
        _ => return Err("usage: dxc OPTION… -Fo OUTPUT INPUT".to_owned()),
    };
    options.truncate(options.len() - 3);
    options.push(input.clone());

    let text = std::fs::read_to_string(&input).map_err(|error| format!("{input}: {error}"))?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let library = program.with_file_name(format!("{DLL_PREFIX}dxcompiler{DLL_SUFFIX}"));
    let binary = library::compile(&library, &text, &options)?;
    std::fs::write(&output, binary).map_err(|error| format!("{output}: {error}"))
}
