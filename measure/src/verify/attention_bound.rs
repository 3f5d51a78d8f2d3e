//! How far a correct attention kernel's numbers may be from the exact ones, given the numbers it was asked with.
//!
//! Let `u = 2^-24`, `D` channels, `S` keys. What WGSL lets `exp2(x)` be off by is `3 + 2 |x|` units in the last place, two
//! `u` each; a division by 2.5 of them.
//!
//! **Products.** `scale * q·k`, in f32, with the factor for doublings folded into the scale, takes `D` products, as many
//! sums and three more roundings: `d = (D + 3) u P` with `P = scale * sum of |q_c k_c|`, at its largest. Gates' logits alike.
//!
//! **Positions.** A gate is `1 / (1 + e)` or `e / (1 + e)` with `e = exp2(-|x|) <= 1`: `6 u` from `exp2`, `5 u` from the
//! division, and a quarter of what its logit is off by. Summed over the keys, each sum of a fraction below 2 rounded:
//! `p = S (d / 4 + 13 u)`.
//!
//! **Contextual bias.** `q·E` is off by `(D + 1) u Z`, `Z = sum of |q_c E_c|` at its largest; between positions it changes
//! by at most `slope` a position; interpolation rounds four times: `b = |bias scale| ((D + 5) u Z + slope p)`.
//!
//! **Softmax.** A logit, which is at most `L = P + |bias| + |bias scale| Z`, is off by `l = d + b + 3 u L`. A weight
//! `exp2(x)` then is by `l + (3 + 2 X) 2 u`, where `X` is how far logits lie apart in doublings, `2 L log2(e)` at most;
//! whatever was summed before a new largest logit came is multiplied by another `exp2`, at most `S` times, of numbers that
//! are `X` together: `w = l + (3 + 3 S + 4 X) 2 u`. A weighted average of values up to `V` moves by twice the weights'
//! error, and rounds `S` sums twice:
//!
//! ```text
//! |error of out| <= V (2 w + (2 S + 6) u)        |error of lse| <= w + (S + 4) u + log's,  log's = 2^-21 + 6 u ln S + 2 u |lse|
//! ```

use super::bound::{U, stored};
use phasor::ElementType;
use std::f64::consts::LOG2_E;

/// The sizes that errors grow with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub channels: usize,
    pub keys: usize,
    /// The largest `scale * sum of |q_c k_c|`, of keys that gates are made from too.
    pub product: f64,
    /// The largest `|bias|` of a key that is seen.
    pub bias: f64,
    /// The largest value.
    pub value: f64,
    /// With contextual position encoding.
    pub contextual: Option<Contextual>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Contextual {
    /// The largest `sum of |q_c E_c|`.
    pub product: f64,
    /// The largest change of `q·E` from a position to the next.
    pub slope: f64,
    pub bias_scale: f64,
}

impl Sizes {
    /// `d`.
    fn products(&self) -> f64 {
        (self.channels + 3) as f64 * U * self.product
    }

    /// For a sum of gates.
    pub fn gate_sum(&self) -> f64 {
        self.keys as f64 * (self.products() / 4.0 + 13.0 * U)
    }

    /// For an interpolation of `q·E` at positions that are right to `gate_sum`.
    pub fn contextual_bias(&self) -> f64 {
        self.contextual.map_or(0.0, |Contextual { product, slope, bias_scale }| {
            bias_scale.abs() * ((self.channels + 5) as f64 * U * product + slope * self.gate_sum())
        })
    }

    /// `L`.
    fn logit(&self) -> f64 {
        self.product + self.bias + self.contextual.map_or(0.0, |c| c.bias_scale.abs() * c.product)
    }

    /// `w`.
    fn weights(&self) -> f64 {
        let apart = 2.0 * self.logit() * LOG2_E;
        let logits = self.products() + self.contextual_bias() + 3.0 * U * self.logit();
        logits + (3.0 + 3.0 * self.keys as f64 + 4.0 * apart) * 2.0 * U
    }

    /// For an output that is stored as `element`.
    pub fn out(&self, element: ElementType, exact: f64) -> f64 {
        let own = self.value * (2.0 * self.weights() + (2 * self.keys + 6) as f64 * U);
        stored(element, exact, own)
    }

    /// For a log-sum-exp.
    pub fn lse(&self, exact: f64) -> f64 {
        let keys = self.keys.max(1) as f64;
        let log = 2f64.powi(-21) + 6.0 * U * keys.ln() + 2.0 * U * exact.abs();
        self.weights() + (keys + 4.0) * U + log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Sizes = Sizes { channels: 8, keys: 20, product: 1.0, bias: 0.0, value: 1.0, contextual: None };

    #[test]
    fn a_lost_key_or_a_wrong_position_is_out_of_bounds() {
        // One key of twenty.
        assert!(1000.0 * PLAIN.out(ElementType::F32, 0.5) < 1.0 / 20.0, "{}", PLAIN.out(ElementType::F32, 0.5));
        let contextual = Sizes { contextual: Some(Contextual { product: 2.0, slope: 0.5, bias_scale: 1.0 }), ..PLAIN };
        // A gate that is counted twice moves positions by some tenths, and logits by half of that.
        assert!(1000.0 * contextual.gate_sum() < 0.1, "{}", contextual.gate_sum());
        assert!(100.0 * contextual.out(ElementType::F32, 0.5) < 0.05, "{}", contextual.out(ElementType::F32, 0.5));
    }

    #[test]
    fn a_mask_of_f32s_lowest_value_is_right_to_f32() {
        assert!(PLAIN.lse(-1e30) > 1e23 && PLAIN.lse(-1e30) < 1e24);
    }
}
