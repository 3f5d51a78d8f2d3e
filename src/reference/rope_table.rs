//! Twin of `shaders/rope_table.wgsl`.

use crate::frequencies::{Frequencies, rounded_away};

/// Cosines and sines of each position, times the attention factor: two arrays `[positions, pairs]`.
///
/// Within 1e-15 (times the factor) of the true ones for every position that an i32 can hold.
///
/// ```
/// use phasor::{frequencies::Plain, reference::rope_table};
/// let frequencies = Plain { base: 10_000.0 }.frequencies(4)?;
/// let (cos, sin) = rope_table(&frequencies, [0, 1]);
/// assert_eq!(cos, [1.0, 1.0, 1f64.cos(), 0.01f64.cos()]);
/// assert_eq!(sin, [0.0, 0.0, 1f64.sin(), 0.01f64.sin()]);
/// # Ok::<(), phasor::Error>(())
/// ```
pub fn rope_table(frequencies: &Frequencies, positions: impl IntoIterator<Item = i32>) -> (Vec<f64>, Vec<f64>) {
    let factor = frequencies.attention_factor();
    positions
        .into_iter()
        .flat_map(|position| frequencies.inv_freq().iter().map(move |&w| cos_sin(position.into(), w)))
        .map(|(cos, sin)| (factor * cos, factor * sin))
        .unzip()
}

/// Cosine and sine of a product that need not fit an f64: what its rounding takes away, up to 2.4e-7 radians at the ends
/// of i32, is added as a turn by that small angle.
fn cos_sin(position: f64, inv_freq: f64) -> (f64, f64) {
    let angle = position * inv_freq;
    let rest = rounded_away(position, inv_freq);
    let (sin, cos) = angle.sin_cos();
    (cos - rest * sin, sin + rest * cos)
}

#[cfg(test)]
mod tests {
    use super::cos_sin;

    #[test]
    fn the_rounding_of_the_angle_is_made_good() {
        let (cos, sin) = cos_sin(2_147_483_647.0, 0.1);
        assert!((cos.hypot(sin) - 1.0).abs() < 1e-15);
        // Turning on by one token is a turn by the frequency.
        let (before, by) = (cos_sin(2_147_483_646.0, 0.1), cos_sin(1.0, 0.1));
        assert!((before.0 * by.0 - before.1 * by.1 - cos).abs() < 1e-15);
        assert!((before.1 * by.0 + before.0 * by.1 - sin).abs() < 1e-15);
    }
}
