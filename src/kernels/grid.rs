//! How work meets a device's limits: how many groups to start, and which range of a buffer to bind.

use crate::{ElementType, Error, Layout, Result};
use std::ops::Range;

/// The limits that plans depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Groups in one dimension of a dispatch.
    pub groups: u32,
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
            binding: limits.max_storage_buffer_binding_size,
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
            let span = layout.span();
            let end = span.end.max(span.start + 1);
            (span.start as u64 * element.bytes() as u64)..(end as u64 * element.bytes() as u64)
        };
        let all = layouts.into_iter().map(bytes).reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..0);
        all.start / self.alignment * self.alignment..all.end.next_multiple_of(4)
    }

    /// Refuses work of one dimension that takes more groups than the device starts.
    pub(crate) fn expect_groups(self, argument: &str, groups: u32) -> Result<()> {
        if groups <= self.groups {
            return Ok(());
        }
        Err(Error::Limit {
            limit: "max_compute_workgroups_per_dimension".into(),
            was: format!("{groups} groups for {argument}"),
            may_be: format!("up to {} groups on this device", self.groups),
        })
    }

    /// Refuses a binding that is larger than the device allows.
    pub(crate) fn expect_binding(self, argument: &str, bytes: u64) -> Result<()> {
        if bytes <= self.binding {
            return Ok(());
        }
        Err(Error::Limit {
            limit: "max_storage_buffer_binding_size".into(),
            was: format!("{bytes} bytes for {argument}"),
            may_be: format!("up to {} bytes on this device", self.binding),
        })
    }
}
