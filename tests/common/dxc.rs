//! Kernels as Direct3D's compiler understands them, run on Vulkan: naga writes a kernel as HLSL, and DXC makes SPIR-V of it.

use super::tools::{find, said};
use super::translate::Finished;
use phasor::Gpu;
use phasor::gpu::Shader;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::Command;

/// For SPIR-V: with subgroups, and with uniforms laid out as Direct3D lays them out.
const SPIRV: [&str; 3] = ["-spirv", "-fspv-target-env=vulkan1.1", "-fvk-use-dx-layout"];

/// Whether this run wants its kernels so.
pub fn is_wanted() -> bool {
    match std::env::var("PHASOR_COMPILER") {
        Err(_) => false,
        Ok(compiler) if compiler == "dxc" => true,
        Ok(other) => panic!("PHASOR_COMPILER may be `dxc`, not `{other}`"),
    }
}

/// What a device must be made with to take SPIR-V.
pub const FEATURES: wgpu::Features = wgpu::Features::PASSTHROUGH_SHADERS;

/// A device whose kernels are compiled by DXC.
pub fn adopt(device: &wgpu::Device, queue: &wgpu::Queue) -> Gpu {
    println!("kernels are those that DXC makes of naga's HLSL");
    Gpu::adopt_compiled_by(device, queue, module)
}

fn module(device: &wgpu::Device, shader: &Shader) -> wgpu::ShaderModule {
    let spirv = spirv(&Finished::new(shader.clone()).hlsl());
    let descriptor = wgpu::ShaderModuleDescriptorPassthrough {
        label: Some(&shader.name),
        entry_points: vec![wgpu::PassthroughShaderEntryPoint {
            name: Shader::ENTRY.into(),
            workgroup_size: shader.workgroup.into(),
        }]
        .into(),
        spirv: Some(spirv.into()),
        ..wgpu::ShaderModuleDescriptorPassthrough::default()
    };
    // SAFETY: the module is DXC's, of a text that naga has checked and whose accesses it has bounded.
    #[allow(unsafe_code)]
    unsafe {
        device.create_shader_module_passthrough(descriptor)
    }
}

/// What DXC makes of a text, kept for the next test that wants the same.
fn spirv(hlsl: &str) -> Vec<u32> {
    let mut hasher = DefaultHasher::new();
    (hlsl, SPIRV).hash(&mut hasher);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dxc");
    let kept = folder.join(format!("{:016x}.spv", hasher.finish()));
    if !kept.exists() {
        std::fs::create_dir_all(&folder).unwrap();
        // Other tests may want the same at the same time: the file gets its name once it is whole.
        let own = |extension: &str| {
            let thread = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "");
            kept.with_extension(format!("{}.{thread}.{extension}", std::process::id()))
        };
        let (input, output) = (own("hlsl"), own("spv"));
        std::fs::write(&input, hlsl).unwrap();
        let dxc = find("dxc").expect("PHASOR_COMPILER asks for dxc");
        let outcome = Command::new(dxc).args(arguments(&SPIRV, &output, &input)).output().unwrap();
        assert!(outcome.status.success(), "{}", said(&outcome));
        std::fs::rename(output, &kept).unwrap();
        std::fs::remove_file(input).unwrap();
    }
    let bytes = std::fs::read(kept).unwrap();
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

/// dxc's command line for a kernel, as wgpu asks for it on Direct3D 12, with more options or none.
pub fn arguments(options: &[&str], output: &Path, input: &Path) -> Vec<OsString> {
    let words = ["-T", "cs_6_0", "-E", Shader::ENTRY, "-HV", "2018", "-no-warnings", "-Ges"];
    let words = words.iter().chain(options).map(OsString::from);
    words.chain(["-Fo".into(), output.into(), input.into()]).collect()
}
