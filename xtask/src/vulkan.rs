//! What this machine has of Vulkan: the loader, and the manifests (`*_icd.json`) by which the loader finds drivers.

use std::env::consts::ARCH;
use std::path::{Path, PathBuf};

/// Where distributions put drivers' manifests, as the Vulkan loader searches them.
const MANIFEST_DIRS: [&str; 4] = [
    "/etc/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/usr/share/vulkan/icd.d",
    "/run/opengl-driver/share/vulkan/icd.d",
];

/// Chromium and Chrome bring SwiftShader along, with a manifest of its own.
const SWIFTSHADER_MANIFESTS: [&str; 5] = [
    "/usr/lib/chromium/vk_swiftshader_icd.json",
    "/usr/lib64/chromium-browser/vk_swiftshader_icd.json",
    "/usr/lib/chromium-browser/vk_swiftshader_icd.json",
    "/snap/chromium/current/usr/lib/chromium-browser/vk_swiftshader_icd.json",
    "/opt/google/chrome/vk_swiftshader_icd.json",
];

/// Switches off Mesa's layer that puts the desktop's GPU first. Without a desktop it has nothing to go by, and only
/// prints an error about `XDG_RUNTIME_DIR`.
pub const NO_DEVICE_SELECTION: (&str, &str) = ("NODEVICE_SELECT", "1");

/// The Vulkan loader's library, by which programs reach every driver.
pub fn loader() -> Option<PathBuf> {
    let multiarch = format!("/usr/lib/{ARCH}-linux-gnu");
    [multiarch.as_str(), "/usr/lib64", "/usr/lib", "/usr/local/lib", "/run/opengl-driver/lib"]
        .iter()
        .map(|dir| Path::new(dir).join("libvulkan.so.1"))
        .find(|path| path.exists())
}

/// The manifest of lavapipe, Mesa's software GPU.
pub fn lavapipe() -> Option<PathBuf> {
    manifests().into_iter().find(|path| is_lavapipe(path))
}

/// The manifest of SwiftShader, Chromium's software GPU.
pub fn swiftshader() -> Option<PathBuf> {
    SWIFTSHADER_MANIFESTS.iter().map(PathBuf::from).find(|path| path.exists())
}

/// The manifest of a driver that can be expected to run programs: one for hardware if there is hardware, else lavapipe.
pub fn driver() -> Option<PathBuf> {
    hardware_driver().or_else(lavapipe)
}

/// Whether this machine seems to have a GPU of its own that programs can use.
pub fn has_gpu() -> bool {
    // Metal and Direct3D 12 are parts of their systems.
    cfg!(not(target_os = "linux")) || hardware_driver().is_some()
}

fn hardware_driver() -> Option<PathBuf> {
    gpu_device()?;
    manifests().into_iter().find(|path| !file_name(path).starts_with("lvp_icd"))
}

/// The file by which the kernel offers a GPU: a render node, NVIDIA's own driver, or Windows' GPU under WSL.
fn gpu_device() -> Option<PathBuf> {
    let render_nodes = files_in("/dev/dri").into_iter().filter(|path| file_name(path).starts_with("renderD"));
    let others = ["/dev/nvidiactl", "/dev/dxg"].into_iter().map(PathBuf::from);
    render_nodes.chain(others).find(|path| path.exists())
}

fn manifests() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = MANIFEST_DIRS.into_iter().flat_map(files_in).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files
}

/// Mesa names the manifest with the architecture (`lvp_icd.x86_64.json`) or, from 25 on, without (`lvp_icd.json`).
fn is_lavapipe(manifest: &Path) -> bool {
    let name = file_name(manifest);
    name == "lvp_icd.json" || name == format!("lvp_icd.{ARCH}.json")
}

fn files_in(dir: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lavapipe_is_known_by_either_name_and_only_for_this_architecture() {
        assert!(is_lavapipe(Path::new("/usr/share/vulkan/icd.d/lvp_icd.json")));
        assert!(is_lavapipe(&PathBuf::from(format!("/usr/share/vulkan/icd.d/lvp_icd.{ARCH}.json"))));
        assert!(!is_lavapipe(Path::new("/usr/share/vulkan/icd.d/lvp_icd.vax.json")));
        assert!(!is_lavapipe(Path::new("/usr/share/vulkan/icd.d/radeon_icd.json")));
    }
}
