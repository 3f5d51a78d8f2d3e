//! Set-up, tests and the demo, each in one command: `cargo xtask --help`.

mod command;
mod need;
mod runner;
mod screen;
mod serve;
mod setup;
mod steps;
mod system;
mod tools;
mod vulkan;
mod web;

use std::process::ExitCode;

use command::Command;
use need::Need;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (name, rest) = match arguments.split_first() {
        Some((name, rest)) => (name.as_str(), rest),
        None => ("--help", &[][..]),
    };
    let outcome = match name {
        "demo" => demo(rest),
        "test" => runner::run(steps::all(), rest, "test"),
        "supply" => runner::run(steps::supply(), rest, "supply"),
        "setup" => setup::provide(&steps::needs(&steps::all())),
        "bench" => bench(rest),
        "web" => web::run(rest),
        "help" | "--help" | "-h" => {
            print!("{}", help());
            Ok(())
        }
        other => Err(format!("there is no `cargo xtask {other}`; `cargo xtask --help` lists what there is")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("\n{} {message}", screen::red("error:"));
            ExitCode::FAILURE
        }
    }
}

/// The command's demo on this machine's GPU, or else on a software GPU.
fn demo(arguments: &[String]) -> Result<(), String> {
    on_best_gpu("cargo run --release -p phasor-demo -- demo", arguments)
}

/// The benchmarks of the library, in full; `cargo xtask test bench` only tries that each of them works.
fn bench(arguments: &[String]) -> Result<(), String> {
    on_best_gpu("cargo bench -p phasor", arguments)
}

fn on_best_gpu(line: &str, arguments: &[String]) -> Result<(), String> {
    setup::provide(&[Need::Loader, Need::Driver])?;
    let mut command = Command::new(line).arguments(arguments);
    if std::env::var_os("XDG_RUNTIME_DIR").is_none() {
        let (name, value) = vulkan::NO_DEVICE_SELECTION;
        command = command.variable(name, value);
    }
    command.run()
}

fn help() -> String {
    let mut text = String::from(
        "\
Set-up, tests and the demo of phasor, each in one command.

Usage: cargo xtask COMMAND

Commands:
  demo [ARGUMENT…]   rotate the bundled activations on this machine's GPU, or else on a software GPU
  test [STEP…]       every check there is, or only the steps named; ends at the first that fails
  supply [STEP…]     what the library is built of: its licences, the oldest versions that do, known faults
  bench [ARGUMENT…]  the criterion benchmarks, in full
  web [--build-only] build the package for JavaScript and the page, and serve the page on localhost
  setup              only install what all of these need

Each first installs what it misses: on Debian and Ubuntu by apt-get (as root or with sudo), having said so;
elsewhere it says what to install.

Steps of `test`, in their order:
",
    );
    text += &listed(&steps::all());
    text += "\nSteps of `supply`:\n";
    text += &listed(&steps::supply());
    text
}

fn listed(steps: &[steps::Step]) -> String {
    steps.iter().map(|step| format!("  {:<18}  {}\n", step.name, step.about)).collect()
}
