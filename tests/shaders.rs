//! Every finished shader against the compilers of every platform: WGSL's own two front ends, and from naga's output
//! SPIR-V, MSL, HLSL and GLSL ES. No device is needed.
//!
//! Tools that are not installed are named and left out, or fail the test if `PHASOR_REQUIRE_TOOLS` is 1.

#[path = "common/finished.rs"]
mod finished;

use finished::Finished;
use naga::back::{glsl, msl, spv};
use naga::{AddressSpace, ShaderStage, StorageAccess, TypeInner};
use phasor::gpu::{Access, Shader, shaders};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn finished() -> Vec<Finished> {
    let all = shaders();
    assert!(!all.is_empty());
    all.into_iter().map(Finished::new).collect()
}

impl Finished {
    fn spirv(&self) -> Vec<u32> {
        let options = spv::Options { lang_version: (1, 3), ..spv::Options::default() };
        let pipeline = spv::PipelineOptions { shader_stage: ShaderStage::Compute, entry_point: Shader::ENTRY.into() };
        spv::write_vec(&self.module, &self.info, &options, Some(&pipeline)).unwrap_or_else(|e| self.fail("SPIR-V", &e))
    }

    fn glsl(&self) -> String {
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

    fn msl(&self) -> String {
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
}

#[test]
fn naga_takes_every_shader_and_its_constants() {
    let mut names = HashSet::new();
    for Finished { shader, module, .. } in finished() {
        let constants: Vec<_> = shader.constants.iter().map(|(name, value)| (*name, value.to_bits())).collect();
        assert!(names.insert((shader.name.clone(), constants)), "{} is listed twice", shader.name);
        let [entry] = module.entry_points.as_slice() else { panic!("{} has one entry point", shader.name) };
        assert_eq!(entry.name, Shader::ENTRY);
        assert_eq!(entry.workgroup_size, shader.workgroup, "{}", shader.name);
        // WebGPU's lowest limits.
        assert!(shader.workgroup.iter().product::<u32>() <= 256, "{}: {:?}", shader.name, shader.workgroup);
        assert!(shader.workgroup[2] <= 64, "{}: {:?}", shader.name, shader.workgroup);
    }
}

/// The same name is the same text, so that a name stands for what it was composed of.
#[test]
fn names_tell_texts_apart() {
    let (mut names, mut texts) = (HashSet::new(), HashSet::new());
    let mut both = HashSet::new();
    for shader in shaders() {
        names.insert(shader.name.clone());
        texts.insert(shader.wgsl.clone());
        both.insert((shader.name, shader.wgsl));
    }
    assert_eq!(both.len(), names.len(), "a name with two texts");
    assert_eq!(both.len(), texts.len(), "a text with two names");
}

/// What a host is told of the bindings is what the text declares: all of them, with their use.
#[test]
fn bindings_are_those_of_the_text() {
    for shader in shaders() {
        let module = naga::front::wgsl::parse_str(&shader.wgsl).unwrap();
        let mut declared: Vec<_> = module
            .global_variables
            .iter()
            .filter_map(|(_, global)| {
                let binding = global.binding?;
                assert_eq!(binding.group, 0, "{}", shader.name);
                let access = match global.space {
                    AddressSpace::Uniform => Access::Uniform,
                    AddressSpace::Storage { access } if access.contains(StorageAccess::STORE) => Access::ReadWrite,
                    _ => Access::Read,
                };
                Some((binding.binding, global.name.clone().unwrap_or_default(), access))
            })
            .collect();
        let mut told: Vec<_> =
            shader.bindings.iter().map(|binding| (binding.index, binding.name.to_string(), binding.access)).collect();
        declared.sort_by_key(|(index, ..)| *index);
        told.sort_by_key(|(index, ..)| *index);
        assert_eq!(told, declared, "{}", shader.name);
        let storages = told.iter().filter(|(.., access)| *access != Access::Uniform).count();
        assert!(storages <= 8, "{}: {storages} storage buffers, of which every device has but 8", shader.name);
    }
}

/// Angles are reduced and evaluated by the kernels themselves: drivers' own functions are exact near zero at best.
#[test]
fn no_shader_calls_what_drivers_get_wrong() {
    let text_calls = |text: &str, name: &str| {
        let code: String = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
        code.match_indices(&format!("{name}("))
            .any(|(at, _)| !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_'))
    };
    assert!(text_calls("let y = sin(x);", "sin") && !text_calls("cos_sin(x) // sin(x)", "sin"));
    for shader in shaders() {
        for name in ["sin", "cos", "tan", "pow", "sinh", "cosh"] {
            assert!(!text_calls(&shader.wgsl, name), "{} calls {name}", shader.name);
        }
    }
}

/// A subgroup may be larger than the workgroup, and what its idle lanes hold is nobody's: no lane beyond the workgroup's own
/// is reckoned with, so that 16, 32 and 64 lanes are as many as a workgroup of eight has.
#[test]
fn no_lane_is_reckoned_with_that_a_workgroup_lacks() {
    let using: Vec<_> = shaders().into_iter().filter(Shader::uses_subgroups).collect();
    assert!(!using.is_empty());
    for shader in using {
        let lines = shader.wgsl.lines().map(|line| line.split("//").next().unwrap_or_default());
        let text = lines.collect::<Vec<_>>().join("\n");
        let (_, behind) = text.split_once("@builtin(subgroup_size)").expect("it uses them");
        // To the end of the function that is told.
        let behind = behind.split("\n}").next().unwrap_or_default();
        let size = behind.trim_start().split(':').next().unwrap_or_default();
        let words = behind.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (uses, bounded) = (words.filter(|word| *word == size).count() - 1, format!("min({size}, WG_SIZE)"));
        assert_eq!((uses, behind.matches(&bounded).count()), (1, 1), "{}: {size}", shader.name);
    }
}

/// The uniform has the size that a host fills, in a layout that all languages agree on.
#[test]
fn uniforms_are_laid_out_alike_everywhere() {
    for Finished { shader, module, .. } in finished() {
        let mut layouter = naga::proc::Layouter::default();
        layouter.update(module.to_ctx()).unwrap();
        let uniforms = module.global_variables.iter().filter(|(_, global)| global.space == AddressSpace::Uniform);
        for (_, global) in uniforms {
            let TypeInner::Struct { members, span } = &module.types[global.ty].inner else {
                panic!("{}: a uniform is a struct", shader.name)
            };
            assert!(members.iter().all(|member| member.offset.is_multiple_of(4)), "{}", shader.name);
            assert!(span.is_multiple_of(4) && *span <= 65_536, "{}: {span} bytes", shader.name);
            assert_eq!(layouter[global.ty].size, *span, "{}", shader.name);
        }
    }
}

#[test]
fn every_shader_translates_to_msl_and_hlsl() {
    for shader in finished() {
        let msl = shader.msl();
        assert!(msl.contains("kernel void"), "{}", shader.shader.name);
        let hlsl = shader.hlsl(true);
        let [x, y, z] = shader.shader.workgroup;
        assert!(hlsl.contains(&format!("[numthreads({x}, {y}, {z})]")), "{}", shader.shader.name);
    }
}

#[test]
fn spirv_val_takes_every_translation() {
    let texts = finished().into_iter().map(|shader| {
        let bytes: Vec<u8> = shader.spirv().into_iter().flat_map(u32::to_le_bytes).collect();
        (shader.shader, bytes)
    });
    check_with("spirv-val", "spv", texts, 1, |file| vec!["--target-env".into(), "vulkan1.1".into(), file.into()]);
}

#[test]
fn glslang_takes_every_translation() {
    // GLSL ES has no subgroups.
    let everywhere = finished().into_iter().filter(|shader| !shader.shader.uses_subgroups());
    let texts = everywhere.map(|shader| (shader.glsl().into_bytes(), shader.shader)).map(|(a, b)| (b, a));
    check_with("glslangValidator", "comp", texts, 40, |file| vec![file.into()]);
}

/// The front end of Chrome, which finds what naga lets through.
#[test]
fn tint_takes_every_shader() {
    let texts = shaders().into_iter().map(|shader| {
        let prefix = if shader.uses_subgroups() { Shader::SUBGROUP_PREFIX } else { "" };
        let text = format!("{prefix}{}", shader.wgsl);
        (shader, text.into_bytes())
    });
    check_with("tint", "wgsl", texts, 1, |file| vec!["--format".into(), "wgsl".into(), file.into()]);
}

/// Gives each text to a tool, as many files to a call as it takes.
fn check_with(
    tool: &str,
    extension: &str,
    texts: impl Iterator<Item = (Shader, Vec<u8>)>,
    at_once: usize,
    arguments: impl Fn(&Path) -> Vec<std::ffi::OsString>,
) {
    let Some(tool) = find(tool) else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(extension);
    std::fs::create_dir_all(&folder).unwrap();
    let mut seen = HashSet::new();
    let files: Vec<_> = texts
        .filter(|(_, text)| seen.insert(text.clone()))
        .enumerate()
        .map(|(i, (shader, text))| {
            let file = folder.join(format!("{}.{i}.{extension}", shader.name));
            std::fs::write(&file, text).unwrap();
            file
        })
        .collect();
    assert!(!files.is_empty());
    for some in files.chunks(at_once) {
        let output = Command::new(&tool).args(some.iter().flat_map(|file| arguments(file))).output().unwrap();
        assert!(output.status.success(), "{some:?}: {}", said(&output));
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A tool on the path. Tint is built from source and rarely there, so that no run demands it.
fn find(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(tool)).find(|file| file.is_file());
    if found.is_none() {
        let required = std::env::var("PHASOR_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        assert!(!required || tool == "tint", "{tool} is not installed");
        println!("{tool} is not installed: this check was left out");
    }
    found
}
