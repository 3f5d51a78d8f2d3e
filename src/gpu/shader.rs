//! A finished shader: its text and everything that a host must know to run it, in phasor or out of it.

use crate::{Error, ErrorKind, Result};

/// How a binding is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// A uniform buffer.
    Uniform,
    /// A storage buffer that is only read.
    Read,
    /// A storage buffer that is read and written.
    ReadWrite,
}

/// One binding of bind group 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Binding {
    /// The number behind `@binding`.
    pub index: u32,
    /// The variable's name in the shader.
    pub name: &'static str,
    /// How it is used.
    pub access: Access,
}

/// One variant of a kernel: plain WGSL, ready for any WebGPU implementation.
#[derive(Debug, Clone, PartialEq)]
pub struct Shader {
    /// The kernel's name and the modules it was composed with: the same name, the same text.
    pub name: String,
    /// The text.
    pub wgsl: String,
    /// The values of its `override` constants. Those of type bool are 0 or 1.
    pub constants: Vec<(&'static str, f64)>,
    /// What it binds, all in group 0.
    pub bindings: Vec<Binding>,
    /// Its workgroup's size, as the constants make it.
    pub workgroup: [u32; 3],
}

impl Shader {
    /// The entry point's name, the same in all kernels.
    pub const ENTRY: &'static str = "main";

    /// What Tint and browsers want before the text of a shader that [uses subgroups](Shader::uses_subgroups), and naga
    /// does not know: the extension, and that control flow which is uniform for a subgroup is enough.
    pub const SUBGROUP_PREFIX: &'static str = "enable subgroups;\ndiagnostic(off, subgroup_uniformity);\n";

    /// Whether the text uses subgroup operations, which not every device has.
    #[must_use]
    pub fn uses_subgroups(&self) -> bool {
        self.wgsl.contains("@builtin(subgroup_size)")
    }

    /// Refuses more storage buffers than the device allows a shader.
    pub(crate) fn expect_buffers(&self, most: u32) -> Result<()> {
        let buffers = self.bindings.iter().filter(|binding| binding.access != Access::Uniform).count();
        if buffers <= most as usize {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Limit,
            "max_storage_buffers_per_shader_stage",
            format!("{buffers} for {}", self.name),
            format!("up to {most} on this device: leave out what is optional"),
        ))
    }

    /// Text from modules, in the order in which WGSL's readers meet them.
    pub(crate) fn compose(modules: &[&str]) -> String {
        modules.join("\n")
    }
}

/// Every finished shader that phasor can ask a device to run, for use from JavaScript or C++ and for checks: each text
/// with the constants of a common case, and with those of a case that needs all of its branches.
///
/// ```
/// for shader in phasor::gpu::shaders() {
///     println!("{}: {} bindings", shader.name, shader.bindings.len());
/// }
/// ```
#[must_use]
pub fn shaders() -> Vec<Shader> {
    crate::kernels::all()
}
