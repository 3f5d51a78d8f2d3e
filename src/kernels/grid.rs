//! How work meets a device's limits: how many groups to start, and which range of a buffer to bind.

use crate::{ElementType, Error, ErrorKind, Layout, Result};
use std::ops::Range;

/// The limits that plans depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Groups in one dimension of a dispatch.
    pub groups: u32,
    /// Invocations in a group.
    pub invocations: u32,
    /// Invocations in a group, along each dimension.
    pub workgroup: [u32; 3],
    /// Bytes of one storage binding.
    pub binding: u64,
    /// What a binding's offset must be a multiple of, in bytes.
    pub alignment: u64,
    /// Bytes of a buffer.
    pub buffer: u64,
}

#[cfg(feature = "gpu")]
impl From<&wgpu::Limits> for Limits {
    fn from(limits: &wgpu::Limits) -> Self {
        Self {
            groups: limits.max_compute_workgroups_per_dimension,
            invocations: limits.max_compute_invocations_per_workgroup,
            workgroup: [
                limits.max_compute_workgroup_size_x,
                limits.max_compute_workgroup_size_y,
                limits.max_compute_workgroup_size_z,
            ],
            // Kernels count words in u32, and offsets in words of two bytes must fit too, whatever a driver allows.
            binding: limits.max_storage_buffer_binding_size.min(i32::MAX as u64 / 4 * 4),
            alignment: u64::from(limits.min_storage_buffer_offset_alignment),
            buffer: limits.max_buffer_size,
        }
    }
}

impl Limits {
    /// The bytes to bind so that all of these layouts' elements can be reached, aligned as the device wants it.
    ///
    /// Never empty: a tensor without elements that shares a dispatch with others still fills its binding.
    pub(crate) fn range(self, layouts: impl IntoIterator<Item = (Layout, ElementType)>) -> Range<u64> {
        let bytes = |(layout, element): (Layout, ElementType)| {
            let (span, size) = (layout.span(), element.bytes() as u64);
            (span.start as u64 * size)..(span.end as u64 * size)
        };
        // Nothing may begin at its buffer's end: what is bound for a tensor without elements is the buffer's first word.
        let filled = layouts.into_iter().filter(|(layout, _)| !layout.is_empty());
        let all = filled.map(bytes).reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..4);
        all.start / self.alignment * self.alignment..all.end.next_multiple_of(4)
    }

    /// A workgroup that spans as much as it can of the first dimension, then of the second, then of the third: `wanted`
    /// of each, but no more than the device allows, nor more than 256 invocations in all.
    pub(crate) fn workgroup(self, wanted: [usize; 3]) -> [u32; 3] {
        let mut room = self.invocations.min(256);
        std::array::from_fn(|axis| {
            let wanted = u32::try_from(wanted[axis]).unwrap_or(u32::MAX);
            let size = wanted.min(room).min(self.workgroup[axis]).max(1);
            room /= size;
            size
        })
    }

    /// Refuses work of one dimension that takes more groups than the device starts.
    pub(crate) fn expect_groups(self, argument: &str, groups: u32) -> Result<()> {
        if groups <= self.groups {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Limit,
            "max_compute_workgroups_per_dimension",
            format!("{groups} groups for {argument}"),
            format!("up to {} groups on this device", self.groups),
        ))
    }

    /// Refuses a binding that is larger than the device allows.
    pub(crate) fn expect_binding(self, argument: &str, bytes: u64) -> Result<()> {
        if bytes <= self.binding {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Limit,
            "max_storage_buffer_binding_size",
            format!("{bytes} bytes for {argument}"),
            format!("up to {} bytes on this device", self.binding),
        ))
    }
}

#[cfg(test)]
impl Limits {
    /// WebGPU's lowest.
    pub(crate) const LOWEST: Self = Self {
        groups: 65_535,
        invocations: 256,
        workgroup: [256, 256, 64],
        binding: 128 << 20,
        alignment: 256,
        buffer: 256 << 20,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workgroup_spans_memory_in_its_order_and_keeps_within_limits() {
        let of = |wanted| Limits::LOWEST.workgroup(wanted);
        assert_eq!(of([16, 8, 2048]), [16, 8, 2]);
        assert_eq!(of([1, 1, 4096]), [1, 1, 64]);
        assert_eq!(of([1000, 3, 5]), [256, 1, 1]);
        assert_eq!(of([12, 30, 7]), [12, 21, 1]);
        assert_eq!(Limits { invocations: 64, ..Limits::LOWEST }.workgroup([16, 2, 9]), [16, 2, 2]);
    }
}
