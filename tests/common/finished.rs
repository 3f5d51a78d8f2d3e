//! A shader with its constants filled in, and what naga makes of it for Direct3D.

use naga::back::hlsl;
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{Module, ResourceBinding, ShaderStage};
use phasor::gpu::Shader;

/// A shader as naga has it once its constants are filled in.
pub struct Finished {
    pub shader: Shader,
    pub module: Module,
    pub info: ModuleInfo,
}

impl Finished {
    pub fn new(shader: Shader) -> Self {
        let said = |error: &dyn std::fmt::Display| -> String { format!("{}: {error}", shader.name) };
        let parsed = naga::front::wgsl::parse_str(&shader.wgsl)
            .unwrap_or_else(|error| panic!("{}", said(&error.emit_to_string(&shader.wgsl))));
        // What WebGPU gives every device: among naga's capabilities, only `pack2x16float` and its like. And subgroups
        // for the shaders that are chosen where there are some.
        let mut capabilities = Capabilities::SHADER_FLOAT16_IN_FLOAT32;
        capabilities.set(Capabilities::SUBGROUP, shader.uses_subgroups());
        let info = Validator::new(ValidationFlags::all(), capabilities)
            .validate(&parsed)
            .unwrap_or_else(|error| panic!("{}", said(&error.emit_to_string(&shader.wgsl))));
        let constants = shader.constants.iter().map(|&(name, value)| (name.to_string(), value)).collect();
        let entry = Some((ShaderStage::Compute, Shader::ENTRY));
        let (module, info) = naga::back::pipeline_constants::process_overrides(&parsed, &info, entry, &constants)
            .unwrap_or_else(|error| panic!("{}", said(&error)));
        let (module, info) = (module.into_owned(), info.into_owned());
        Self { shader, module, info }
    }

    /// The bindings that the text declares, unused ones included.
    pub fn resources(&self) -> impl Iterator<Item = (ResourceBinding, &naga::GlobalVariable)> {
        self.module.global_variables.iter().filter_map(|(_, global)| global.binding.map(|binding| (binding, global)))
    }

    /// HLSL, with memory that a workgroup shares zeroed first or not.
    pub fn hlsl(&self, zeroes_shared: bool) -> String {
        // Registers without gaps, in order: as wgpu numbers buffers on Vulkan, for when SPIR-V is made of it.
        let mut declared: Vec<_> = self.resources().map(|(binding, _)| binding).collect();
        declared.sort_by_key(|binding| binding.binding);
        let target = |register: u32| hlsl::BindTarget { register, ..hlsl::BindTarget::default() };
        let options = hlsl::Options {
            shader_model: hlsl::ShaderModel::V6_0,
            binding_map: declared.into_iter().zip((0..).map(target)).collect(),
            fake_missing_bindings: false,
            // Without it naga takes a wrong number for `num_workgroups` and says nothing.
            special_constants_binding: Some(hlsl::BindTarget { space: 1, ..target(0) }),
            zero_initialize_workgroup_memory: zeroes_shared,
            ..hlsl::Options::default()
        };
        let pipeline = hlsl::PipelineOptions { entry_point: Some((ShaderStage::Compute, Shader::ENTRY.into())) };
        let mut text = String::new();
        hlsl::Writer::new(&mut text, &options, &pipeline)
            .write(&self.module, &self.info, None)
            .unwrap_or_else(|e| self.fail("HLSL", &e));
        text
    }

    pub fn fail<T>(&self, language: &str, error: &dyn std::fmt::Display) -> T {
        panic!("{}, {language}: {error}", self.shader.name)
    }
}
