//! The steps of `cargo xtask test` and `cargo xtask supply`: the lists of what is checked. A new check is one more entry.

use crate::command::Command;
use crate::need::{Need, OLDEST_RUST};
use crate::tools;
use crate::vulkan;
use crate::web;

/// One named check: commands that must all succeed.
pub struct Step {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What has been shown when it passes.
    pub about: &'static str,
    /// What must be on the machine.
    pub needs: Vec<Need>,
    /// The GPU that its commands use.
    pub device: Device,
    /// Where it can run.
    pub place: Place,
    /// What of the web its commands work on, which is built first.
    builds: Builds,
    commands: Vec<Command>,
    /// What to do where it fails, if its commands do not say so well.
    pub advice: Option<&'static str>,
}

/// The GPU that a step's commands see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// None is needed, or the machine's own.
    Any,
    /// Mesa's software GPU; on systems that have no Vulkan drivers, the machine's own GPU.
    Lavapipe,
    /// Chromium's software GPU.
    SwiftShader,
}

/// What is built for browsers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Builds {
    Nothing,
    /// The package for JavaScript.
    Package,
    /// The package, and the page with it.
    Page,
}

/// The machines on which a step makes sense. Elsewhere it does not apply, and the verdict says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Anywhere,
    Linux,
    /// Linux machines that have a GPU of their own.
    LinuxWithGpu,
}

/// Every step, in the order in which they run: quick ones first.
pub fn all() -> Vec<Step> {
    vec![
        step("fmt", "the sources are laid out as rustfmt does it")
            .needs(&[Need::Rustfmt])
            .runs("cargo fmt --all --check")
            .runs("cargo fmt --manifest-path web/Cargo.toml --all --check")
            .runs("cargo fmt --manifest-path xtask/dxc/Cargo.toml --check")
            .runs("cargo fmt --manifest-path fuzz/Cargo.toml --check")
            .runs("cargo fmt --manifest-path benches/peers/Cargo.toml --check"),
        step("clippy", "no warning from the compiler or from clippy, in any target")
            .needs(&[Need::Clippy])
            .runs("cargo clippy --workspace --all-targets -- -D warnings"),
        step("features", "the library is whole without its default features")
            .needs(&[Need::Clippy])
            .runs("cargo clippy -p phasor --lib --no-default-features -- -D warnings")
            .runs("cargo clippy -p phasor --lib --no-default-features --features config -- -D warnings"),
        step("doc", "the documentation builds without a warning")
            .runs("cargo doc --workspace --no-deps")
            .variable("RUSTDOCFLAGS", "-D warnings"),
        step("lavapipe", "all tests, shader checks and `phasor verify` included, on lavapipe")
            .needs(&[Need::SpirvVal, Need::Glslang])
            .on(Device::Lavapipe)
            .runs("cargo test --workspace")
            .variable("PHASOR_REQUIRE_TOOLS", "1"),
        step("bench", "every benchmark works (one round each, not timed)")
            .on(Device::Lavapipe)
            .runs("cargo test --workspace --bench *"),
        // The whole workspace again: a part of it would unify features otherwise and build every dependency anew.
        step("swiftshader", "the integration tests and `phasor verify` again, on SwiftShader")
            .needs(&[Need::SpirvVal, Need::Glslang])
            .on(Device::SwiftShader)
            // But for what `phasor bench` says of its times: it compiles everything again and again, for the same words.
            .runs("cargo test --workspace --test * -- --skip bench_")
            .variable("PHASOR_REQUIRE_TOOLS", "1"),
        // By a driver's own variable, in bits: a lane has 32.
        step("subgroups", "attention and linear layers by subgroups of 4, 8 and 16 lanes, on lavapipe")
            .on(Device::Lavapipe)
            .runs("cargo test --workspace --test attention -- subgroups::")
            .with("LP_NATIVE_VECTOR_WIDTH", "128")
            .runs("cargo test --workspace --test attention -- subgroups::")
            .with("LP_NATIVE_VECTOR_WIDTH", "256")
            .runs("cargo test --workspace --test attention -- subgroups::")
            .with("LP_NATIVE_VECTOR_WIDTH", "512"),
        step("hlsl", "Direct3D's compiler takes all shaders, and what it makes of every kernel is right on lavapipe")
            .needs(&[Need::Pip, Need::Dxc])
            .on(Device::Lavapipe)
            .only(Place::Linux)
            .runs("cargo test --workspace --test hlsl")
            .variable("PHASOR_DXC", &tools::dxc()),
        step("web", "the package for JavaScript builds, is small enough, and its types hold")
            .needs(&web::NEEDS)
            .builds(Builds::Package)
            .runs("node web/node_modules/typescript/bin/tsc -p web/examples/typescript"),
        step("browser-chromium", "the package's tests in Chromium, on SwiftShader")
            .needs(&[Need::Chromium])
            .needs(&web::NEEDS)
            .builds(Builds::Package)
            .runs("node web/tests/run.mjs chromium"),
        step("browser-firefox", "the package's tests in Firefox, on lavapipe")
            .needs(&[Need::Firefox])
            .needs(&web::NEEDS)
            .on(Device::Lavapipe)
            .builds(Builds::Package)
            .runs("node web/tests/run.mjs firefox"),
        step("page-chromium", "the page, used as a visitor would, in Chromium with WebGPU and without")
            .needs(&[Need::Chromium])
            .needs(&web::NEEDS)
            .builds(Builds::Page)
            .runs("node web/tests/page.mjs chromium"),
        step("page-firefox", "the page, used as a visitor would, in Firefox")
            .needs(&[Need::Firefox])
            .needs(&web::NEEDS)
            .on(Device::Lavapipe)
            .builds(Builds::Page)
            .runs("node web/tests/page.mjs firefox"),
        step("verify-gpu", "`phasor verify` on this machine's own GPU, where there is one")
            .only(Place::LinuxWithGpu)
            .runs("cargo run --release -p phasor-demo -- verify"),
    ]
}

/// The steps of `cargo xtask supply`: they build for minutes or ask the network, and change seldom.
pub fn supply() -> Vec<Step> {
    let library = "check -p phasor --lib";
    vec![
        step("licences", "all that is built or used here is permissively licensed, and from the registry")
            .needs(&[Need::CargoDeny])
            .deny("Cargo.toml", "licenses bans sources")
            .deny("fuzz/Cargo.toml", "licenses sources")
            .deny("web/Cargo.toml", "licenses sources")
            .deny("xtask/dxc/Cargo.toml", "licenses sources"),
        step("oldest-rust", "everything builds with the oldest compiler that the manifests promise")
            .needs(&[Need::OldestRust])
            .runs(&format!("cargo +{OLDEST_RUST} {library} --locked"))
            .runs(&format!("cargo +{OLDEST_RUST} {library} --locked --no-default-features"))
            .runs(&format!("cargo +{OLDEST_RUST} {library} --locked --no-default-features --features config"))
            .runs(&format!("cargo +{OLDEST_RUST} check --workspace --locked"))
            .variable("CARGO_TARGET_DIR", "target/oldest-rust"),
        step("oldest-crates", "the library builds with the oldest versions of the crates that it asks for")
            .runs(&format!("cargo generate-lockfile {OLDEST_CRATES}"))
            .runs(&format!("cargo {library} --all-features {OLDEST_CRATES}"))
            .runs(&format!("cargo {library} --no-default-features --features config {OLDEST_CRATES}"))
            // The flags that begin with -Z, of a stable compiler.
            .variable("RUSTC_BOOTSTRAP", "1")
            .variable("CARGO_TARGET_DIR", "target/oldest-crates"),
        step("advisories", "no crate has a known fault (asks for the list of them)")
            .needs(&[Need::CargoDeny])
            .deny("Cargo.toml", "advisories")
            .deny("web/Cargo.toml", "advisories")
            .advises(
                "If a crate is named above, `cargo update` to a version without the fault. If the list could not be \
                 fetched, nothing was checked: cargo-deny gets it by git from https://github.com/RustSec/advisory-db, so \
                 try again where that can be reached.",
            ),
    ]
}

/// With the oldest versions of direct dependencies that the manifests allow, in a lock file of their own.
const OLDEST_CRATES: &str =
    "-Zdirect-minimal-versions -Zlockfile-path --config resolver.lockfile-path=\"target/oldest-crates/Cargo.lock\"";

/// All that these steps need, each need once.
pub fn needs(steps: &[Step]) -> Vec<Need> {
    let mut needs: Vec<Need> =
        steps.iter().filter(|step| step.applies().is_ok()).flat_map(|step| step.needs.clone()).collect();
    needs.sort_unstable();
    needs.dedup();
    needs
}

fn step(name: &'static str, about: &'static str) -> Step {
    Step {
        name,
        about,
        needs: Vec::new(),
        device: Device::Any,
        place: Place::Anywhere,
        builds: Builds::Nothing,
        commands: Vec::new(),
        advice: None,
    }
}

impl Step {
    fn needs(mut self, needs: &[Need]) -> Self {
        self.needs.extend(needs);
        self
    }

    fn on(mut self, device: Device) -> Self {
        self.device = device;
        match device {
            Device::Any => self,
            Device::Lavapipe => self.needs(&[Need::Loader, Need::Lavapipe]),
            Device::SwiftShader => self.needs(&[Need::Loader, Need::SwiftShader]).only(Place::Linux),
        }
    }

    fn only(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    fn builds(mut self, builds: Builds) -> Self {
        self.builds = builds;
        self
    }

    fn runs(mut self, line: &str) -> Self {
        self.commands.push(Command::new(line));
        self
    }

    fn advises(mut self, advice: &'static str) -> Self {
        self.advice = Some(advice);
        self
    }

    /// Has cargo-deny make these checks of a workspace.
    fn deny(self, manifest: &str, checks: &str) -> Self {
        let program = tools::cargo_deny();
        self.runs(&format!("{program} --manifest-path {manifest} --locked --config deny.toml check {checks}"))
    }

    /// Sets a variable for every command so far.
    fn variable(mut self, name: &str, value: &str) -> Self {
        self.commands = self.commands.into_iter().map(|command| command.variable(name, value)).collect();
        self
    }

    /// Sets a variable for the last command.
    fn with(mut self, name: &str, value: &str) -> Self {
        if let Some(last) = self.commands.pop() {
            self.commands.push(last.variable(name, value));
        }
        self
    }

    /// Whether it makes sense here; if not, why.
    pub fn applies(&self) -> Result<(), &'static str> {
        let linux = cfg!(target_os = "linux");
        match self.place {
            Place::Linux if !linux => Err("only on Linux"),
            Place::LinuxWithGpu if !linux => Err("the other steps use the GPU already"),
            Place::LinuxWithGpu if !vulkan::has_gpu() => Err("no GPU of its own"),
            _ => Ok(()),
        }
    }

    /// The commands that build what it works on: once is enough for all steps of a run.
    pub fn build_commands(&self) -> Result<Vec<Command>, String> {
        Ok(match self.builds {
            Builds::Nothing => Vec::new(),
            Builds::Package => web::package()?,
            Builds::Page => [web::package()?, web::page()?].concat(),
        })
    }

    /// Its commands, with the variables by which they see the step's device and no other.
    pub fn commands(&self) -> Result<Vec<Command>, String> {
        let manifest = match self.device {
            Device::Any => return Ok(self.commands.clone()),
            // Without Vulkan drivers there are none to choose from.
            Device::Lavapipe if cfg!(not(target_os = "linux")) => return Ok(self.commands.clone()),
            Device::Lavapipe => vulkan::lavapipe(),
            Device::SwiftShader => vulkan::swiftshader(),
        };
        let manifest = manifest.ok_or_else(|| format!("the driver of {:?} is not there", self.device))?;
        let manifest = manifest.to_string_lossy();
        let variables = [
            ("VK_DRIVER_FILES", &*manifest),
            // What loaders before 1.3.207 call it.
            ("VK_ICD_FILENAMES", &*manifest),
            vulkan::NO_DEVICE_SELECTION,
        ];
        let on_device = |command: &Command| {
            variables.iter().fold(command.clone(), |command, (name, value)| command.variable(name, value))
        };
        Ok(self.commands.iter().map(on_device).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn names_are_words_and_each_step_does_something() {
        let steps = all();
        for (i, step) in steps.iter().enumerate() {
            assert!(step.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", step.name);
            assert!(!step.commands.is_empty(), "{}", step.name);
            assert!(steps[..i].iter().all(|earlier| earlier.name != step.name), "{} is there twice", step.name);
        }
    }

    /// A filter that no test answers to would pass.
    #[test]
    fn tests_that_are_chosen_by_module_are_there() {
        let lines: Vec<_> = all().iter().flat_map(|step| &step.commands).map(ToString::to_string).collect();
        let chosen = lines.iter().filter_map(|line| line.split_once(" --test ")?.1.split_once(" -- ")?.into());
        let chosen: Vec<_> = chosen.filter_map(|(target, filter)| Some((target, filter.strip_suffix("::")?))).collect();
        assert!(!chosen.is_empty());
        for (target, module) in chosen {
            let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests").join(target);
            let main = std::fs::read_to_string(tests.join("main.rs")).unwrap();
            assert!(main.contains(&format!("\nmod {module};")), "{target} has no {module}");
            let module = std::fs::read_to_string(tests.join(module).with_extension("rs")).unwrap();
            assert!(module.contains("#[test]"), "{target}: {module}");
        }
    }

    #[test]
    fn a_step_that_cannot_run_here_needs_nothing() {
        let nowhere = step("nowhere", "").needs(&[Need::Clippy]).only(Place::LinuxWithGpu);
        let expected = if nowhere.applies().is_ok() { vec![Need::Clippy] } else { vec![] };
        assert_eq!(needs(&[nowhere]), expected);
    }
}
