//! A query scale that grows with the position: not rotary encoding, but it lives in the same settings.
//!
//! ```text
//! q *= 1 + scale * ln(1 + floor((m + shift) / window))
//! ```
//!
//! Llama 4 does it in its layers without rotation (`attn_scale` 0.1, `floor_scale` 8192, shift 1); Ministral 3 and
//! Mistral 4 in every layer (`llama_4_scaling_beta`, the original context as window, shift 0).

/// How much larger a query gets with its position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryScale {
    /// The weight of the logarithm.
    pub scale: f64,
    /// How many tokens make one step, at least 1.
    pub window: u32,
    /// What is added to the position first: 1 in Llama 4, 0 in Mistral's models.
    pub shift: u32,
}

impl QueryScale {
    /// The factor on the query at a position. Positions below 0 count as 0, a window of 0 as 1.
    #[must_use]
    pub fn at(&self, position: i32) -> f64 {
        let steps = (i64::from(position.max(0)) + i64::from(self.shift)) / i64::from(self.window.max(1));
        1.0 + self.scale * (steps as f64).ln_1p()
    }
}
