//! One rotation with everything that can vary in it, run on the device and compared with the f64 reference.
//!
//! The buffers are filled with marks before the run: NaNs, each with its own place in its payload. So a stray write is
//! seen wherever it lands, and a stray read poisons what it goes into.

use crate::common::Random;
use half::{bf16, f16};
use phasor::frequencies::{Axes, Frequencies, Plain};
use phasor::reference::rope_rotate;
use phasor::{CacheRows, Direction, ElementType, Gpu, Layout, Pairing, Positions, Rope, Rotate, View};

/// How far a cosine or sine may be off, before the attention factor.
pub const ANGLE: f64 = 2e-7;

/// How far a rotated channel may be off, for a magnitude of 1 and each unit of `|x0| + |x1|`.
///
/// Beside the angle's error there are four roundings of f32, each half a unit in the last place of at most that sum:
/// of the magnitude, of its product with cosine and sine, of the products with the channels, and of their sum.
pub const ROTATION: f64 = ANGLE + 4.0 / (1 << 24) as f64;

/// Where the tensors lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// In place, queries and keys each in a buffer of their own.
    InPlace,
    /// In place, inside of one packed `q | k | v` projection.
    Packed,
    /// From one buffer to another, each.
    Copy,
    /// Everything in one buffer, input and output side by side.
    Arena,
    /// Queries and keys from buffers of their own into one that they share.
    SharedOutput,
    /// Queries and keys from one buffer into two others.
    SharedInput,
    /// Queries in place, keys from one buffer to another.
    Mixed,
    /// Queries go where keys come from: one buffer holds keys and rotated queries.
    Crossed,
    /// Queries in place, keys to rows of a cache that are named one by one, some of which do not exist.
    CacheRows,
    /// Queries from one buffer to another, keys to the rows of a cache from one on.
    CacheRun,
}

impl Memory {
    pub const ALL: [Self; 10] = [
        Self::InPlace,
        Self::Packed,
        Self::Copy,
        Self::Arena,
        Self::SharedOutput,
        Self::SharedInput,
        Self::Mixed,
        Self::Crossed,
        Self::CacheRows,
        Self::CacheRun,
    ];

    /// Whether keys go to a cache.
    fn caches(self) -> bool {
        matches!(self, Self::CacheRows | Self::CacheRun)
    }
}

/// The order of a tensor's axes in memory, and the gaps between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// `[batch, tokens, heads, channels]` without gaps.
    TokensFirst,
    /// `[batch, heads, tokens, channels]` without gaps.
    HeadsFirst,
    /// `[tokens, batch, heads, channels]` without gaps.
    BatchInside,
    /// Gaps of whole words of four channels: the vector path holds.
    WideGaps,
    /// Odd gaps, odd offset.
    OddGaps,
    /// Every third element is a channel.
    SpreadChannels,
    /// Channels outermost: `[channels, batch, tokens, heads]`.
    ChannelsFirst,
}

impl Order {
    pub const ALL: [Self; 7] = [
        Self::TokensFirst,
        Self::HeadsFirst,
        Self::BatchInside,
        Self::WideGaps,
        Self::OddGaps,
        Self::SpreadChannels,
        Self::ChannelsFirst,
    ];

    /// A tensor of this shape, its first element at `at`.
    fn lay(self, shape: [usize; 4], at: usize) -> Layout {
        let [b, t, h, c] = [0, 1, 2, 3];
        // From the innermost axis outwards; the innermost one's step; the gap after each axis.
        let (axes, step, gap) = match self {
            Self::TokensFirst => ([c, h, t, b], 1, 0),
            Self::HeadsFirst => ([c, t, h, b], 1, 0),
            Self::BatchInside => ([c, h, b, t], 1, 0),
            Self::WideGaps => ([c, h, t, b], 1, 8),
            Self::OddGaps => ([c, h, t, b], 1, 3),
            Self::SpreadChannels => ([c, t, h, b], 3, 1),
            Self::ChannelsFirst => ([h, t, b, c], 1, 2),
        };
        let mut strides = [0; 4];
        let mut next = step;
        for axis in axes {
            strides[axis] = next;
            next = next * shape[axis].max(1) + gap;
        }
        Layout::strided(shape, strides, at).unwrap()
    }

    /// Elements left unused before a buffer's first tensor and behind its last one.
    fn margin(self) -> usize {
        match self {
            Self::OddGaps | Self::SpreadChannels | Self::ChannelsFirst => 5,
            _ => 8,
        }
    }
}

/// Where the tokens stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Start,
    StartPerRow,
    /// One start for all rows, in a buffer.
    StartShared,
    PerToken,
    /// One position for each token of all rows.
    PerTokenShared,
    /// One for each token, with gaps between them.
    PerTokenSpread,
    /// From a table with a row for each token.
    TableRows,
    /// From a table with a row for each token of all rows.
    TableRowsShared,
}

impl Standing {
    pub const ALL: [Self; 8] = [
        Self::Start,
        Self::StartPerRow,
        Self::StartShared,
        Self::PerToken,
        Self::PerTokenShared,
        Self::PerTokenSpread,
        Self::TableRows,
        Self::TableRowsShared,
    ];

    /// How far from the origin a token stands.
    fn beyond(self, b: usize, t: usize) -> i32 {
        // No two neighbours alike, none in order, all within 0..RANGE.
        let scattered = |i: usize| (i * 37 % 61) as i32;
        let t_i32 = t as i32;
        match self {
            Self::Start => t_i32,
            Self::StartPerRow => scattered(b + 1) + t_i32,
            Self::StartShared => scattered(3) + t_i32,
            Self::PerToken | Self::PerTokenSpread | Self::TableRows => scattered(7 * b + t + 1),
            Self::PerTokenShared | Self::TableRowsShared => scattered(t + 1),
        }
    }
}

/// A rotation and its surroundings.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub batch: usize,
    pub tokens: usize,
    pub q_heads: usize,
    pub k_heads: Option<usize>,
    pub channels: usize,
    pub rotary_dim: usize,
    pub first_channel: usize,
    pub base: f64,
    pub attention_factor: f64,
    pub pairing: Pairing,
    pub direction: Direction,
    pub memory: Memory,
    pub order: Order,
    pub standing: Standing,
    /// What the positions are counted from.
    pub origin: i32,
    /// Whether cosines and sines come from a table. Standings that are about tables always have one.
    pub table: bool,
    /// How inputs are stored, and outputs where they have buffers of their own ([`Memory::Copy`]).
    pub elements: [ElementType; 2],
    /// Positions to a token. More than one need a position for each token.
    pub axes: u8,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            batch: 2,
            tokens: 3,
            q_heads: 6,
            k_heads: Some(2),
            channels: 16,
            rotary_dim: 16,
            first_channel: 0,
            base: 1e4,
            attention_factor: 1.25,
            pairing: Pairing::HalfSplit,
            direction: Direction::Forward,
            memory: Memory::InPlace,
            order: Order::TokensFirst,
            standing: Standing::Start,
            origin: 1000,
            table: false,
            elements: [ElementType::F32; 2],
            axes: 1,
        }
    }
}

/// A tensor before and after: which buffer, and where in it.
#[derive(Debug, Clone, Copy)]
struct Placed {
    name: &'static str,
    input: (usize, Layout),
    output: (usize, Layout),
}

/// Buffers as they fill up with tensors.
struct Space {
    order: Order,
    sizes: Vec<usize>,
    elements: Vec<ElementType>,
    /// What the next buffer holds.
    element: ElementType,
}

impl Space {
    fn buffer(&mut self) -> usize {
        self.sizes.push(self.order.margin());
        self.elements.push(self.element);
        self.sizes.len() - 1
    }

    fn put(&mut self, buffer: usize, shape: [usize; 4]) -> (usize, Layout) {
        let layout = self.order.lay(shape, self.sizes[buffer]);
        // Of an empty tensor as much as if its empty axes had one index: slices of it begin within.
        let end = self.order.lay(shape.map(|extent| extent.max(1)), self.sizes[buffer]).span().end;
        // The next one begins at a place as good or as bad as this one's.
        self.sizes[buffer] = end.next_multiple_of(4) + self.order.margin();
        (buffer, layout)
    }

    fn put_alone(&mut self, shape: [usize; 4]) -> (usize, Layout) {
        let buffer = self.buffer();
        self.put(buffer, shape)
    }
}

/// A NaN that names its place, as far as the element type has bits for it; widened to f32.
fn mark(place: usize, element: ElementType) -> u32 {
    let place = place as u32;
    0x7fc0_0000
        | match element {
            ElementType::F16 => (place & 0x1ff) << 13,
            ElementType::BF16 => (place & 0x3f) << 16,
            _ => place & 0x3f_ffff,
        }
}

/// The nearest number that an element type has.
fn rounded(x: f32, element: ElementType) -> f32 {
    match element {
        ElementType::F16 => f16::from_f32(x).to_f32(),
        ElementType::BF16 => bf16::from_f32(x).to_f32(),
        _ => x,
    }
}

/// How far a stored number may be from the one that was to be stored.
///
/// bf16 is rounded to the nearest. WGSL leaves it open in which direction f16 is rounded, and numbers below its normal
/// ones may become zero.
fn storage(value: f64, element: ElementType) -> f64 {
    match element {
        ElementType::F16 => value.abs() / f64::from(1 << 10) + f64::from(f16::MIN_POSITIVE),
        ElementType::BF16 => value.abs() / f64::from(1 << 8),
        _ => 0.0,
    }
}

impl Case {
    /// Runs it and compares every element of every buffer; returns how many dispatches it took.
    pub fn run(&self, gpu: &Gpu) -> Result<usize, String> {
        let (tensors, Space { sizes, elements, .. }) = self.place();
        let mut random = Random::new(7);
        let marks = |(&size, &element)| (0..size).map(|place| mark(place, element)).collect();
        let mut before: Vec<Vec<u32>> = sizes.iter().zip(&elements).map(marks).collect();
        for tensor in &tensors {
            let (buffer, layout) = tensor.input;
            let mut value = || rounded(random.value(), elements[buffer]).to_bits();
            layout.places().for_each(|place| before[buffer][place] = value());
        }
        let expected = self.expected(&tensors, &before, &elements)?;
        let run = self.on_device(gpu, &tensors, &before, &elements);
        let (after, dispatches) = run.map_err(|error| format!("{error}: {self:?}"))?;
        for (buffer, (after, expected)) in after.iter().zip(&expected).enumerate() {
            for (place, (&got, expected)) in after.iter().zip(expected).enumerate() {
                if !expected.holds(got) {
                    let value = f32::from_bits(got);
                    return Err(format!(
                        "buffer {buffer}, element {place}: {value} ({got:#x}), not {expected:?}: {self:?}"
                    ));
                }
            }
        }
        Ok(dispatches)
    }

    pub fn frequencies(&self) -> Frequencies {
        let plain = Plain::new(self.base).frequencies(self.rotary_dim as u32).unwrap();
        Frequencies::new(plain.inv_freq().to_vec(), self.attention_factor).unwrap()
    }

    /// Where a token stands on an axis: on each one elsewhere.
    fn position(&self, b: usize, t: usize, axis: u8) -> i32 {
        self.origin.wrapping_add(self.standing.beyond(b, t)).wrapping_add(7 * i32::from(axis))
    }

    /// Which row of a cache a token goes to; to none, if there is no such row.
    fn row(&self, b: usize, t: usize) -> i32 {
        match self.memory {
            // Backwards, but every fifth, in the two ways in which a row cannot exist.
            Memory::CacheRows if (b + t) % 5 == 3 => [-1, self.cache_rows() as i32][b % 2],
            Memory::CacheRows => (self.cache_rows() - 1 - t) as i32,
            _ => (b + 1 + t) as i32,
        }
    }

    fn cache_rows(&self) -> usize {
        self.tokens + self.batch + 2
    }

    /// The axis of each pair, taking turns.
    fn axes(&self) -> Axes {
        Axes::new((0..self.rotary_dim / 2).map(|i| (i % usize::from(self.axes)) as u8).collect(), self.axes).unwrap()
    }

    /// The tensors' places, and the buffers.
    fn place(&self) -> (Vec<Placed>, Space) {
        let shape = |heads| [self.batch, self.tokens, heads, self.channels];
        let [element, output_element] = self.elements;
        let mut space = Space { order: self.order, sizes: Vec::new(), elements: Vec::new(), element };
        let named: Vec<_> = [("q", self.q_heads)].into_iter().chain(self.k_heads.map(|heads| ("k", heads))).collect();
        let mut tensors: Vec<Placed> = Vec::new();
        match self.memory {
            Memory::Packed => {
                let heads: Vec<_> = named.iter().map(|&(_, heads)| heads).collect();
                let values = heads.iter().sum::<usize>() + 2;
                let (buffer, all) = space.put_alone(shape(values));
                let mut start = 0;
                for (name, heads) in named {
                    let view = (buffer, all.heads(start..start + heads).unwrap());
                    tensors.push(Placed { name, input: view, output: view });
                    start += heads;
                }
            }
            Memory::InPlace => tensors.extend(named.iter().map(|&(name, heads)| {
                let view = space.put_alone(shape(heads));
                Placed { name, input: view, output: view }
            })),
            Memory::Copy => tensors.extend(named.iter().map(|&(name, heads)| {
                space.element = element;
                let input = space.put_alone(shape(heads));
                space.element = output_element;
                Placed { name, input, output: space.put_alone(shape(heads)) }
            })),
            Memory::CacheRows | Memory::CacheRun => tensors.extend(named.iter().map(|&(name, heads)| {
                let input = space.put_alone(shape(heads));
                let output = match (name, self.memory) {
                    ("k", _) => space.put_alone([self.batch, self.cache_rows(), heads, self.channels]),
                    (_, Memory::CacheRows) => input,
                    _ => space.put_alone(shape(heads)),
                };
                Placed { name, input, output }
            })),
            Memory::Arena => {
                let one = space.buffer();
                tensors.extend(named.iter().map(|&(name, heads)| {
                    let (input, output) = (space.put(one, shape(heads)), space.put(one, shape(heads)));
                    Placed { name, input, output }
                }));
            }
            Memory::SharedOutput => {
                let shared = space.buffer();
                tensors.extend(named.iter().map(|&(name, heads)| {
                    let (input, output) = (space.put_alone(shape(heads)), space.put(shared, shape(heads)));
                    Placed { name, input, output }
                }));
            }
            Memory::SharedInput => {
                let shared = space.buffer();
                tensors.extend(named.iter().map(|&(name, heads)| {
                    let (input, output) = (space.put(shared, shape(heads)), space.put_alone(shape(heads)));
                    Placed { name, input, output }
                }));
            }
            Memory::Mixed => tensors.extend(named.iter().map(|&(name, heads)| {
                let input = space.put_alone(shape(heads));
                let output = if name == "q" { input } else { space.put_alone(shape(heads)) };
                Placed { name, input, output }
            })),
            Memory::Crossed => {
                let shared = space.buffer();
                tensors.extend(named.iter().map(|&(name, heads)| {
                    let (alone, shared) = (space.put_alone(shape(heads)), space.put(shared, shape(heads)));
                    let (input, output) = if name == "q" { (alone, shared) } else { (shared, alone) };
                    Placed { name, input, output }
                }));
            }
        }
        (tensors, space)
    }

    /// What each element of each buffer must be afterwards: as it was, but for what turns.
    fn expected(
        &self,
        tensors: &[Placed],
        before: &[Vec<u32>],
        elements: &[ElementType],
    ) -> Result<Vec<Vec<Expected>>, String> {
        let mut expected: Vec<Vec<Expected>> =
            before.iter().map(|buffer| buffer.iter().map(|&bits| Expected::Same(bits)).collect()).collect();
        let pairs = self.rotary_dim as u32 / 2;
        let magnitude = self.direction.magnitude(self.attention_factor);
        for Placed { name, input: (from, input), output: (to, output) } in tensors.iter().copied() {
            let bits = &before[from];
            let turned = self.turned(bits, input).map_err(|error| format!("{name}: {error}"))?;
            let [batch, tokens, heads, channels] = input.shape();
            for ((b, t), h) in grid(batch, tokens).flat_map(|row| (0..heads).map(move |h| (row, h))) {
                // Where the token goes, if anywhere.
                let row = if name == "k" && self.memory.caches() { self.row(b, t) } else { t as i32 };
                let Some(row) = usize::try_from(row).ok().filter(|&row| row < output.shape()[1]) else { continue };
                for channel in 0..channels {
                    let same = bits[input.at([b, t, h, channel])];
                    let value = f64::from(f32::from_bits(same));
                    // Bit for bit where the types are the same, else rounded.
                    expected[to][output.at([b, row, h, channel])] = match elements[from] == elements[to] {
                        true => Expected::Same(same),
                        false => Expected::Near(value, storage(value, elements[to])),
                    };
                }
                for pair in 0..pairs {
                    let (first, second) = self.pairing.channels(pair, pairs);
                    let channels = [first, second].map(|channel| self.first_channel + channel as usize);
                    let at = channels.map(|channel| input.at([b, t, h, channel]));
                    let reach: f64 = at.iter().map(|&at| f64::from(f32::from_bits(bits[at])).abs()).sum();
                    for (channel, at) in channels.into_iter().zip(at) {
                        let tolerance = magnitude * reach * ROTATION;
                        let tolerance = tolerance + storage(turned[at].abs() + tolerance, elements[to]);
                        expected[to][output.at([b, row, h, channel])] = Expected::Near(turned[at], tolerance);
                    }
                }
            }
        }
        Ok(expected)
    }

    /// The reference's rotation, axis after axis: the pairs of the other axes have frequency 0, and the magnitude comes
    /// with the first.
    fn turned(&self, bits: &[u32], layout: Layout) -> phasor::Result<Vec<f64>> {
        let mut turned: Vec<f64> = bits.iter().map(|&bits| f32::from_bits(bits).into()).collect();
        let (frequencies, axes) = (self.frequencies(), self.axes());
        for axis in 0..self.axes {
            let of_axis = frequencies.inv_freq().iter().zip(axes.axis_of_pair());
            let inv_freq = of_axis.map(|(&w, &of)| if of == axis { w } else { 0.0 }).collect();
            let factor = if axis == 0 { self.attention_factor } else { 1.0 };
            let frequencies = Frequencies::new(inv_freq, factor)?;
            let position = |b, t| self.position(b, t, axis);
            let (pairing, direction) = (self.pairing, self.direction);
            rope_rotate(&mut turned, layout, &frequencies, pairing, self.first_channel, direction, position)?;
        }
        Ok(turned)
    }

    fn on_device(
        &self,
        gpu: &Gpu,
        tensors: &[Placed],
        before: &[Vec<u32>],
        elements: &[ElementType],
    ) -> phasor::Result<(Vec<Vec<u32>>, usize)> {
        let as_f32 = |bits: &[u32]| bits.iter().map(|&bits| f32::from_bits(bits)).collect::<Vec<_>>();
        let buffers: Vec<View> = before
            .iter()
            .zip(elements)
            .map(|(bits, &element)| gpu.upload_as(element, &as_f32(bits), [1, 1, 1, bits.len()]))
            .collect::<phasor::Result<_>>()?;
        let view = |(buffer, layout): (usize, Layout)| View::new(buffers[buffer].buffer(), elements[buffer], layout);
        let rope = Rope::new(gpu, &self.frequencies(), self.pairing)?.from_channel(self.first_channel);
        let rope = if self.axes > 1 { rope.with_axes(&self.axes())? } else { rope };
        let mut rotate = Rotate::into(&view(tensors[0].input)?, &view(tensors[0].output)?).direction(self.direction);
        if let Some(k) = tensors.get(1) {
            let (input, output) = (view(k.input)?, view(k.output)?);
            rotate = match self.memory.caches() {
                true => rotate.and_into_cache(&input, &output, self.rows(gpu)?),
                false => rotate.and_into(&input, &output),
            };
        }
        let positions = self.positions(gpu)?;
        let table = match (&positions, self.standing) {
            (Some(positions), Standing::TableRows | Standing::TableRowsShared) => Some(rope.table_for(positions)?),
            // A few rows more than needed on either side.
            _ if self.table => Some(rope.table(self.origin - 3, 61 + self.tokens + 5)?),
            _ => None,
        };
        if let Some(table) = &table {
            gpu.submit(|pass| table.record(pass))?;
            rotate = rotate.from_table(table);
        }
        let rotate = match (positions, self.standing) {
            (_, Standing::Start) => rotate.positions(Positions::Start(self.origin)),
            (Some(view), Standing::StartPerRow | Standing::StartShared) => {
                rotate.positions(Positions::StartPerRow(view))
            }
            (_, Standing::TableRows | Standing::TableRowsShared) | (None, _) => rotate,
            (Some(view), _) => rotate.positions(Positions::PerToken(view)),
        };
        let prepared = rope.prepare(&rotate)?;
        gpu.submit(|pass| prepared.record(pass))?;
        let after = buffers.iter().map(|buffer| Ok(gpu.read_blocking(buffer)?.into_iter().map(f32::to_bits).collect()));
        Ok((after.collect::<phasor::Result<_>>()?, prepared.dispatches()))
    }

    fn rows(&self, gpu: &Gpu) -> phasor::Result<CacheRows> {
        let tokens = if self.memory == Memory::CacheRows { self.tokens } else { 1 };
        let list: Vec<i32> = grid(self.batch, tokens).map(|(b, t)| self.row(b, t)).collect();
        let view = gpu.upload_positions(&list, [self.batch, tokens])?;
        Ok(if self.memory == Memory::CacheRows { CacheRows::PerToken(view) } else { CacheRows::StartPerRow(view) })
    }

    fn positions(&self, gpu: &Gpu) -> phasor::Result<Option<View>> {
        let shape = match self.standing {
            Standing::Start => return Ok(None),
            Standing::StartPerRow => [self.batch, 1],
            Standing::StartShared => [1, 1],
            Standing::PerTokenShared | Standing::TableRowsShared => [1, self.tokens],
            Standing::PerToken | Standing::PerTokenSpread | Standing::TableRows => [self.batch, self.tokens],
        };
        // Memory goes [axes, batch, tokens], as Hugging Face has it; or is spread out, axes innermost.
        let axes = usize::from(self.axes);
        if self.standing != Standing::PerTokenSpread {
            let of_axis = |axis| grid(shape[0], shape[1]).map(move |(b, t)| self.position(b, t, axis));
            let list: Vec<i32> = (0..self.axes).flat_map(of_axis).collect();
            let all = gpu.upload_positions(&list, [1, list.len()])?;
            let strides = [shape[1], 1, shape[0] * shape[1], 0];
            let layout = Layout::strided([shape[0], shape[1], axes, 1], strides, 0)?;
            return View::new(all.buffer(), ElementType::I32, layout).map(Some);
        }
        let token = 3 * axes;
        let strides = [token * shape[1] + 1, token, 2, 0];
        let layout = Layout::strided([shape[0], shape[1], axes, 1], strides, 5)?;
        let list = grid(shape[0], shape[1]).flat_map(|(b, t)| (0..self.axes).map(move |a| self.position(b, t, a)));
        let mut spread = vec![i32::MIN; layout.span().end + 2];
        layout.places().zip(list).for_each(|(place, position)| spread[place] = position);
        let all = gpu.upload_positions(&spread, [1, spread.len()])?;
        View::new(all.buffer(), ElementType::I32, layout).map(Some)
    }
}

fn grid(batch: usize, tokens: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..batch).flat_map(move |b| (0..tokens).map(move |t| (b, t)))
}

/// What an element must be after the run.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// Bit for bit.
    Same(u32),
    /// Within a tolerance.
    Near(f64, f64),
}

impl Expected {
    fn holds(self, got: u32) -> bool {
        match self {
            Self::Same(bits) => got == bits,
            Self::Near(value, tolerance) => (f64::from(f32::from_bits(got)) - value).abs() <= tolerance,
        }
    }
}
