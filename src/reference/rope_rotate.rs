//! Twin of `shaders/rope_rotate.wgsl`.

use super::rope_table;
use crate::frequencies::Frequencies;
use crate::{Direction, Error, Layout, Pairing, Result};

/// Turns one tensor `[batch, tokens, heads, channels]` in place; `position(b, t)` says where a token stands.
///
/// The channels that turn are the `frequencies.rotary_dim()` from `first_channel` on.
///
/// ```
/// use phasor::{Direction, Layout, Pairing, frequencies::Plain, reference::rope_rotate};
/// let frequencies = Plain { base: 10_000.0 }.frequencies(2)?;
/// let mut x = [1.0, 0.0];
/// let layout = Layout::contiguous([1, 1, 1, 2])?;
/// rope_rotate(&mut x, layout, &frequencies, Pairing::HalfSplit, 0, Direction::Forward, |_, _| 3)?;
/// assert_eq!(x, [3f64.cos(), 3f64.sin()]);
/// # Ok::<(), phasor::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Tensor`](crate::ErrorKind::Tensor) if the layout reaches past `x`, or its heads have too few channels.
pub fn rope_rotate(
    x: &mut [f64],
    layout: Layout,
    frequencies: &Frequencies,
    pairing: Pairing,
    first_channel: usize,
    direction: Direction,
    position: impl Fn(usize, usize) -> i32,
) -> Result<()> {
    let [batch, tokens, heads, channels] = layout.shape();
    if first_channel.checked_add(frequencies.rotary_dim()).is_none_or(|end| end > channels) {
        return Err(Error::tensor(
            "layout",
            format!("heads of {channels} channels"),
            format!("heads that hold the {} from {first_channel} on", frequencies.rotary_dim()),
        ));
    }
    if layout.span().end > x.len() {
        return Err(Error::tensor(
            "layout",
            format!("{layout:?}, which ends at element {}", layout.span().end),
            format!("one within {} elements", x.len()),
        ));
    }
    if layout.is_empty() {
        return Ok(());
    }
    // The table holds the attention factor; what a direction adds to it is a factor on top.
    let factor = direction.magnitude(frequencies.attention_factor()) / frequencies.attention_factor();
    let pairs = frequencies.pairs();
    for b in 0..batch {
        for t in 0..tokens {
            let (cos, sin) = rope_table(frequencies, [position(b, t)]);
            for h in 0..heads {
                for (pair, (c, s)) in cos.iter().zip(&sin).enumerate() {
                    let (c, s) = (c * factor, s * factor * direction.sign());
                    let (first, second) = pairing.channels(pair as u32, pairs as u32);
                    let i = layout.at([b, t, h, first_channel + first as usize]);
                    let j = layout.at([b, t, h, first_channel + second as usize]);
                    (x[i], x[j]) = (x[i] * c - x[j] * s, x[i] * s + x[j] * c);
                }
            }
        }
    }
    Ok(())
}
