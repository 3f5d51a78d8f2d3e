//! The package for JavaScript and the page: building them, and serving a folder to a browser.

use std::path::{Path, PathBuf};

use crate::command::Command;
use crate::need::{self, Need};
use crate::serve;
use crate::setup;

/// What the build needs beside Rust's compiler for this machine.
pub const NEEDS: [Need; 4] = [Need::WasmCompiler, Need::WasmSources, Need::Node, Need::Npm];

/// Where wasm-bindgen's work lies before the package is made of it.
const GENERATED: &str = "web/target/generated";

/// The same of the f64 reference.
const GENERATED_REFERENCE: &str = "web/target/generated-reference";

/// Where the kernels' text goes that the example without WebAssembly loads.
const KERNELS: &str = "web/examples/plain-wgsl/kernels";

/// Where wasm-bindgen's work for the page's own module lies.
const GENERATED_FOR_PAGE: &str = "web/target/generated-page";

/// The page, put together.
const SITE: &str = "web/site";

/// The folders that a browser sees: examples beside the page.
const ROOT: &str = "web";

/// `cargo xtask web`: builds the package and the page and serves the page; with `--build-only` it only builds.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let build_only = match arguments {
        [] => false,
        [only] if only == "--build-only" => true,
        _ => return Err("usage: cargo xtask web [--build-only]".to_owned()),
    };
    setup::provide(&NEEDS)?;
    package()?.iter().chain(&page()?).try_for_each(Command::run)?;
    if build_only {
        return Ok(());
    }
    serve::folder(Path::new(ROOT), "site/")
}

/// The commands that build the package into `web/pkg`, and what its examples need, in their order.
pub fn package() -> Result<Vec<Command>, String> {
    let mut commands = Vec::new();
    if !is_installed() {
        commands.push(Command::new("npm ci --prefix web"));
    }
    commands.extend(module("phasor-web", &["device"], GENERATED, "phasor")?);
    commands.extend(module("phasor-web", &["reference"], GENERATED_REFERENCE, "reference")?);
    commands.push(Command::new(&format!("node web/finish.mjs {GENERATED} {GENERATED_REFERENCE}")));
    commands.push(Command::new(&format!("cargo run --release --quiet -p phasor-demo -- shaders --emit {KERNELS}")));
    Ok(commands)
}

/// The commands that put the page together in `web/site`, once the package is there.
pub fn page() -> Result<Vec<Command>, String> {
    let mut commands = module("phasor-web-measure", &[], GENERATED_FOR_PAGE, "measure")?;
    commands.push(Command::new(&format!("node web/page/build.mjs {GENERATED_FOR_PAGE} {SITE}")));
    Ok(commands)
}

/// The commands that make a WebAssembly module of a crate with some of its features, and its JavaScript.
fn module(package: &str, features: &[&str], out: &str, name: &str) -> Result<Vec<Command>, String> {
    let compiler = Compiler::here().ok_or("there is no compiler for WebAssembly")?;
    let module = package.replace('-', "_");
    let module = format!("{}/wasm32-unknown-unknown/release/{module}.wasm", compiler.target_dir());
    let bindgen = format!(
        "cargo run --quiet --manifest-path web/Cargo.toml --target-dir web/target -p phasor-bindgen -- {module} {out} {name}"
    );
    Ok(vec![
        compiler.command(package).arguments(&["--no-default-features", "--features", &features.join(",")]),
        Command::new(&bindgen),
    ])
}

/// Whether the packages of the lock file are there: npm leaves a copy of it beside them.
fn is_installed() -> bool {
    let changed = |path: &str| std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    match (changed("web/node_modules/.package-lock.json"), changed("web/package-lock.json")) {
        (Some(installed), Some(locked)) => installed >= locked,
        _ => false,
    }
}

/// A compiler that has its standard library's sources.
enum Compiler {
    /// The toolchain that everything else is built with, with rustup's component `rust-src`.
    Own,
    /// Debian's `rustc-web`, for where rustup's servers cannot be reached, with a linker.
    Debians(PathBuf),
}

const DEBIANS: &str = "/usr/bin/rustc";

impl Compiler {
    fn here() -> Option<Self> {
        let own = sysroot("rustc")?;
        if has_sources(&own) {
            return Some(Self::Own);
        }
        let version = Command::new("rustc --version --verbose").output()?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "))?;
        let linkers = [Some(own.join("lib/rustlib").join(host).join("bin/rust-lld")), need::on_path("wasm-ld-22")];
        let linker = linkers.into_iter().flatten().find(|path| path.is_file())?;
        has_sources(&sysroot(DEBIANS)?).then_some(Self::Debians(linker))
    }

    /// This compiler builds other build scripts than the other one does: each has a folder of its own.
    fn target_dir(&self) -> &'static str {
        match self {
            Self::Own => "web/target",
            Self::Debians(_) => "web/target/debian",
        }
    }

    /// Compiles the module with a standard library of its own: the one that compilers bring is made for speed, and
    /// carries the words of every panic.
    fn command(&self, package: &str) -> Command {
        let command = Command::new("cargo build --release --manifest-path web/Cargo.toml")
            .arguments(&["--package", package])
            .arguments(&["--target", "wasm32-unknown-unknown", "--target-dir", self.target_dir()])
            .arguments(&["-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"])
            .arguments(&["-Zpanic-immediate-abort"])
            // The flags that begin with -Z, of a stable compiler.
            .variable("RUSTC_BOOTSTRAP", "1")
            .variable("RUSTFLAGS", "-Zlocation-detail=none")
            .variable("CARGO_PROFILE_RELEASE_PANIC", "immediate-abort");
        match self {
            Self::Own => command,
            Self::Debians(linker) => command
                .variable("RUSTC", DEBIANS)
                .variable("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", &linker.to_string_lossy()),
        }
    }
}

fn sysroot(compiler: &str) -> Option<PathBuf> {
    Command::new(compiler).arguments(&["--print", "sysroot"]).output().map(PathBuf::from)
}

fn has_sources(sysroot: &Path) -> bool {
    sysroot.join("lib/rustlib/src/rust/library/Cargo.lock").is_file()
}

/// The compiler that makes WebAssembly here.
pub fn compiler() -> Option<String> {
    if sysroot("rustc").is_some_and(|own| has_sources(&own)) {
        return Some("rustc, as for everything else".to_owned());
    }
    sysroot(DEBIANS).map(|_| DEBIANS.to_owned())
}

/// The standard library's sources that it builds.
pub fn sources() -> Option<String> {
    let sysroots = ["rustc", DEBIANS].into_iter().filter_map(sysroot);
    sysroots.into_iter().find(|sysroot| has_sources(sysroot)).map(|sysroot| sysroot.display().to_string())
}
