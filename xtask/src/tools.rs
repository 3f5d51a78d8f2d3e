//! Programs that no package of the system has, built here: each in a folder of its own under `target/tools`,
//! with its version, so that another one is made anew.

use std::path::PathBuf;

use crate::command::Command;

/// Where cargo puts what is built of them.
const BUILDS: &str = "target/tools/builds";

/// The package of Python's that has DXC's library; `xtask/dxc/requirements.txt` says the same, with its digest.
const COMPUSHADY: &str = "0.17.5";

const DENY: &str = "0.20.2";

/// Direct3D's compiler, once it is made.
pub fn dxc() -> String {
    format!("{}/dxc", dxc_folder())
}

fn dxc_folder() -> String {
    format!("target/tools/dxc-{COMPUSHADY}")
}

/// The checker of what the library is built of, once it is made.
pub fn cargo_deny() -> String {
    format!("{}/bin/cargo-deny", deny_folder())
}

fn deny_folder() -> String {
    format!("target/tools/cargo-deny-{DENY}")
}

/// One of these, if it is made.
pub fn made(program: &str) -> Option<PathBuf> {
    let file = PathBuf::from(format!("{program}{}", std::env::consts::EXE_SUFFIX));
    Some(file).filter(|file| file.is_file())
}

/// Makes `dxc` of its library, which a package of Python's has for Linux, and of `xtask/dxc`.
pub fn make_dxc() -> Result<(), String> {
    let processor = std::env::consts::ARCH;
    if !["x86_64", "aarch64"].contains(&processor) {
        return Err(format!("there is no DXC for {processor}; without it run the other steps, each by its name"));
    }
    let (downloads, folder) = ("target/tools/downloads", dxc_folder());
    std::fs::create_dir_all(&folder).map_err(|error| format!("{folder}: {error}"))?;
    let download = "python3 -m pip download --no-deps --no-binary :all: --require-hashes";
    Command::new(&format!("{download} --dest {downloads} --requirement xtask/dxc/requirements.txt")).run()?;
    let archive = format!("{downloads}/compushady-{COMPUSHADY}.tar.gz");
    let library = format!("compushady-{COMPUSHADY}/compushady/backends/libdxcompiler_{processor}.so.3.7");
    let unpack = format!("tar --extract --file {archive} --directory {folder} --strip-components 3 {library}");
    Command::new(&unpack).run()?;
    Command::new(&format!("cargo build --release --locked --manifest-path xtask/dxc/Cargo.toml --target-dir {BUILDS}"))
        .run()?;
    place(&format!("{folder}/libdxcompiler_{processor}.so.3.7"), &format!("{folder}/libdxcompiler.so"))?;
    place(&format!("{BUILDS}/release/dxc"), &dxc())
}

/// Builds cargo-deny, in some minutes.
pub fn make_cargo_deny() -> Result<(), String> {
    Command::new(&format!("cargo install cargo-deny --version {DENY} --locked"))
        .arguments(&["--root", &deny_folder(), "--target-dir", BUILDS])
        .run()
}

fn place(from: &str, to: &str) -> Result<(), String> {
    std::fs::rename(from, to).map_err(|error| format!("{from} cannot become {to}: {error}"))
}
