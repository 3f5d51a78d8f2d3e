//! Frequencies as fractions of a turn, for angles that stay exact at any position.
//!
//! `m * w` in f32 is off by 1e-2 radians at position 131,072. A turn, though, is the same as none, so a frequency needs
//! only its fraction of a turn per token, and an integer that wraps at one whole turn does the reduction by itself: the
//! host computes the fraction to 64 bits, and the shader multiplies it by the integer position.

/// 1 / (2 pi) in two doubles, together good to 106 bits.
const TURNS_PER_RADIAN: (f64, f64) = (0.159_154_943_091_895_35, -9.839_338_337_591_243e-18);

/// The unit of a phase: one turn is 2^32 of them.
const UNITS_PER_TURN: f64 = 4_294_967_296.0;

/// How far a pair turns per token, modulo whole turns, in units of 2^-32 turn.
///
/// The layout is that of two 32-bit words, as the shaders read it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "gpu", derive(bytemuck::Pod, bytemuck::Zeroable))]
#[repr(C)]
pub struct Turn {
    /// The nearest whole number of units, wrapped to 32 bits.
    pub whole: u32,
    /// What the exact fraction has beyond `whole`, from -0.5 to 0.5 units.
    pub rest: f32,
}

impl Turn {
    /// The fraction of a turn that `radians` per token come to.
    ///
    /// It is good to 2^-64 turn for frequencies up to 2^40 radians per token; no law gives more than 1. The number must
    /// be finite, as [`Frequencies`](super::Frequencies) guarantees.
    #[must_use]
    pub fn from_radians(radians: f64) -> Self {
        let (high, low) = TURNS_PER_RADIAN;
        let turns = radians * high;
        let remainder = rounded_away(radians, high) + radians * low;
        // Removing the whole turns, scaling by a power of two and splitting at the nearest integer are all exact.
        let units = (turns - turns.trunc()) * UNITS_PER_TURN;
        let beyond = (units - units.round()) + (remainder - remainder.trunc()) * UNITS_PER_TURN;
        // The remainder can push the rest past the next half.
        let carry = beyond.round();
        Self { whole: wrapped(units.round() + carry), rest: (beyond - carry) as f32 }
    }

    /// Where the pair stands at a position, in units of 2^-32 turn: what the shaders compute, operation by operation.
    ///
    /// For positions from -2^24 to 2^24 it is within 2 units, 3e-9 radians; beyond, the f32 product adds up to
    /// `|position| * 2^-24` units.
    #[must_use]
    pub fn phase(self, position: i32) -> u32 {
        let rest = (position as f32 * self.rest) as i32;
        (position as u32).wrapping_mul(self.whole).wrapping_add(rest as u32)
    }
}

/// What rounding takes away from a product, to 2^-106 of it.
///
/// As a fused multiply-add would give it, which not every processor has: halves of the mantissas multiply exactly.
pub(crate) fn rounded_away(a: f64, b: f64) -> f64 {
    let halves = |x: f64| {
        let upper = f64::from_bits(x.to_bits() >> 27 << 27);
        (upper, x - upper)
    };
    let ((a, small_a), (b, small_b), product) = (halves(a), halves(b), a * b);
    ((a * b - product) + a * small_b + small_a * b) + small_a * small_b
}

/// An integer of at most a few turns' units, modulo 2^32.
fn wrapped(units: f64) -> u32 {
    units as i64 as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 / (2 pi) * 2^320, least significant limb first: more digits than any double in these tests can reach.
    const EXACT: [u64; 5] = [
        0x6dc9_1b8e_9093_74b8,
        0x7f94_58ea_f7ae_f158,
        0x36d8_a566_4f10_e410,
        0x7f09_d5f4_7d4d_3770,
        0x28be_60db_9391_054a,
    ];

    /// `w / (2 pi)` modulo 1, times 2^64, in integers alone: the double's mantissa times [`EXACT`], shifted.
    fn exact_fraction(w: f64) -> u64 {
        let bits = w.abs().to_bits();
        let (mantissa, exponent) = match (bits >> 52) as i64 {
            0 => (bits, -1074),
            e => (bits & ((1 << 52) - 1) | 1 << 52, e - 1075),
        };
        let mut limbs = [0u64; 7];
        let mut carry = 0u128;
        for (limb, factor) in limbs.iter_mut().zip(EXACT) {
            carry += u128::from(mantissa) * u128::from(factor);
            *limb = carry as u64;
            carry >>= 64;
        }
        limbs[5] = carry as u64;
        // The product is w / (2 pi) * 2^(320 - exponent): bit 320 - exponent is worth one turn.
        let first = 320 - exponent - 64;
        let limb = |i: i64| usize::try_from(i).ok().and_then(|i| limbs.get(i)).copied().unwrap_or(0);
        let pair = u128::from(limb(first.div_euclid(64))) | u128::from(limb(first.div_euclid(64) + 1)) << 64;
        let fraction = (pair >> first.rem_euclid(64)) as u64;
        if w < 0.0 { fraction.wrapping_neg() } else { fraction }
    }

    fn frequencies() -> Vec<f64> {
        let mut list = vec![0.0, -0.0, 1.0, 0.5, std::f64::consts::TAU, std::f64::consts::PI, 1e-9, 3e-12, 1e-300];
        list.extend([6.3, 7.0, 100.25, 12_345.678, 1e9, 5e-324, -1.0, -0.333, -1e-20, -9.42]);
        for base in [1e4, 5e5, 1e6, 1e7] {
            list.extend((0..64).map(|i| f64::powf(base, -f64::from(i) / 64.0)));
        }
        list
    }

    fn distance(a: u32, b: u32) -> u32 {
        (a.wrapping_sub(b) as i32).unsigned_abs()
    }

    #[test]
    fn the_two_words_hold_the_fraction_to_64_bits() {
        for w in frequencies() {
            let turn = Turn::from_radians(w);
            let held =
                ((f64::from(turn.rest) * UNITS_PER_TURN) as i64 as u64).wrapping_add(u64::from(turn.whole) << 32);
            let off = (held.wrapping_sub(exact_fraction(w)) as i64).unsigned_abs();
            // Half an ulp of an f32 below 0.5 is 2^-26 units, 2^6 of these; the double-double adds a few.
            assert!(off <= 1 << 7, "w = {w}: off by {off} of 2^-64 turn");
            assert!(turn.rest.abs() <= 0.5, "w = {w}: rest {}", turn.rest);
        }
    }

    #[test]
    fn phases_are_exact_at_any_position() {
        let near = [0, 1, 2, 3, 4095, 4096, 131_071, 1_000_000, (1 << 24) - 1, 1 << 24];
        let far = [1_234_567_890, i32::MAX, i32::MIN + 1, i32::MIN];
        for w in frequencies() {
            let (turn, fraction) = (Turn::from_radians(w), exact_fraction(w));
            for m in near.into_iter().chain(near.map(|m| -m)).chain(far) {
                let exact = (i64::from(m) as u64).wrapping_mul(fraction);
                let off = distance(turn.phase(m), (exact.wrapping_add(1 << 31) >> 32) as u32);
                let bound = if m.unsigned_abs() <= 1 << 24 { 2 } else { 2 + (m.unsigned_abs() >> 24) };
                assert!(off <= bound, "w = {w}, m = {m}: off by {off} units");
            }
        }
    }

    #[test]
    fn a_turn_and_its_negative_cancel() {
        for w in frequencies() {
            let (there, back) = (Turn::from_radians(w), Turn::from_radians(-w));
            assert_eq!(there.phase(77).wrapping_add(back.phase(77)), 0, "w = {w}");
        }
    }

    #[test]
    fn no_frequency_is_no_turn() {
        assert_eq!(Turn::from_radians(0.0), Turn::default());
        assert_eq!(Turn::default().phase(i32::MIN), 0);
    }
}
