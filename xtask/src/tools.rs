//! Programs that no package of the system has, built here: each in a folder of its own under `target/tools`.

use std::path::{Path, PathBuf};

use crate::command::Command;
use crate::need;

/// Where cargo puts what is built of them.
const BUILDS: &str = "target/tools/builds";

/// Direct3D's compiler: the machine's own, or the one made here.
pub fn dxc() -> Option<PathBuf> {
    need::on_path("dxc").or_else(|| built("dxc"))
}

/// Where the checker of what the library is built of lies, once it is made.
pub const CARGO_DENY: &str = "target/tools/cargo-deny/bin/cargo-deny";

/// That checker.
pub fn cargo_deny() -> Option<PathBuf> {
    Some(PathBuf::from(CARGO_DENY)).filter(|path| path.is_file())
}

fn built(name: &str) -> Option<PathBuf> {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    Some(Path::new("target/tools").join(name).join(file)).filter(|path| path.is_file())
}

/// Makes `dxc` of its library, which a package of Python's has for Linux, and of `xtask/dxc`.
pub fn make_dxc() -> Result<(), String> {
    let processor = std::env::consts::ARCH;
    if !cfg!(target_os = "linux") || !["x86_64", "aarch64"].contains(&processor) {
        return Err("`dxc` is not on the PATH: the Vulkan SDK has it".to_owned());
    }
    let (downloads, folder) = ("target/tools/downloads", "target/tools/dxc");
    std::fs::create_dir_all(folder).map_err(|error| format!("{folder}: {error}"))?;
    let download = "python3 -m pip download --no-deps --no-binary :all: --require-hashes";
    Command::new(&format!("{download} --dest {downloads} --requirement xtask/dxc/requirements.txt")).run()?;
    let archive = format!("{downloads}/compushady-0.17.5.tar.gz");
    let library = format!("compushady-0.17.5/compushady/backends/libdxcompiler_{processor}.so.3.7");
    let unpack = format!("tar --extract --file {archive} --directory {folder} --strip-components 3 {library}");
    Command::new(&unpack).run()?;
    Command::new(&format!("cargo build --release --locked --manifest-path xtask/dxc/Cargo.toml --target-dir {BUILDS}"))
        .run()?;
    place(&format!("{folder}/libdxcompiler_{processor}.so.3.7"), &format!("{folder}/libdxcompiler.so"))?;
    place(&format!("{BUILDS}/release/dxc"), &format!("{folder}/dxc"))
}

/// Builds cargo-deny, in some minutes.
pub fn make_cargo_deny() -> Result<(), String> {
    Command::new("cargo install cargo-deny --version 0.20.2 --locked")
        .arguments(&["--root", "target/tools/cargo-deny", "--target-dir", BUILDS])
        .run()
}

fn place(from: &str, to: &str) -> Result<(), String> {
    std::fs::rename(from, to).map_err(|error| format!("{from} cannot become {to}: {error}"))
}
