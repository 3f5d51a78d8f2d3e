//! Twin of `shaders/rope_table.wgsl`.

use crate::frequencies::Frequencies;

/// Cosines and sines of each position, times the attention factor: two arrays `[positions, pairs]`.
///
/// The angle `position * inv_freq` is a product of f64: within 2e-9 radians up to position 2^24.
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
        .flat_map(|position| frequencies.inv_freq().iter().map(move |w| f64::from(position) * w))
        .map(|angle| (factor * angle.cos(), factor * angle.sin()))
        .unzip()
}
