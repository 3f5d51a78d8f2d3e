//! `phasor-bindgen MODULE.wasm OUT NAME`: from a module that uses wasm-bindgen, what a page loads: NAME.js, its types, and
//! the finished module.

use std::process::ExitCode;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, out, name] = arguments.as_slice() else {
        eprintln!("usage: phasor-bindgen MODULE.wasm OUT NAME");
        return ExitCode::FAILURE;
    };
    let mut bindgen = Bindgen::new();
    let written = bindgen
        .input_path(module)
        .out_name(name)
        .typescript(true)
        .web(true)
        .and_then(|bindgen| bindgen.omit_default_module_path(false).generate(out));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{module}: {error:?}");
            ExitCode::FAILURE
        }
    }
}
