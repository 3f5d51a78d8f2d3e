//! `phasor shaders`: the finished kernels, for use outside of Rust.

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::report;
use clap::Args;
use phasor::gpu::{Access, Shader, shaders};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// List the finished WGSL of every kernel variant, or write it to files
///
/// The shaders are plain WGSL for any WebGPU implementation: JavaScript, Dawn, wgpu. Each has one entry point, `main`, and
/// everything it binds is in group 0. With --emit every variant is written as NAME.wgsl, and beside it NAME.json with the
/// workgroup size, the override constants and the bindings.
///
/// The same text with other constants is another file: its number tells them apart.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phasor shaders\n  phasor shaders --emit kernels\n  \
phasor shaders --json | jq -r '.[0].wgsl'")]
pub struct Shaders {
    /// Write NAME.wgsl and NAME.json into this directory, which is made if it is not there
    #[arg(long, value_name = "DIR")]
    emit: Option<PathBuf>,

    /// Print JSON, text included
    #[arg(long)]
    json: bool,
}

impl Shaders {
    pub fn run(&self) -> Result<Outcome, Failure> {
        let named = with_file_names(shaders());
        if let Some(directory) = &self.emit {
            emit(directory, &named)?;
        }
        if self.json {
            let list: Vec<_> = named.iter().map(|(file, shader)| described(file, shader, true)).collect();
            return Outcome::json(&list);
        }
        let mut text = report::columns(&["name", "workgroup", "constants", "bindings"], named.iter().map(row), &[]);
        if let Some(directory) = &self.emit {
            text += &format!("\nwrote {} shaders to {}\n", named.len(), directory.display());
        }
        Ok(Outcome::text(text))
    }
}

/// Each shader with the name of its files: its own, and a number where the same text comes with several sets of constants.
fn with_file_names(all: Vec<Shader>) -> Vec<(String, Shader)> {
    let mut seen = BTreeMap::<String, u32>::new();
    all.into_iter()
        .map(|shader| {
            let n = seen.entry(shader.name.clone()).or_default();
            *n += 1;
            (if *n == 1 { shader.name.clone() } else { format!("{}-{n}", shader.name) }, shader)
        })
        .collect()
}

fn emit(directory: &Path, named: &[(String, Shader)]) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(|e| Failure::file(directory, e))?;
    for (file, shader) in named {
        write(&directory.join(format!("{file}.wgsl")), &shader.wgsl)?;
        let text = serde_json::to_string_pretty(&described(file, shader, false));
        write(&directory.join(format!("{file}.json")), &(text.map_err(|e| Failure::new(e.to_string()))? + "\n"))?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|e| Failure::file(path, e))
}

fn described(file: &str, shader: &Shader, with_text: bool) -> Value {
    let bindings: Vec<_> = shader
        .bindings
        .iter()
        .map(|binding| {
            let access = match binding.access {
                Access::Uniform => "uniform",
                Access::Read => "read-only-storage",
                Access::ReadWrite => "storage",
            };
            json!({ "group": 0, "binding": binding.index, "name": binding.name, "type": access })
        })
        .collect();
    let constants: serde_json::Map<_, _> =
        shader.constants.iter().map(|&(name, value)| (name.to_owned(), number(value))).collect();
    let mut described = json!({
        "name": file,
        "variant": shader.name,
        "entry_point": Shader::ENTRY,
        "workgroup": shader.workgroup,
        "constants": constants,
        "bindings": bindings,
    });
    if with_text {
        described["wgsl"] = shader.wgsl.clone().into();
    }
    described
}

/// Whole numbers without a decimal point, as constants mostly are.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < f64::from(u32::MAX) { json!(value as i64) } else { json!(value) }
}

fn row((file, shader): &(String, Shader)) -> Vec<String> {
    let [x, y, z] = shader.workgroup;
    let constants: Vec<_> = shader
        .constants
        .iter()
        // The workgroup's own constants stand in a column of their own.
        .filter(|(name, _)| !name.starts_with("WG_"))
        .map(|(name, value)| format!("{name}={}", number(*value)))
        .collect();
    let bindings: Vec<_> = shader.bindings.iter().map(|b| format!("{} {}", b.index, b.name)).collect();
    vec![file.clone(), format!("{x}x{y}x{z}"), constants.join(" "), bindings.join(", ")]
}
