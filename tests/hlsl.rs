//! The kernels as Direct3D's own compiler, DXC, understands what naga makes of them: all of them compile as for Direct3D
//! 12, and what DXC makes of every kernel for Vulkan, from nearly the same HLSL, is right, on the device that `VK_DRIVER_FILES` (or wgpu's
//! own variables) choose.
//!
//! `cargo xtask test hlsl` gets DXC and runs this. With a DXC at hand: `PHASOR_DXC=PROGRAM cargo test --test hlsl`.

#[path = "common/finished.rs"]
mod finished;

use finished::Finished;
use phasor::Gpu;
use phasor::gpu::{Shader, best_adapter, shaders, useful_features};
use phasor_measure::{Extent, verify};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// As wgpu asks for a kernel on Direct3D 12.
const DIRECT3D: [&str; 8] = ["-T", "cs_6_0", "-E", Shader::ENTRY, "-HV", "2018", "-no-warnings", "-Ges"];

/// For SPIR-V besides: with subgroups, and with uniforms laid out as Direct3D lays them out.
const SPIRV: [&str; 3] = ["-spirv", "-fspv-target-env=vulkan1.1", "-fvk-use-dx-layout"];

/// The compiler. Without one there is nothing to check here, which says so.
fn dxc() -> Option<PathBuf> {
    let Some(program) = std::env::var_os("PHASOR_DXC") else {
        println!("PHASOR_DXC names no compiler: this check was left out");
        return None;
    };
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join(program);
    assert!(program.is_file(), "PHASOR_DXC: there is no {}", program.display());
    Some(program)
}

#[test]
fn direct3d_s_compiler_takes_every_shader() {
    let Some(dxc) = dxc() else { return };
    let texts: HashMap<String, String> =
        shaders().into_iter().map(|shader| (Finished::new(shader.clone()).hlsl(true), shader.name)).collect();
    let texts: Vec<_> = texts.iter().collect();
    assert!(texts.len() > 100, "{} texts", texts.len());
    let (next, refused) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((text, name)) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(message) = compile(&dxc, text, &[]) {
                refused.lock().unwrap().push(format!("{name}: {message}"));
            }
        }
    };
    std::thread::scope(|scope| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        (0..processors).for_each(|_| drop(scope.spawn(work)));
    });
    let refused = refused.into_inner().unwrap();
    assert!(refused.is_empty(), "{} of {} texts:\n{}", refused.len(), texts.len(), refused.join("\n"));
}

#[test]
fn what_direct3d_s_compiler_makes_of_every_kernel_is_right() {
    if dxc().is_none() {
        return;
    }
    let got = pollster::block_on(verify(&device(), Extent::Some, &mut |_| {})).expect("the device runs them");
    let wrong: Vec<_> = got.variants.iter().filter(|variant| !variant.passed).collect();
    assert!(got.passed, "beyond their bounds: {wrong:#?}");
    assert!(got.not_checked.is_empty() && got.refused.is_empty(), "{:?}, {:?}", got.not_checked, got.refused);
    println!("{} numbers of {} variants on {}", got.values, got.variants.len(), got.device.name);
}

/// A device whose kernels are compiled by DXC.
fn device() -> Gpu {
    let adapter = pollster::block_on(best_adapter()).expect("this test needs an adapter");
    let descriptor = wgpu::DeviceDescriptor {
        required_features: adapter.features() & useful_features() | wgpu::Features::PASSTHROUGH_SHADERS,
        required_limits: adapter.limits(),
        ..wgpu::DeviceDescriptor::default()
    };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).expect("it takes SPIR-V");
    Gpu::adopt_compiled_by(&device, &queue, module)
}

fn module(device: &wgpu::Device, shader: &Shader) -> wgpu::ShaderModule {
    let dxc = dxc().expect("it was there before");
    // Not zeroed first, unlike on Direct3D: Mesa takes minutes to compile what sets thousands of words by one assignment,
    // and no kernel reads what it has not written.
    let hlsl = Finished::new(shader.clone()).hlsl(false);
    let spirv = compile(&dxc, &hlsl, &SPIRV);
    let spirv = spirv.unwrap_or_else(|message| panic!("{}: {message}", shader.name));
    let words = spirv.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let descriptor = wgpu::ShaderModuleDescriptorPassthrough {
        label: Some(&shader.name),
        entry_points: vec![wgpu::PassthroughShaderEntryPoint {
            name: Shader::ENTRY.into(),
            workgroup_size: shader.workgroup.into(),
        }]
        .into(),
        spirv: Some(words.collect()),
        ..wgpu::ShaderModuleDescriptorPassthrough::default()
    };
    // SAFETY: the module is DXC's, of a text that naga has checked and whose accesses it has bounded.
    #[allow(unsafe_code)]
    unsafe {
        device.create_shader_module_passthrough(descriptor)
    }
}

/// What DXC makes of a text; an error is what it said.
fn compile(dxc: &Path, hlsl: &str, options: &[&str]) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("kernel.hlsl"), folder.path().join("kernel.binary"));
    std::fs::write(&input, hlsl).unwrap();
    let made = Command::new(dxc).args(DIRECT3D).args(options).arg("-Fo").arg(&output).arg(&input).output().unwrap();
    if !made.status.success() {
        return Err(String::from_utf8_lossy(&made.stderr).into_owned());
    }
    let binary = std::fs::read(&output).unwrap();
    if binary.is_empty() { Err("DXC wrote nothing".to_owned()) } else { Ok(binary) }
}
