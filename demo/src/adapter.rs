//! Which device to use.

use crate::failure::Failure;
use phasor::Gpu;
use pollster::block_on;

/// The device that `--adapter` names, or the best one.
pub fn open(wanted: Option<&str>) -> Result<Gpu, Failure> {
    Ok(Gpu::on_blocking(&choose(wanted)?)?)
}

/// The adapter of [`open`].
pub fn choose(wanted: Option<&str>) -> Result<wgpu::Adapter, Failure> {
    let Some(wanted) = wanted else { return Ok(block_on(phasor::gpu::best_adapter())?) };
    let mut adapters = block_on(phasor::gpu::adapters());
    let names: Vec<_> = adapters.iter().map(|adapter| adapter.get_info().name).collect();
    match find(wanted, &names) {
        Some(i) => Ok(adapters.swap_remove(i)),
        None => {
            let list = names.iter().enumerate().map(|(i, name)| format!("{i} ({name})")).collect::<Vec<_>>().join(", ");
            let may_be = if list.is_empty() { "nothing: there is no adapter at all".to_owned() } else { list };
            Err(Failure::new(format!("--adapter: was {wanted:?}, may be {may_be}, or a part of a name"))
                .next("`phasor info` lists the devices with their drivers"))
        }
    }
}

/// The number itself, or the first name that holds the text.
fn find(wanted: &str, names: &[String]) -> Option<usize> {
    let number = wanted.parse::<usize>().ok().filter(|&i| i < names.len());
    let part = wanted.to_lowercase();
    number.or_else(|| names.iter().position(|name| !part.is_empty() && name.to_lowercase().contains(&part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_a_part_of_a_name_finds_an_adapter() {
        let names = ["NVIDIA GeForce RTX 3060", "llvmpipe (LLVM 15)"].map(String::from);
        assert_eq!(find("1", &names), Some(1));
        assert_eq!(find("LLVM", &names), Some(1));
        assert_eq!(find("3060", &names), Some(0));
        assert_eq!(find("2", &names), None);
        assert_eq!(find("radeon", &names), None);
        assert_eq!(find("", &names), None);
    }
}
