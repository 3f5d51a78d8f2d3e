//! Rotary encoding on the device: frequencies once, then rotations that are prepared once and recorded many times.

mod check;
mod positions;
mod rotate;
mod table;

pub use positions::{CacheRows, Positions};
pub use rotate::Rotate;
pub use table::RopeTable;

use crate::frequencies::{Axes, Frequencies};
use crate::gpu::{Gpu, Slot};
use crate::kernels::grid::Limits;
use crate::{Pairing, Result};

/// A rotary encoding on a device: frequencies, pairing, and which channels of a head turn.
///
/// ```no_run
/// use phasor::{Gpu, Pairing, Rope, Rotate, View, frequencies::Plain};
/// # fn engine(gpu: Gpu, q: View, k: View, pass: &mut wgpu::ComputePass<'_>) -> phasor::Result<()> {
/// let frequencies = Plain { base: 500_000.0 }.frequencies(128)?;
/// let rope = Rope::new(&gpu, &frequencies, Pairing::HalfSplit)?;
/// let rotation = rope.prepare(&Rotate::in_place(&q).and_in_place(&k))?;
/// rotation.record(pass);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Rope {
    gpu: Gpu,
    frequencies: Frequencies,
    axes: Axes,
    turns: wgpu::Buffer,
    attention_factor: f64,
    pairing: Pairing,
    first_channel: usize,
}

impl Rope {
    /// Puts frequencies on the device. The channels that turn are the first `frequencies.rotary_dim()` of each head.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit), [`OutOfMemory`](crate::ErrorKind::OutOfMemory) or
    /// [`DeviceLost`](crate::ErrorKind::DeviceLost) if the device cannot take them.
    pub fn new(gpu: &Gpu, frequencies: &Frequencies, pairing: Pairing) -> Result<Self> {
        let axes = Axes::one(frequencies.pairs());
        Ok(Self {
            turns: upload_turns(gpu, frequencies, &axes)?,
            gpu: gpu.clone(),
            frequencies: frequencies.clone(),
            axes,
            attention_factor: frequencies.attention_factor(),
            pairing,
            first_channel: 0,
        })
    }

    /// The encoding of one layer of a model, for sequences of `seq_len` tokens in all; `None` for a layer that does not
    /// rotate (NoPE).
    ///
    /// ```no_run
    /// # fn engine(gpu: phasor::Gpu, config: &str) -> phasor::Result<()> {
    /// let model = phasor::config::ModelRope::from_hugging_face(config)?;
    /// let rope = phasor::Rope::for_layer(&gpu, model.layer(0)?, 8192)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`LayerRope::frequencies`](crate::config::LayerRope::frequencies) and [`Rope::new`].
    #[cfg(feature = "config")]
    pub fn for_layer(gpu: &Gpu, layer: &crate::config::LayerRope, seq_len: u32) -> Result<Option<Self>> {
        if !layer.rotates {
            return Ok(None);
        }
        let rope = Self::new(gpu, &layer.frequencies(seq_len)?, layer.pairing)?.with_axes(&layer.axes)?;
        Ok(Some(rope.from_channel(layer.rotary.offset() as usize)))
    }

    /// An encoding for keys in a cache that were rotated by one law and are to stand as if rotated by another: where
    /// LongRoPE crosses its threshold, or dynamic NTK's base has grown. Rotate by it at the keys' own positions.
    ///
    /// ```no_run
    /// use phasor::{Gpu, Pairing, Positions, Rope, Rotate, View, frequencies::Frequencies};
    /// # fn engine(gpu: Gpu, short: Frequencies, long: Frequencies, keys: View) -> phasor::Result<()> {
    /// let change = Rope::between(&gpu, &short, &long, Pairing::HalfSplit)?;
    /// let mended = change.prepare(&Rotate::in_place(&keys).positions(Positions::Start(0)))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) if the two have different numbers of pairs; else as [`Rope::new`].
    pub fn between(gpu: &Gpu, from: &Frequencies, to: &Frequencies, pairing: Pairing) -> Result<Self> {
        if from.pairs() != to.pairs() {
            return Err(crate::Error::setting(
                "to",
                format!("{} pairs", to.pairs()),
                format!("{} pairs", from.pairs()),
            ));
        }
        // Rotations by angles add up, and their magnitudes multiply.
        let difference = from.inv_freq().iter().zip(to.inv_freq()).map(|(from, to)| to - from).collect();
        let change = Frequencies::new(difference, to.attention_factor() / from.attention_factor())?;
        Self::new(gpu, &change, pairing)
    }

    /// The same encoding, with several positions to a token: time, row and column of a picture's patch, say.
    ///
    /// Positions then come from a view `[batch, tokens, axes, 1]` ([`Positions::PerToken`]).
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) if the axes are for another number of pairs; else as [`Rope::new`].
    pub fn with_axes(mut self, axes: &Axes) -> Result<Self> {
        let pairs = axes.axis_of_pair().len();
        if pairs != self.pairs() {
            return Err(crate::Error::setting(
                "axes",
                format!("for {pairs} pairs"),
                format!("for {} pairs, as the frequencies are", self.pairs()),
            ));
        }
        self.turns = upload_turns(&self.gpu, &self.frequencies, axes)?;
        self.axes = axes.clone();
        Ok(self)
    }

    /// The same encoding for heads of which the turning channels begin at this one (DeepSeek-V4 turns the last 64).
    #[must_use]
    pub fn from_channel(mut self, first: usize) -> Self {
        self.first_channel = first;
        self
    }

    /// The same encoding without its attention factor: for keys that were rotated before and are to move on or back,
    /// as when the oldest tokens of a cache are dropped. They carry the factor already.
    ///
    /// ```no_run
    /// # use phasor::{Positions, Rope, Rotate, View};
    /// # fn engine(rope: Rope, kept: View) -> phasor::Result<()> {
    /// // The first 128 tokens were dropped: all others stand 128 places earlier.
    /// let shift = rope.without_attention_factor().prepare(&Rotate::in_place(&kept).positions(Positions::Same(-128)))?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn without_attention_factor(mut self) -> Self {
        self.attention_factor = 1.0;
        self
    }

    /// The frequencies.
    #[must_use]
    pub fn frequencies(&self) -> &Frequencies {
        &self.frequencies
    }

    /// Which channels make a pair.
    #[must_use]
    pub fn pairing(&self) -> Pairing {
        self.pairing
    }

    fn pairs(&self) -> usize {
        self.frequencies.pairs()
    }

    /// Positions to a token.
    fn n_axes(&self) -> usize {
        self.axes.count().into()
    }

    fn turns_slot(&self) -> Slot<'_> {
        Slot { index: 1, buffer: &self.turns, offset: 0, size: self.turns.size() }
    }
}

/// By fours, as a lane of the vector path reads them: four wholes, four rests, four axes.
fn upload_turns(gpu: &Gpu, frequencies: &Frequencies, axes: &Axes) -> Result<wgpu::Buffer> {
    let turns = frequencies.turns();
    let words: Vec<u32> = turns
        .chunks(4)
        .zip(axes.axis_of_pair().chunks(4))
        .flat_map(|(turns, axes)| {
            let turn = |i: usize| turns.get(i).copied().unwrap_or_default();
            let four = [0, 1, 2, 3];
            let whole = four.map(|i| turn(i).whole);
            let rest = four.map(|i| turn(i).rest.to_bits());
            let axis = four.map(|i| axes.get(i).copied().unwrap_or_default().into());
            [whole, rest, axis].concat()
        })
        .collect();
    Limits::from(gpu.limits()).expect_binding("the frequencies", 4 * words.len() as u64)?;
    gpu.filled_buffer(bytemuck::cast_slice(&words))
}
