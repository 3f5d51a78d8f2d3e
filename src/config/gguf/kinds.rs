//! Which kinds of layers a model has.

use super::File;
use super::architectures::{self, Rotation};
use crate::Result;
use crate::config::layer::check_layers;

/// What tells the ropes of a model apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Kind {
    /// Whether the layer has a sliding window; `None` if none has.
    pub window: Option<bool>,
    /// Whether it rotates.
    pub rotates: bool,
}

impl Kind {
    /// Whether it is a layer with a sliding window among others without.
    pub fn has_window(self) -> bool {
        self.window == Some(true)
    }
}

impl File<'_> {
    /// The kind of each layer.
    pub(super) fn kinds(&self) -> Result<Vec<Kind>> {
        let layers = self.keys.required_count("block_count")?;
        let layers = check_layers(self.keys.path("block_count"), layers)?;
        let windows = self.windows(layers)?;
        // Llama 4 without chunks, said by a window of 0, rotates everywhere.
        let unbroken = self.architecture() == "llama4" && self.keys.count("attention.sliding_window")? == Some(0);
        let nope = architectures::nope_period(self.architecture()).filter(|_| !unbroken);
        let pattern = self.keys.list("attention.rope_pattern")?;
        let dense = self.leading_dense_layers()?;
        let rotates = |i: u32, window: Option<bool>| match (self.rotation, window) {
            (Rotation::None, _) => false,
            _ if i < dense => true,
            (_, Some(false)) if architectures::only_windows_rotate(self.architecture()) => false,
            _ => match &pattern {
                Some(pattern) => pattern.get(i as usize) != Some(&0.0),
                None => nope.is_none_or(|period| !(i + 1).is_multiple_of(period)),
            },
        };
        let kind = |i: u32| {
            let window = windows.as_ref().map(|windows| windows.get(i as usize) == Some(&true));
            Kind { window, rotates: rotates(i, window) }
        };
        Ok((0..layers).map(kind).collect())
    }

    /// How many layers rotate whatever their window, because they come before the experts.
    fn leading_dense_layers(&self) -> Result<u32> {
        match self.architecture() {
            "cohere2moe" => Ok(self.keys.count("leading_dense_block_count")?.unwrap_or(0)),
            _ => Ok(0),
        }
    }

    /// For each layer whether it has a sliding window; `None` if none has.
    fn windows(&self, layers: u32) -> Result<Option<Vec<bool>>> {
        if self.keys.count("attention.sliding_window")?.is_none_or(|window| window == 0) {
            return Ok(None);
        }
        const PATTERN: &str = "attention.sliding_window_pattern";
        if let Some(listed) = self.keys.list(PATTERN)? {
            return Ok(Some(listed.into_iter().map(|has_window| has_window != 0.0).collect()));
        }
        let Some(order) = architectures::windows(self.architecture()) else { return Ok(None) };
        let period = self.keys.count(PATTERN)?.unwrap_or(order.period);
        // A period of 0, of which no layer's number is a multiple, means windows everywhere, as in llama.cpp.
        let full = |i: u32| match order.full_first {
            true => period > 0 && i.is_multiple_of(period),
            false => (i + 1).is_multiple_of(period),
        };
        Ok(Some((0..layers).map(|i| !full(i)).collect()))
    }
}
