//! Buffers told by their bits, so that the halves of a word and the payloads of NaNs can be compared.

use half::{bf16, f16};
use phasor::frequencies::{Frequencies, Plain};
use phasor::{ElementType, Gpu, Layout, Rope, Rotate, View};
use std::ops::RangeInclusive;

/// A buffer of whole words.
pub struct Raw<'a> {
    gpu: &'a Gpu,
    words: View,
}

impl<'a> Raw<'a> {
    pub fn words(gpu: &'a Gpu, words: &[u32]) -> phasor::Result<Self> {
        let as_f32: Vec<f32> = words.iter().copied().map(f32::from_bits).collect();
        Ok(Self { gpu, words: gpu.upload(&as_f32, [1, 1, 1, words.len()])? })
    }

    /// An even number of them.
    pub fn halves(gpu: &'a Gpu, halves: &[u16]) -> phasor::Result<Self> {
        Self::words(gpu, &bytemuck::pod_collect_to_vec::<u16, u32>(halves))
    }

    pub fn view(&self, element: ElementType, layout: Layout) -> phasor::Result<View> {
        View::new(self.words.buffer(), element, layout)
    }

    pub fn read_words(&self) -> phasor::Result<Vec<u32>> {
        bits(self.gpu, &self.words)
    }

    pub fn read_halves(&self) -> phasor::Result<Vec<u16>> {
        Ok(bytemuck::pod_collect_to_vec(&self.read_words()?))
    }
}

/// A tensor's elements, widened to f32, by their bits.
pub fn bits(gpu: &Gpu, view: &View) -> phasor::Result<Vec<u32>> {
    Ok(gpu.read_blocking(view)?.into_iter().map(f32::to_bits).collect())
}

/// Does it, and says in how many dispatches.
pub fn run(gpu: &Gpu, rope: &Rope, rotate: &Rotate) -> phasor::Result<usize> {
    let prepared = rope.prepare(rotate)?;
    gpu.submit(|pass| prepared.record(pass))?;
    Ok(prepared.dispatches())
}

/// A plain encoding's frequencies with a magnitude.
pub fn frequencies(rotary_dim: usize, attention_factor: f64) -> phasor::Result<Frequencies> {
    let plain = Plain::new(1e4).frequencies(rotary_dim as u32)?;
    Frequencies::new(plain.inv_freq().to_vec(), attention_factor)
}

/// Positions in a view of this layout, whatever lies between them.
pub fn positions(gpu: &Gpu, layout: Layout, list: impl IntoIterator<Item = i32>) -> phasor::Result<View> {
    let mut all = vec![i32::MIN; layout.span().end + 1];
    layout.places().zip(list).for_each(|(place, position)| all[place] = position);
    let all = gpu.upload_positions(&all, [1, all.len()])?;
    View::new(all.buffer(), ElementType::I32, layout)
}

/// The number that 16 bits stand for.
pub fn widen(element: ElementType, half: u16) -> f32 {
    match element {
        ElementType::F16 => f16::from_bits(half).to_f32(),
        ElementType::BF16 => bf16::from_bits(half).to_f32(),
        _ => panic!("{element} has no halves"),
    }
}

/// The nearest number of 16 bits, ties to even.
pub fn narrow(element: ElementType, x: f32) -> u16 {
    match element {
        ElementType::F16 => f16::from_f32(x).to_bits(),
        ElementType::BF16 => bf16::from_f32(x).to_bits(),
        _ => panic!("{element} has no halves"),
    }
}

/// The place of a finite number of 16 bits among all of its type: neighbours are units in the last place apart.
pub fn rank(half: u16) -> i32 {
    let magnitude = i32::from(half & 0x7fff);
    if half >> 15 == 0 { magnitude } else { -magnitude }
}

fn of_rank(rank: i32) -> u16 {
    let magnitude = rank.unsigned_abs() as u16;
    if rank < 0 { magnitude | 0x8000 } else { magnitude }
}

/// What may be stored for `value`, computed with an error of at most `slack`: anything from the neighbour below to the
/// neighbour above, as WGSL lets `pack2x16float` round either way.
///
/// A number below the type's normal ones may have become zero.
pub fn may_be_stored(element: ElementType, value: f64, slack: f64) -> RangeInclusive<f64> {
    let number = |rank: i32| f64::from(widen(element, of_rank(rank)));
    let nearest = |x: f64| rank(narrow(element, x as f32));
    let (low, high) = (value - slack, value + slack);
    let below = (nearest(low) - 1..=nearest(low) + 1).rev().map(number).find(|&x| x <= low);
    let above = (nearest(high) - 1..=nearest(high) + 1).map(number).find(|&x| x >= high);
    let normal = match element {
        ElementType::F16 => f64::from(f16::MIN_POSITIVE),
        _ => f64::from(bf16::MIN_POSITIVE),
    };
    let (below, above) = (below.expect("finite numbers only"), above.expect("finite numbers only"));
    let low = if below > 0.0 && low < normal { 0.0 } else { below };
    let high = if above < 0.0 && high > -normal { 0.0 } else { above };
    low..=high
}
