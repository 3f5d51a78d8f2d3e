//! How far a correct attention kernel's numbers may be from the exact ones, given the numbers it was asked with.
//!
//! Let `u = 2^-24`, `D` channels, `S` keys. What WGSL lets `exp2(x)` be off by is `3 + 2 |x|` units in the last place, two
//! `u` each; a division by 2.5 of them.
//!
//! **Products.** `scale * q·k`, in f32, with the factor for doublings folded into the scale, takes `D` products, as many
//! sums and three more roundings: `d = (D + 3) u P` with `P = scale * sum of |q_c k_c|`, at its largest. Gates' logits alike.
//!
//! **Rotation.** A pair of channels up to `m` in size becomes one of channels up to `A sqrt(2) m`, each off by
//! `A m (2 (2e-7 + 2 u) + 2 sqrt(2) u)` (`bound.rs`): products of two of these are twice `A^2 P`, and off by
//! `t = 2 sqrt(2) A^2 P (2 (2e-7 + 2 u) + 2 sqrt(2) u)`, which is added to `d`.
//!
//! **Positions.** A gate is `1 / (1 + e)` or `e / (1 + e)` with `e = exp2(-|x|) <= 1`: `6 u` from `exp2`, `5 u` from the
//! division, and a quarter of what its logit is off by. Summed over the keys, each sum of a fraction below 2 rounded:
//! `p = S (d / 4 + 13 u)`.
//!
//! **Contextual bias.** `q·E` is off by `(D + 1) u Z`, `Z = sum of |q_c E_c|` at its largest, and where queries are rotated
//! by what that adds; between positions it changes by at most `2 Z` a position; interpolation rounds four times:
//! `b = |bias scale| ((D + 5) u Z + t + 2 Z p)`.
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

use super::bound::{Bound, U, stored};
use phasor::ElementType;
use std::f64::consts::{LOG2_E, SQRT_2};

/// The sizes that errors grow with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub channels: usize,
    pub keys: usize,
    /// The largest `scale * sum of |q_c k_c|`, of keys that gates are made from too.
    pub product: f64,
    /// What products are off by since their factors were rotated: `t`.
    pub turned: f64,
    /// The largest `|bias|` of a key that is seen.
    pub bias: f64,
    /// The largest value.
    pub value: f64,
    /// With contextual position encoding.
    pub contextual: Option<Contextual>,
}

/// The sizes that errors of `q·E` grow with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contextual {
    /// The largest `sum of |q_c E_c|`.
    product: f64,
    /// What products are off by since queries were rotated.
    turned: f64,
    /// The largest change of `q·E` from a position to the next.
    slope: f64,
    bias_scale: f64,
}

impl Contextual {
    /// Of products up to this, which may change their sign from a position to the next.
    pub fn new(product: f64) -> Self {
        Self { product, turned: 0.0, slope: 2.0 * product, bias_scale: 1.0 }
    }

    /// Of queries that are rotated by a factor, given products before that.
    pub fn turned(product: f64, factor: f64) -> Self {
        Self { turned: factor * product * turning(factor), ..Self::new(SQRT_2 * factor * product) }
    }

    /// With a factor on the bias.
    pub fn times(self, bias_scale: f64) -> Self {
        Self { bias_scale, ..self }
    }
}

/// What a channel of size 1 is off by, over the factor that it is rotated by.
fn turning(factor: f64) -> f64 {
    2.0 * Bound::new(factor).cos_sin(0) / factor + 2.0 * SQRT_2 * U
}

impl Sizes {
    /// `P` of channels that are rotated by a factor, given that before.
    pub fn turned(product: f64, factor: f64) -> f64 {
        2.0 * factor * factor * product
    }

    /// `t`, given `P` before the rotation.
    pub fn turning(product: f64, factor: f64) -> f64 {
        2.0 * SQRT_2 * factor * factor * product * turning(factor)
    }

    /// `d`.
    fn products(&self) -> f64 {
        (self.channels + 3) as f64 * U * self.product + self.turned
    }

    /// For a sum of gates.
    pub fn gate_sum(&self) -> f64 {
        self.keys as f64 * (self.products() / 4.0 + 13.0 * U)
    }

    /// For an interpolation of `q·E` at positions that are right to `gate_sum`.
    pub fn contextual_bias(&self) -> f64 {
        self.contextual.map_or(0.0, |Contextual { product, turned, slope, bias_scale }| {
            bias_scale.abs() * ((self.channels + 5) as f64 * U * product + turned + slope * self.gate_sum())
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

    const PLAIN: Sizes =
        Sizes { channels: 8, keys: 20, product: 1.0, turned: 0.0, bias: 0.0, value: 1.0, contextual: None };

    #[test]
    fn a_lost_key_or_a_wrong_position_is_out_of_bounds() {
        // One key of twenty.
        assert!(1000.0 * PLAIN.out(ElementType::F32, 0.5) < 1.0 / 20.0, "{}", PLAIN.out(ElementType::F32, 0.5));
        let contextual = Sizes { contextual: Some(Contextual::new(0.5)), ..PLAIN };
        // A gate that is counted twice moves positions by some tenths, and logits by half of that.
        assert!(1000.0 * contextual.gate_sum() < 0.1, "{}", contextual.gate_sum());
        assert!(50.0 * contextual.out(ElementType::F32, 0.5) < 0.05, "{}", contextual.out(ElementType::F32, 0.5));
    }

    #[test]
    fn a_mask_of_f32s_lowest_value_is_right_to_f32() {
        assert!(PLAIN.lse(-1e30) > 1e23 && PLAIN.lse(-1e30) < 1e24);
    }
}
