//! A shader with its constants filled in, and what naga makes of it for every platform.

use naga::back::{glsl, hlsl, msl, spv};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, Module, ResourceBinding, ShaderStage, StorageAccess};
use phasor::gpu::Shader;

/// A shader as naga has it once its constants are filled in.
pub struct Finished {
    pub shader: Shader,
    pub module: Module,
    info: ModuleInfo,
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
    fn resources(&self) -> impl Iterator<Item = (ResourceBinding, &naga::GlobalVariable)> {
        self.module.global_variables.iter().filter_map(|(_, global)| global.binding.map(|binding| (binding, global)))
    }

    pub fn spirv(&self) -> Vec<u32> {
        let options = spv::Options { lang_version: (1, 3), ..spv::Options::default() };
        let pipeline = spv::PipelineOptions { shader_stage: ShaderStage::Compute, entry_point: Shader::ENTRY.into() };
        spv::write_vec(&self.module, &self.info, &options, Some(&pipeline)).unwrap_or_else(|e| self.fail("SPIR-V", &e))
    }

    pub fn glsl(&self) -> String {
        let options = glsl::Options {
            version: glsl::Version::new_gles(310),
            // Numbers in order, as WebGL-style hosts have them: GLSL has no groups.
            binding_map: self.resources().map(|(binding, _)| (binding, binding.binding as u8)).collect(),
            ..glsl::Options::default()
        };
        let pipeline = glsl::PipelineOptions {
            shader_stage: ShaderStage::Compute,
            entry_point: Shader::ENTRY.into(),
            multiview: None,
        };
        let mut text = String::new();
        let policies = naga::proc::BoundsCheckPolicies::default();
        glsl::Writer::new(&mut text, &self.module, &self.info, &options, &pipeline, policies)
            .and_then(|mut writer| writer.write())
            .unwrap_or_else(|e| self.fail("GLSL ES", &e));
        text
    }

    pub fn msl(&self) -> String {
        let resources = self.resources().map(|(binding, global)| {
            let target = msl::BindTarget {
                buffer: Some(binding.binding as u8),
                mutable: matches!(global.space, AddressSpace::Storage { access } if access.contains(StorageAccess::STORE)),
                ..msl::BindTarget::default()
            };
            (binding, target)
        });
        let entry = msl::EntryPointResources {
            resources: resources.collect(),
            // `arrayLength` needs the buffers' sizes.
            sizes_buffer: Some(30),
            ..msl::EntryPointResources::default()
        };
        let options = msl::Options {
            lang_version: (2, 0),
            per_entry_point_map: [(Shader::ENTRY.to_string(), entry)].into(),
            fake_missing_bindings: false,
            ..msl::Options::default()
        };
        let pipeline = msl::PipelineOptions {
            entry_point: Some((ShaderStage::Compute, Shader::ENTRY.into())),
            ..msl::PipelineOptions::default()
        };
        msl::write_string(&self.module, &self.info, &options, &pipeline).unwrap_or_else(|e| self.fail("MSL", &e)).0
    }

    pub fn hlsl(&self) -> String {
        // Numbers without gaps, in order: as wgpu gives them to buffers on Vulkan, for when SPIR-V is made of it.
        let mut declared: Vec<_> = self.resources().map(|(binding, _)| binding).collect();
        declared.sort_by_key(|binding| binding.binding);
        let target = |register: u32| hlsl::BindTarget { register, ..hlsl::BindTarget::default() };
        let options = hlsl::Options {
            shader_model: hlsl::ShaderModel::V6_0,
            binding_map: declared.into_iter().zip((0..).map(target)).collect(),
            fake_missing_bindings: false,
            // Without it naga takes a wrong number for `num_workgroups` and says nothing.
            special_constants_binding: Some(hlsl::BindTarget { space: 1, ..target(0) }),
            ..hlsl::Options::default()
        };
        let pipeline = hlsl::PipelineOptions { entry_point: Some((ShaderStage::Compute, Shader::ENTRY.into())) };
        let mut text = String::new();
        hlsl::Writer::new(&mut text, &options, &pipeline)
            .write(&self.module, &self.info, None)
            .unwrap_or_else(|e| self.fail("HLSL", &e));
        text
    }

    fn fail<T>(&self, language: &str, error: &dyn std::fmt::Display) -> T {
        panic!("{}, {language}: {error}", self.shader.name)
    }
}
