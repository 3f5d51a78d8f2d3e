//! `shaders/shared/rotation.wgsl`: the rotation that queries and keys take on their way into attention.

use super::modules::Lane;
use crate::attention::Rotation;
use crate::{Error, Pairing, Result};
use bytemuck::{Pod, Zeroable};

/// Pairs that the uniform has room for, by fours: twice what the largest heads known have.
const MOST_FOURS: usize = 64;

/// The struct as the shader declares it, before its turns.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Numbers {
    first: u32,
    lanes: u32,
    distance: u32,
    first_key: i32,
    magnitude: f32,
    _pad: [u32; 3],
}

/// Refuses more pairs than the uniform has room for.
pub(crate) fn expect_pairs(rotation: &Rotation) -> Result<()> {
    let (pairs, most) = (rotation.frequencies.pairs(), 4 * MOST_FOURS);
    if pairs <= most {
        return Ok(());
    }
    Err(Error::tensor(
        "rotation",
        format!("one of {pairs} pairs"),
        format!("one of up to {most} pairs; rotate before for more"),
    ))
}

/// How many lanes there are, from which word of a head on, and how far a lane's two words lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Lanes {
    pub first: usize,
    pub count: usize,
    pub distance: usize,
}

impl Lanes {
    /// In words of four channels or of one.
    pub(crate) fn new(rotation: &Rotation, lane: Lane) -> Self {
        let count = rotation.frequencies.pairs() / lane.pairs();
        let distance = match rotation.pairing {
            Pairing::HalfSplit => count,
            Pairing::Interleaved => 1,
        };
        Self { first: rotation.first_channel / lane.pairs(), count, distance }
    }

    /// A lane's two words.
    pub(crate) fn words(self, lane: usize) -> [usize; 2] {
        let first = self.first + lane / self.distance * 2 * self.distance + lane % self.distance;
        [first, first + self.distance]
    }
}

/// Whether pairs lie in whole words of four channels.
pub(crate) fn is_in_fours(rotation: &Rotation) -> bool {
    rotation.first_channel.is_multiple_of(4) && rotation.frequencies.pairs().is_multiple_of(4)
}

/// The struct's bytes, for words of four channels or of one.
pub(crate) fn bytes(rotation: &Rotation, lane: Lane) -> Vec<u8> {
    let lanes = Lanes::new(rotation, lane);
    let numbers = Numbers {
        first: lanes.first as u32,
        lanes: lanes.count as u32,
        distance: lanes.distance as u32,
        first_key: rotation.first_key,
        magnitude: rotation.frequencies.attention_factor() as f32,
        _pad: [0; 3],
    };
    let turns = rotation.frequencies.turns();
    let mut words = vec![[0u32; 8]; MOST_FOURS];
    for (four, turns) in words.iter_mut().zip(turns.chunks(4)) {
        for (i, turn) in turns.iter().enumerate() {
            four[i] = turn.whole;
            four[4 + i] = turn.rest.to_bits();
        }
    }
    [bytemuck::bytes_of(&numbers), bytemuck::cast_slice(&words)].concat()
}

/// The bytes of the struct that variants without a rotation declare in its place.
pub(crate) fn no_bytes() -> Vec<u8> {
    vec![0; 16]
}
