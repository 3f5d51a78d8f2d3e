//! `shaders/rope_rotate.wgsl`: which variant turns these views, over which grid, with which ranges bound.

use super::grid::Limits;
use super::modules::{self, Lane, Module};
use crate::gpu::{Access, Binding, Shader};
use crate::{ElementType, Layout, Pairing, Result};
use bytemuck::{Pod, Zeroable};
use std::ops::Range;

const KERNEL: Module = Module { name: "rope_rotate", wgsl: include_str!("../../shaders/rope_rotate.wgsl") };

/// Where the turning angle comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Angles {
    /// Made in the kernel.
    Turns,
    /// Read from a table.
    Table,
}

/// Which buffers the tensors lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Data {
    /// All in one.
    One,
    /// Queries and keys each in place, in buffers of their own.
    InPlace,
    /// Queries alone, from one to another.
    CopyQ,
    /// Queries and keys, from two to two others.
    Copy,
}

impl Data {
    fn module(self) -> Module {
        match self {
            Self::One => modules::DATA_ONE,
            Self::InPlace => modules::DATA_IN_PLACE,
            Self::CopyQ => modules::DATA_COPY_Q,
            Self::Copy => modules::DATA_COPY,
        }
    }

    /// The bindings, each with the tensors that are reached through it.
    fn bindings(self) -> &'static [(Binding, &'static [Tensor])] {
        use Access::{Read, ReadWrite};
        use Tensor::{K, KOut, Q, QOut};
        const fn binding(index: u32, name: &'static str, access: Access) -> Binding {
            Binding { index, name, access }
        }
        const ONE: &[(Binding, &[Tensor])] = &[(binding(3, "data", ReadWrite), &[Q, QOut, K, KOut])];
        const IN_PLACE: &[(Binding, &[Tensor])] =
            &[(binding(3, "q", ReadWrite), &[Q, QOut]), (binding(4, "k", ReadWrite), &[K, KOut])];
        const COPY_Q: &[(Binding, &[Tensor])] =
            &[(binding(3, "q", Read), &[Q]), (binding(4, "q_out", ReadWrite), &[QOut])];
        const COPY: &[(Binding, &[Tensor])] = &[
            (binding(3, "q", Read), &[Q]),
            (binding(4, "q_out", ReadWrite), &[QOut]),
            (binding(5, "k", Read), &[K]),
            (binding(6, "k_out", ReadWrite), &[KOut]),
        ];
        match self {
            Self::One => ONE,
            Self::InPlace => IN_PLACE,
            Self::CopyQ => COPY_Q,
            Self::Copy => COPY,
        }
    }
}

/// The tensors of a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tensor {
    Q,
    QOut,
    K,
    KOut,
    Positions,
}

impl Tensor {
    const ALL: [Self; 5] = [Self::Q, Self::QOut, Self::K, Self::KOut, Self::Positions];
}

/// A rotation, told without buffers. Layouts count f32 elements; all have the same batch and tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub data: Data,
    pub angles: Angles,
    pub pairing: Pairing,
    pub pairs: usize,
    /// The first channel that turns.
    pub first_channel: usize,
    pub q: Layout,
    pub q_out: Layout,
    /// Keys before and after.
    pub k: Option<(Layout, Layout)>,
    /// `[batch, tokens, 1, 1]` of i32 that are added to what follows.
    pub positions: Option<Layout>,
    /// The position (or table row) of token 0 of row 0, and its steps.
    pub start: i32,
    pub start_batch: i32,
    pub start_token: i32,
    pub cos_scale: f32,
    pub sin_scale: f32,
}

/// One dispatch: its parameters, the bytes to bind for each tensor's binding, and its groups.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub params: Params,
    pub ranges: Vec<(u32, Tensor, Range<u64>)>,
    pub groups: [u32; 3],
}

/// Where a tensor's words lie, as the shader declares it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
struct Place {
    offset: u32,
    batch: u32,
    token: u32,
    head: u32,
    channel: u32,
    _pad: [u32; 3],
}

/// The uniform, as the shader declares it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub(crate) struct Params {
    q: Place,
    q_out: Place,
    k: Place,
    k_out: Place,
    position: Place,
    start: i32,
    start_batch: i32,
    start_token: i32,
    tokens: u32,
    rows: u32,
    groups: u32,
    q_heads: u32,
    k_heads: u32,
    lanes: u32,
    copies: u32,
    first: u32,
    lane_step: u32,
    pair_step: u32,
    cos_scale: f32,
    sin_scale: f32,
    _pad: u32,
}

/// What makes one variant differ from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub data: Data,
    pub angles: Angles,
    pub lane: Lane,
    pub pairing: Pairing,
    pub from_buffer: bool,
    pub batched: bool,
    pub copies: bool,
    pub tail: bool,
    pub slots: Slots,
}

/// How an invocation's work and a group's invocations are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Slots {
    /// Query heads to an invocation.
    pub q: u32,
    /// Key heads to an invocation.
    pub k: u32,
    /// Invocations to a group: lanes, groups of heads, tokens.
    pub workgroup: [u32; 3],
}

impl Variant {
    /// The finished shader.
    pub(crate) fn shader(&self) -> Shader {
        let angles: &[Module] = match self.angles {
            Angles::Turns => &[modules::TURN, modules::ANGLES_TURNS],
            Angles::Table => &[modules::TURN, modules::ANGLES_TABLE],
        };
        let positions = if self.from_buffer { modules::POSITIONS_BUFFER } else { modules::POSITIONS_NONE };
        let parts: Vec<_> = [self.lane.module(), modules::PAIRS, modules::STORE_F32, self.data.module()]
            .iter()
            .chain(angles)
            .chain([&positions, &KERNEL])
            .copied()
            .collect();
        let angles_name = match self.angles {
            Angles::Turns => "turns",
            Angles::Table => "table",
        };
        let mut bindings = vec![
            Binding { index: 0, name: "params", access: Access::Uniform },
            Binding { index: 1, name: angles_name, access: Access::Read },
        ];
        if self.from_buffer {
            bindings.push(Binding { index: 2, name: "positions", access: Access::Read });
        }
        bindings.extend(self.data.bindings().iter().map(|(binding, _)| *binding));
        let flag = |on: bool| f64::from(u8::from(on));
        let [x, y, z] = self.slots.workgroup;
        Shader {
            name: format!(
                "{}.{}.{}.{}.{}",
                KERNEL.name,
                self.lane.module().name,
                self.data.module().name,
                angles[1].name,
                positions.name
            ),
            wgsl: Shader::compose(&parts.iter().map(|module| module.wgsl).collect::<Vec<_>>()),
            constants: vec![
                ("WG_X", x.into()),
                ("WG_Y", y.into()),
                ("WG_Z", z.into()),
                ("Q_SLOTS", self.slots.q.into()),
                ("K_SLOTS", self.slots.k.into()),
                ("INTERLEAVED", flag(self.pairing == Pairing::Interleaved)),
                ("BATCHED", flag(self.batched)),
                ("TAIL", flag(self.tail)),
                ("COPIES", flag(self.copies)),
            ],
            bindings,
            workgroup: self.slots.workgroup,
        }
    }
}

/// Every variant: each text in a common case, and in one that needs all of its branches.
pub(crate) fn all() -> Vec<Shader> {
    let common = |data, angles, lane, from_buffer| Variant {
        data,
        angles,
        lane,
        pairing: Pairing::HalfSplit,
        from_buffer,
        batched: false,
        copies: false,
        tail: false,
        slots: slots(16, 32, if data == Data::CopyQ { 0 } else { 8 }, 2048, false),
    };
    let full = |variant| Variant { pairing: Pairing::Interleaved, batched: true, copies: true, tail: true, ..variant };
    let mut shaders = Vec::new();
    for data in [Data::One, Data::InPlace, Data::CopyQ, Data::Copy] {
        for angles in [Angles::Turns, Angles::Table] {
            for lane in [Lane::Four, Lane::One] {
                for from_buffer in [false, true] {
                    let variant = common(data, angles, lane, from_buffer);
                    shaders.extend([variant.shader(), full(variant).shader()]);
                }
            }
        }
    }
    shaders
}

impl Job {
    /// The variant for this job and the dispatches that do it.
    ///
    /// # Errors
    /// [`Error::Limit`] if even one token's heads need a larger binding than the device allows.
    pub(crate) fn plan(&self, limits: Limits, software: bool) -> Result<(Variant, Vec<Part>)> {
        let job = self.with_rows_joined();
        let lane = job.lane();
        let [batch, tokens, q_heads, _] = job.q.shape();
        let k_heads = job.k.map_or(0, |(k, _)| k.shape()[2]);
        let lanes = job.pairs / lane.pairs() + job.copies(lane);
        let slots = slots(lanes, q_heads, k_heads, batch * tokens, software);
        let head_groups = q_heads.div_ceil(slots.q as usize).max(match slots.k {
            0 => 0,
            k => k_heads.div_ceil(k as usize),
        });
        let variant = Variant {
            data: job.data,
            angles: job.angles,
            lane,
            pairing: job.pairing,
            from_buffer: job.positions.is_some(),
            batched: batch > 1,
            copies: job.copies(lane) > 0,
            tail: head_groups * slots.q as usize != q_heads || head_groups * slots.k as usize != k_heads,
            slots,
        };
        let mut parts = Vec::new();
        let whole = Region { batch: 0..batch, tokens: 0..tokens, groups: 0..head_groups };
        job.split(&variant, &whole, limits, &mut parts)?;
        Ok((variant, parts))
    }

    /// Whether there is nothing to turn.
    pub(crate) fn is_empty(&self) -> bool {
        self.pairs == 0 || (self.q.is_empty() && self.k.is_none_or(|(k, _)| k.is_empty()))
    }

    fn layout(&self, tensor: Tensor) -> Option<Layout> {
        match tensor {
            Tensor::Q => Some(self.q),
            Tensor::QOut => Some(self.q_out),
            Tensor::K => self.k.map(|(k, _)| k),
            Tensor::KOut => self.k.map(|(_, out)| out),
            Tensor::Positions => self.positions,
        }
    }

    fn map_layouts(&self, change: impl Fn(Layout) -> Option<Layout>) -> Option<Self> {
        let positions = match self.positions {
            None => None,
            Some(positions) => Some(change(positions)?),
        };
        let k = match self.k {
            None => None,
            Some((k, out)) => Some((change(k)?, change(out)?)),
        };
        Some(Self { q: change(self.q)?, q_out: change(self.q_out)?, k, positions, ..*self })
    }

    /// The same work with batch and tokens as one axis wherever memory allows: telling them apart costs a division.
    fn with_rows_joined(&self) -> Self {
        let [batch, tokens, ..] = self.q.shape();
        if batch <= 1 {
            return *self;
        }
        if tokens == 1 {
            // A decode step: the rows of the batch are the tokens.
            let exchanged = self.map_layouts(|layout| Some(layout.rows_exchanged()));
            return exchanged.map_or(*self, |job| Self { start_token: self.start_batch, start_batch: 0, ..job });
        }
        let position_follows = i64::from(self.start_token) * tokens as i64 == i64::from(self.start_batch);
        match self.map_layouts(Layout::rows_joined) {
            Some(job) if position_follows => Self { start_batch: 0, ..job },
            _ => *self,
        }
    }

    /// The vector path if every word of four channels lies on its own, whole.
    fn lane(&self) -> Lane {
        let fours = |layout: Layout| {
            let [batch, tokens, heads, channels] = layout.shape();
            let steps = [batch, tokens, heads].into_iter().zip(layout.strides());
            let rows = steps.filter(|&(extent, _)| extent > 1).all(|(_, stride)| stride.is_multiple_of(4));
            rows && layout.offset().is_multiple_of(4) && layout.strides()[3] == 1 && channels.is_multiple_of(4)
        };
        let tensors = Tensor::ALL.into_iter().filter(|&t| t != Tensor::Positions).filter_map(|t| self.layout(t));
        let all = tensors.into_iter().all(fours);
        if all && self.pairs.is_multiple_of(4) && self.first_channel.is_multiple_of(4) { Lane::Four } else { Lane::One }
    }

    /// Words of a head to copy along.
    fn copies(&self, lane: Lane) -> usize {
        let one_buffer = matches!(self.data, Data::One | Data::InPlace);
        if one_buffer && self.q == self.q_out && self.k.is_none_or(|(k, out)| k == out) {
            return 0;
        }
        (self.q.shape()[3] - 2 * self.pairs) / lane.pairs()
    }

    /// Cuts a region in two until the device's limits hold for each piece.
    fn split(&self, variant: &Variant, region: &Region, limits: Limits, parts: &mut Vec<Part>) -> Result<()> {
        let Some(piece) = self.narrowed(variant, region) else { return Ok(()) };
        let part = piece.part(variant, region, limits);
        let rows = region.batch.len() * region.tokens.len();
        let fit_grid = part.groups.iter().all(|&n| n <= limits.groups) && rows as u64 <= u64::from(u32::MAX);
        let largest = part.ranges.iter().max_by_key(|(.., range)| range.end - range.start);
        let bytes = largest.map_or(0, |(.., range)| range.end - range.start);
        if fit_grid && bytes <= limits.binding {
            parts.push(part);
            return Ok(());
        }
        let cut = if fit_grid {
            let tensor = largest.map_or(Tensor::Q, |&(_, tensor, _)| tensor);
            piece.layout(tensor).and_then(|layout| region.halves_along_reach(layout))
        } else {
            region.halves_of_rows(part.groups[1] > limits.groups)
        };
        let Some((left, right)) = cut else {
            let tensor = largest.map_or("q", |&(_, tensor, _)| tensor.name());
            return limits.expect_binding(&format!("{tensor} of a single token"), bytes);
        };
        self.split(variant, &left, limits, parts)?;
        self.split(variant, &right, limits, parts)
    }

    /// The part of the job that lies in a region; `None` if a region has no heads of q or k left.
    fn narrowed(&self, variant: &Variant, region: &Region) -> Option<Self> {
        let narrow = |layout: Layout, slots: u32| -> Option<Layout> {
            let heads = layout.shape()[2];
            let slots = slots as usize;
            let heads = (region.groups.start * slots).min(heads)..(region.groups.end * slots).min(heads);
            let rows = layout.narrow(0, region.batch.clone()).ok()?.narrow(1, region.tokens.clone()).ok()?;
            rows.narrow(2, heads).ok()
        };
        let (q, k) = (variant.slots.q, variant.slots.k);
        let keys = match self.k {
            None => None,
            Some((input, out)) => Some((narrow(input, k)?, narrow(out, k)?)),
        };
        let positions = match self.positions {
            None => None,
            Some(p) => Some(p.narrow(0, region.batch.clone()).ok()?.narrow(1, region.tokens.clone()).ok()?),
        };
        // Positions wrap as the shader's do: a token's own position is exact wherever the whole of them is.
        let step = |by: i32, n: usize| by.wrapping_mul(n as i32);
        let start = self
            .start
            .wrapping_add(step(self.start_batch, region.batch.start))
            .wrapping_add(step(self.start_token, region.tokens.start));
        Some(Self { q: narrow(self.q, q)?, q_out: narrow(self.q_out, q)?, k: keys, positions, start, ..*self })
    }

    /// The dispatch that does all of this job at once.
    fn part(&self, variant: &Variant, region: &Region, limits: Limits) -> Part {
        let lane = variant.lane;
        let bindings = self.data_bindings(variant);
        let mut ranges = Vec::new();
        let mut places = [Place::default(); 5];
        for (index, tensors) in bindings {
            let present = || tensors.iter().filter_map(|&tensor| Some((tensor, self.layout(tensor)?)));
            let Some((first, _)) = present().next() else { continue };
            let range = limits.range(present().map(|(t, layout)| (layout, t.element())));
            for (tensor, layout) in present() {
                places[tensor as usize] = place(layout, tensor.word(lane), range.start);
            }
            ranges.push((index, first, range));
        }
        let [q, q_out, k, k_out, position] = places;
        let words = lane.pairs();
        let lanes = self.pairs / words;
        let copies = if variant.copies { self.copies(lane) } else { 0 };
        let (lane_step, pair_step) = match self.pairing {
            Pairing::HalfSplit => (1, lanes),
            Pairing::Interleaved => (2, 1),
        };
        let rows = region.batch.len() * region.tokens.len();
        let params = Params {
            q,
            q_out,
            k,
            k_out,
            position,
            start: self.start,
            start_batch: self.start_batch,
            start_token: self.start_token,
            tokens: region.tokens.len() as u32,
            rows: rows as u32,
            groups: region.groups.len() as u32,
            q_heads: self.q.shape()[2] as u32,
            k_heads: self.k.map_or(0, |(k, _)| k.shape()[2] as u32),
            lanes: lanes as u32,
            copies: copies as u32,
            first: (self.first_channel / words) as u32,
            lane_step,
            pair_step: pair_step as u32,
            cos_scale: self.cos_scale,
            sin_scale: self.sin_scale,
            _pad: 0,
        };
        let [x, y, z] = variant.slots.workgroup;
        let groups = |n: usize, size: u32| u32::try_from(n.div_ceil(size as usize)).unwrap_or(u32::MAX);
        Part { params, ranges, groups: [groups(lanes + copies, x), groups(region.groups.len(), y), groups(rows, z)] }
    }

    fn data_bindings(&self, variant: &Variant) -> Vec<(u32, &'static [Tensor])> {
        let data = variant.data.bindings().iter().map(|(binding, tensors)| (binding.index, *tensors));
        data.chain(variant.from_buffer.then_some((2, &[Tensor::Positions][..]))).collect()
    }
}

impl Tensor {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Q => "q",
            Self::QOut => "q.output",
            Self::K => "k",
            Self::KOut => "k.output",
            Self::Positions => "positions",
        }
    }

    fn element(self) -> ElementType {
        match self {
            Self::Positions => ElementType::I32,
            _ => ElementType::F32,
        }
    }

    /// Elements in a word of this tensor's binding.
    fn word(self, lane: Lane) -> usize {
        match self {
            Self::Positions => 1,
            _ => lane.pairs(),
        }
    }
}

fn place(layout: Layout, word: usize, bound_from: u64) -> Place {
    let shape = layout.shape();
    let strides = layout.strides();
    // An axis of one index may have any stride: it is never taken, and might not fit.
    let step = |axis: usize| if shape[axis] > 1 { (strides[axis] / word) as u32 } else { 0 };
    Place {
        offset: ((layout.offset() as u64 - bound_from / 4) / word as u64) as u32,
        batch: step(0),
        token: step(1),
        head: step(2),
        channel: if word == 1 { strides[3] as u32 } else { 1 },
        _pad: [0; 3],
    }
}

/// A piece of the grid: rows of the batch, tokens, groups of heads.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Region {
    batch: Range<usize>,
    tokens: Range<usize>,
    groups: Range<usize>,
}

impl Region {
    /// Two halves along the axis on which a tensor reaches farthest.
    fn halves_along_reach(&self, layout: Layout) -> Option<(Self, Self)> {
        let extents = [self.batch.len(), self.tokens.len(), self.groups.len()];
        let reach = |axis: usize| (layout.shape()[axis].saturating_sub(1)).saturating_mul(layout.strides()[axis]);
        let axis = (0..3).filter(|&axis| extents[axis] > 1).max_by_key(|&axis| reach(axis))?;
        Some(self.halves(axis))
    }

    /// Two halves with fewer rows each, or fewer groups of heads.
    fn halves_of_rows(&self, groups: bool) -> Option<(Self, Self)> {
        let axis = match (groups, self.batch.len() >= self.tokens.len()) {
            (true, _) => 2,
            (false, true) => 0,
            (false, false) => 1,
        };
        let extents = [self.batch.len(), self.tokens.len(), self.groups.len()];
        (extents[axis] > 1).then(|| self.halves(axis))
    }

    fn halves(&self, axis: usize) -> (Self, Self) {
        let (mut left, mut right) = (self.clone(), self.clone());
        let (a, b) = match axis {
            0 => (&mut left.batch, &mut right.batch),
            1 => (&mut left.tokens, &mut right.tokens),
            _ => (&mut left.groups, &mut right.groups),
        };
        let middle = a.start + a.len() / 2;
        a.end = middle;
        b.start = middle;
        (left, right)
    }
}

/// Cuts the work of a rotation, from what was measured on software devices and what GPUs want.
fn slots(lanes: usize, q_heads: usize, k_heads: usize, rows: usize, software: bool) -> Slots {
    let _ = (rows, software);
    let _ = (q_heads, k_heads);
    let x = (lanes as u32).next_power_of_two().clamp(1, 64);
    Slots { q: 4, k: u32::from(k_heads > 0), workgroup: [x, 1, 64 / x] }
}
