//! What the commands need beyond Rust's compiler: what for, how to see that it is there, and which package has it.

use std::path::PathBuf;

use crate::command::Command;
use crate::system::System;
use crate::tools;
use crate::vulkan;
use crate::web;

/// The version in the manifests: the oldest compiler that everything here builds with.
pub const OLDEST_RUST: &str = env!("CARGO_PKG_RUST_VERSION");

/// Something that must be on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    Rustfmt,
    Clippy,
    /// The library through which programs reach Vulkan drivers.
    Loader,
    /// Any Vulkan driver that runs here: the GPU's own, or else lavapipe.
    Driver,
    /// Mesa's software GPU.
    Lavapipe,
    /// Chromium's software GPU.
    SwiftShader,
    SpirvVal,
    Glslang,
    /// A compiler for WebAssembly that has its library's sources.
    WasmCompiler,
    WasmSources,
    Node,
    Npm,
    Chromium,
    Firefox,
    /// Python's installer, for what only its packages have.
    Pip,
    /// Direct3D's compiler.
    Dxc,
    CargoDeny,
    /// The oldest compiler that the library promises to build with.
    OldestRust,
}

impl Need {
    pub fn name(self) -> &'static str {
        match self {
            Self::Rustfmt => "rustfmt",
            Self::Clippy => "clippy",
            Self::Loader => "Vulkan loader",
            Self::Driver => "Vulkan driver",
            Self::Lavapipe => "lavapipe",
            Self::SwiftShader => "SwiftShader",
            Self::SpirvVal => "spirv-val",
            Self::Glslang => "glslangValidator",
            Self::WasmCompiler => "rustc for WASM",
            Self::WasmSources => "std's sources",
            Self::Node => "Node",
            Self::Npm => "npm",
            Self::Chromium => "Chromium",
            Self::Firefox => "Firefox",
            Self::Pip => "pip",
            Self::Dxc => "dxc",
            Self::CargoDeny => "cargo-deny",
            Self::OldestRust => "oldest Rust",
        }
    }

    pub fn purpose(self) -> &'static str {
        match self {
            Self::Rustfmt => "checks the sources' layout",
            Self::Clippy => "checks the sources for mistakes",
            Self::Loader => "leads programs to the Vulkan drivers",
            Self::Driver => "runs the kernels: the GPU's own, or else Mesa's software GPU",
            Self::Lavapipe => "Mesa's software GPU, on which the tests run alike everywhere",
            Self::SwiftShader => "Chromium's software GPU, a second and stricter device for the tests",
            Self::SpirvVal => "checks the shaders' SPIR-V",
            Self::Glslang => "checks the shaders' GLSL",
            Self::WasmCompiler => "compiles the package for JavaScript",
            Self::WasmSources => "built small, for the package's download",
            Self::Node => "makes the download of what was compiled, and drives browsers",
            Self::Npm => "gets the programs for that",
            Self::Chromium => "runs the package's tests, on Dawn",
            Self::Firefox => "runs the package's tests, on wgpu",
            Self::Pip => "gets the library of Direct3D's compiler",
            Self::Dxc => "compiles the shaders' HLSL, as Direct3D does",
            Self::CargoDeny => "checks what the library is built of",
            Self::OldestRust => "the oldest compiler that the library promises to build with",
        }
    }

    /// Where it was found.
    pub fn found(self) -> Option<String> {
        let shown = |path: PathBuf| path.display().to_string();
        match self {
            // rustup's stand-ins are on the PATH even where the component is not installed: ask them.
            Self::Rustfmt => Command::new("cargo fmt --version").output(),
            Self::Clippy => Command::new("cargo clippy --version").output(),
            Self::Loader | Self::Driver | Self::Lavapipe | Self::SwiftShader if cfg!(not(target_os = "linux")) => {
                Some("Metal and Direct3D 12 are used here".to_owned())
            }
            Self::Loader => vulkan::loader().map(shown),
            Self::Driver => vulkan::driver().map(shown),
            Self::Lavapipe => vulkan::lavapipe().map(shown),
            Self::SwiftShader => vulkan::swiftshader().map(shown),
            Self::SpirvVal => on_path("spirv-val").map(shown),
            Self::Glslang => on_path("glslangValidator").map(shown),
            Self::WasmCompiler => web::compiler(),
            Self::WasmSources => web::sources(),
            Self::Node => on_path("node").map(shown),
            Self::Npm => on_path("npm").map(shown),
            Self::Chromium => one_of(&["chromium", "chromium-browser", "google-chrome"]).map(shown),
            Self::Firefox => one_of(&["firefox-esr", "firefox"]).map(shown),
            Self::Pip if Self::Dxc.found().is_some() => Some("nothing is left to get".to_owned()),
            Self::Pip => Command::new("python3 -m pip --version").output(),
            Self::Dxc => tools::made(&tools::dxc()).map(shown),
            Self::CargoDeny => tools::made(&tools::cargo_deny()).map(shown),
            Self::OldestRust => Command::new(&format!("rustc +{OLDEST_RUST} --version")).output(),
        }
    }

    /// The component of the Rust toolchain that it is, if it is one.
    pub fn component(self) -> Option<&'static str> {
        match self {
            Self::Rustfmt => Some("rustfmt"),
            Self::Clippy => Some("clippy"),
            _ => None,
        }
    }

    /// The component of the Rust toolchain that has it as well, if rustup's servers can be reached.
    pub fn optional_component(self) -> Option<&'static str> {
        (self == Self::WasmSources).then_some("rust-src")
    }

    /// How to make it here, if that is the way: no system has a package of it, or not every one.
    pub fn recipe(self) -> Option<fn() -> Result<(), String>> {
        match self {
            Self::Dxc => Some(tools::make_dxc),
            Self::CargoDeny => Some(tools::make_cargo_deny),
            Self::OldestRust => Some(|| {
                Command::new(&format!("rustup toolchain install {OLDEST_RUST} --profile minimal --no-self-update"))
                    .run()
            }),
            _ => None,
        }
    }

    /// The system's package that has it; where we know no names, Debian's.
    pub fn package(self, system: System) -> &'static str {
        // Homebrew names the tools as Fedora does; drivers are no matter of packages there.
        let [debian, fedora, arch] = match self {
            Self::Rustfmt => ["rustfmt"; 3],
            Self::Clippy => ["rust-clippy", "clippy", "rust"],
            Self::Loader => ["libvulkan1", "vulkan-loader", "vulkan-icd-loader"],
            Self::Driver | Self::Lavapipe => ["mesa-vulkan-drivers", "mesa-vulkan-drivers", "vulkan-swrast"],
            Self::SwiftShader if system == System::Ubuntu => ["chromium-browser"; 3],
            Self::SwiftShader => ["chromium"; 3],
            Self::SpirvVal => ["spirv-tools"; 3],
            Self::Glslang => ["glslang-tools", "glslang", "glslang"],
            Self::WasmCompiler => ["rustc-web", "rustup", "rustup"],
            Self::WasmSources => ["rust-web-src", "rust-src", "rust-src"],
            Self::Node => ["nodejs"; 3],
            Self::Npm => ["npm", "nodejs-npm", "npm"],
            Self::Chromium if system == System::Ubuntu => ["chromium-browser"; 3],
            Self::Chromium => ["chromium"; 3],
            Self::Firefox if system == System::Ubuntu => ["firefox"; 3],
            Self::Firefox => ["firefox-esr", "firefox", "firefox"],
            Self::Pip => ["python3-pip", "python3-pip", "python-pip"],
            Self::Dxc => ["dxc", "dxc", "directx-shader-compiler"],
            Self::CargoDeny => ["cargo-deny"; 3],
            Self::OldestRust => ["rustup"; 3],
        };
        match system {
            System::Debian | System::Ubuntu | System::Other => debian,
            System::Fedora | System::MacOs => fedora,
            System::Arch => arch,
            System::Windows => "KhronosGroup.VulkanSDK",
        }
    }
}

/// The first file of that name in the directories of `PATH`.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let file = format!("{program}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(&file)).find(|path| path.is_file())
}

/// The first of these programs that is there.
fn one_of(programs: &[&str]) -> Option<PathBuf> {
    programs.iter().find_map(|program| on_path(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_the_path() {
        assert!(on_path("cargo").is_some());
        assert!(on_path("no-such-program").is_none());
    }
}
