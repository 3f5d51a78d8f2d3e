//! How far a correct kernel's numbers may be from the exact ones.
//!
//! Let `u = 2^-24`, the relative error of one f32 operation, and `A` the factor on cosine and sine.
//!
//! **Cosine and sine.** phasor promises 2e-7 for cos and sin before the factor: the polynomial's and the roundings' part
//! is 1.2e-7, and within ±2^24 the phase is right to 2 units of 2^-32 turn, 3e-9 radians. Farther out the phase's f32
//! product loses up to `|m| * 2^-24` units more (`frequencies::Turn::phase`). Each rounding that the factor brings adds
//! `u`: rounding the factor itself to f32 and multiplying by it make two for a table or a rotation without one, two more
//! where a rotation multiplies a table's entries by a factor of its own. A factor of exactly 1 brings none. So
//!
//! ```text
//! |error of A cos|, |error of A sin|  <=  A d,     d = 2e-7 + n u + max(|m| - 2^24, 0) * 2^-24 * 2 pi / 2^32
//! ```
//!
//! **Rotation.** `y0 = x0 c - x1 s` in f32 takes two products and one difference. The products err by `u |x0 c|` and
//! `u |x1 s|`, the difference by `u |y0| <= u (|x0 c| + |x1 s|)`; a fused multiply-add only leaves some of that out. By
//! Cauchy and Schwarz `|x0 c| + |x1 s| <= A hypot(x0, x1)`, and the same for y1. With the errors of c and s themselves:
//!
//! ```text
//! |error of y|  <=  A (d (|x0| + |x1|) + 2 u hypot(x0, x1))
//! ```
//!
//! **Storage.** What is stored as f16 is rounded to one of its two neighbours (WGSL does not say which), at most
//! `2^-10 |y|` away, or `2^-24` among the subnormals; bf16 is rounded by the kernel itself to the nearest, at most
//! `2^-8 |y|` away.
//!
//! Products of two errors are 1e-14 and disappear in the 8e-8 that the promise leaves above what the kernels reach. A
//! device may flush results below the smallest normal f32 to zero, which is added.

use phasor::ElementType;

/// The relative error of one f32 operation.
pub(crate) const U: f64 = 1.0 / (1u32 << 24) as f64;

/// One unit of phase in radians.
const UNIT: f64 = std::f64::consts::TAU / (1u64 << 32) as f64;

/// What phasor promises for cosine and sine.
const COS_SIN: f64 = 2e-7;

/// The bound for one encoding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// The factor on cosine and sine: `A`.
    pub factor: f64,
    /// How many roundings the factor brings.
    pub roundings: u32,
}

impl Bound {
    /// For a table's entries, or a rotation without a table, by this factor.
    #[must_use]
    pub fn new(factor: f64) -> Self {
        Self { factor, roundings: if factor == 1.0 { 0 } else { 2 } }
    }

    /// For a rotation that multiplies a table's entries by one more factor.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        let more = if factor == 1.0 { 0 } else { 2 };
        Self { factor: self.factor * factor, roundings: self.roundings + more }
    }

    /// For cosine and sine times the factor, at this position.
    #[must_use]
    pub fn cos_sin(self, position: i32) -> f64 {
        self.factor * self.each(position)
    }

    /// For both channels of a pair that were `x0` and `x1`.
    #[must_use]
    pub fn rotation(self, position: i32, x0: f32, x1: f32) -> f64 {
        let (x0, x1) = (f64::from(x0).abs(), f64::from(x1).abs());
        self.factor * (self.each(position) * (x0 + x1) + 2.0 * U * x0.hypot(x1)) + f64::from(f32::MIN_POSITIVE)
    }

    /// `d` of the formulas above.
    fn each(self, position: i32) -> f64 {
        let beyond = f64::from(position.unsigned_abs().saturating_sub(1 << 24));
        COS_SIN + f64::from(self.roundings) * U + beyond * U * UNIT
    }
}

/// The bound of a number near `exact` that was good to `bound` before it was stored.
#[must_use]
pub(super) fn stored(element: ElementType, exact: f64, bound: f64) -> f64 {
    let largest = exact.abs() + bound;
    bound
        + match element {
            ElementType::F16 => (largest / 1024.0).max(U),
            ElementType::BF16 => largest / 256.0,
            _ => 0.0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_promise_itself_holds_without_a_factor_and_within_2_to_the_24() {
        let plain = Bound::new(1.0);
        assert_eq!(plain.cos_sin(0), 2e-7);
        assert_eq!(plain.cos_sin(1 << 24), 2e-7);
        assert_eq!(plain.cos_sin(-(1 << 24)), 2e-7);
        assert!(plain.cos_sin(i32::MIN) < 4e-7);
        assert_eq!(plain.times(1.0), plain);
        assert_eq!(Bound::new(2.0).times(0.25), Bound { factor: 0.5, roundings: 4 });
    }

    #[test]
    fn a_kernel_with_the_old_mistakes_is_out_of_bounds() {
        // cos(m * w) with the product in f32, at position 131,071.
        let (m, w) = (131_071i32, 0.749_894_2f64);
        let wrong = f64::from(m as f32 * w as f32).cos() - (f64::from(m) * w).cos();
        assert!(wrong.abs() > 100.0 * Bound::new(1.0).cos_sin(m), "off by {wrong}");
        // Arithmetic in bf16.
        assert!(1.0 / 512.0 > Bound::new(1.0).rotation(m, 1.0, 1.0));
    }

    #[test]
    fn storage_costs_what_its_rounding_costs() {
        assert_eq!(stored(ElementType::F32, 1.0, 1e-7), 1e-7);
        let half = f64::from(half::f16::from_f64(1.0 / 3.0)) - 1.0 / 3.0;
        assert!(
            half.abs() < stored(ElementType::F16, 1.0 / 3.0, 0.0)
                && half.abs() * 8.0 > stored(ElementType::F16, 1.0 / 3.0, 0.0)
        );
        let brain = f64::from(half::bf16::from_f64(1.0 / 3.0)) - 1.0 / 3.0;
        assert!(brain.abs() < stored(ElementType::BF16, 1.0 / 3.0, 0.0));
    }
}
