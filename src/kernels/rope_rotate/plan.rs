//! Which variant turns these views, over which grid, with which ranges bound. Pure arithmetic.

use super::{Angles, Data, Elements, Params, Tensor, Variant};
use crate::kernels::grid::Limits;
use crate::kernels::modules::Lane;
use crate::kernels::place::Place;
use crate::{Layout, Pairing, Result};
use std::ops::Range;

/// Turns of a loop that every device completes: lavapipe ends any loop after 65,535 of them, without a word.
const LONGEST_LOOP: usize = 1 << 15;

/// A rotation, told without buffers. All layouts have the same batch and tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    /// What the caller knows the first tensor by: keys may be alone.
    pub name: &'static str,
    pub data: Data,
    pub elements: Elements,
    pub angles: Angles,
    pub pairing: Pairing,
    pub pairs: usize,
    /// The first channel that turns.
    pub first_channel: usize,
    pub q: Layout,
    pub q_out: Layout,
    /// Keys before and after.
    pub k: Option<(Layout, Layout)>,
    /// `[batch, tokens, axes, 1]` of i32 that are added to what follows.
    pub positions: Option<Layout>,
    pub axes: bool,
    /// Which rows of its cache the last output goes to.
    pub rows: Option<CacheRows>,
    /// The position (or table row) of token 0 of row 0, and its steps.
    pub start: i32,
    pub start_batch: i32,
    pub start_token: i32,
    pub cos_scale: f32,
    pub sin_scale: f32,
}

/// A cache `[batch, rows, heads, channels]` as output: token `t` goes to row `rows[b, t] + t * step`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheRows {
    /// `[batch, tokens, 1, 1]` of i32.
    pub rows: Layout,
    pub step: i32,
}

/// One dispatch: its parameters, the bytes to bind for each tensor's binding, and its groups.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub params: Params,
    pub ranges: Vec<(u32, Tensor, Range<u64>)>,
    pub groups: [u32; 3],
}

impl Job {
    /// The variant for this job and the dispatches that do it.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit) if one group of a token's heads needs a larger binding than the device
    /// allows.
    pub(crate) fn plan(&self, limits: Limits, software: bool) -> Result<(Variant, Vec<Part>)> {
        let job = self.with_rows_joined();
        let lane = job.lane();
        let [batch, tokens, q_heads, _] = job.q.shape();
        let k_heads = job.k.map_or(0, |(k, _)| k.shape()[2]);
        let copies = job.copies(lane);
        let cache_rows = job.cached().and_then(|tensor| job.layout(tensor)).map_or(0, |cache| cache.shape()[1]);
        let whole =
            |cut: &Cut| Region { batch: 0..batch, tokens: 0..tokens, groups: 0..cut.groups, cache_rows: 0..cache_rows };
        let plan = |heads_at_once: usize| {
            let cut = Cut::new(
                [job.pairs / lane.pairs() + copies, batch * tokens],
                [q_heads, k_heads],
                heads_at_once,
                limits,
            );
            let mut parts = Vec::new();
            let planner = Planner { job, lane, cut, copies, limits };
            planner.split(&whole(&cut), &mut parts).map(|()| (cut, parts))
        };
        let invocations = (job.pairs / lane.pairs()).saturating_mul(q_heads).saturating_mul(batch * tokens);
        let heads_at_once = match software {
            // A processor's core wants long runs of work with one angle: one head at a time takes half as long again.
            true => LONGEST_LOOP,
            // A GPU wants some hundred thousand invocations in flight; only beyond that do they share angles.
            false => (invocations >> 17).clamp(1, 8),
        };
        // Heads that lie too far apart to be bound together are taken one by one.
        let (cut, parts) = plan(heads_at_once).or_else(|_| plan(1))?;
        let variant = Variant {
            data: job.data,
            elements: job.elements,
            angles: job.angles,
            lane,
            pairing: job.pairing,
            positions: job.positions.is_some(),
            axes: job.axes,
            rows: job.cached(),
            batched: batch > 1,
            copies: copies > 0,
            workgroup: cut.workgroup,
        };
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
            Tensor::Rows => self.rows.map(|cache| cache.rows),
        }
    }

    /// The output that goes to rows of a cache.
    fn cached(&self) -> Option<Tensor> {
        self.rows.map(|_| if self.k.is_some() { Tensor::KOut } else { Tensor::QOut })
    }

    /// The same job with every layout changed, unless one cannot be.
    fn map_layouts(&self, change: impl Fn(Tensor, Layout) -> Option<Layout>) -> Option<Self> {
        let positions = match self.positions {
            None => None,
            Some(positions) => Some(change(Tensor::Positions, positions)?),
        };
        let rows = match self.rows {
            None => None,
            Some(cache) => Some(CacheRows { rows: change(Tensor::Rows, cache.rows)?, ..cache }),
        };
        let k = match self.k {
            None => None,
            Some((k, out)) => Some((change(Tensor::K, k)?, change(Tensor::KOut, out)?)),
        };
        Some(Self {
            q: change(Tensor::Q, self.q)?,
            q_out: change(Tensor::QOut, self.q_out)?,
            k,
            positions,
            rows,
            ..*self
        })
    }

    /// The same work with batch and tokens as one axis wherever memory allows: telling them apart costs a division.
    fn with_rows_joined(&self) -> Self {
        let [batch, tokens, ..] = self.q.shape();
        // A cache has rows of its own in place of tokens.
        if batch <= 1 || self.rows.is_some() {
            return *self;
        }
        if tokens == 1 {
            // A decode step: the rows of the batch are the tokens.
            let exchanged = self.map_layouts(|_, layout| Some(layout.rows_exchanged()));
            return exchanged.map_or(*self, |job| Self { start_token: self.start_batch, start_batch: 0, ..job });
        }
        let position_follows = i64::from(self.start_token) * tokens as i64 == i64::from(self.start_batch);
        match self.map_layouts(|_, layout| layout.rows_joined()) {
            Some(job) if position_follows => Self { start_batch: 0, ..job },
            _ => *self,
        }
    }

    /// The vector path if every word of four channels lies on its own, whole.
    fn lane(&self) -> Lane {
        let mut tensors = Tensor::DATA.into_iter().filter_map(|tensor| self.layout(tensor));
        let pairs_by_fours = self.pairs.is_multiple_of(4) && self.first_channel.is_multiple_of(4);
        if pairs_by_fours && tensors.all(|layout| layout.is_in_fours()) { Lane::Four } else { Lane::One }
    }

    /// Words of a head to copy along: none in place, where they stay.
    fn copies(&self, lane: Lane) -> usize {
        let one_buffer = matches!(self.data, Data::One | Data::InPlace);
        if one_buffer && self.q == self.q_out && self.k.is_none_or(|(k, out)| k == out) {
            return 0;
        }
        (self.q.shape()[3] - 2 * self.pairs) / lane.pairs()
    }
}

/// How the work is cut: into groups of heads for one invocation each, and into workgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    q_group: usize,
    k_group: usize,
    groups: usize,
    workgroup: [u32; 3],
}

impl Cut {
    /// From the lanes of a head and the rows, the numbers of heads, and how many of either an invocation should turn.
    fn new([lanes, rows]: [usize; 2], [q_heads, k_heads]: [usize; 2], at_once: usize, limits: Limits) -> Self {
        let groups = q_heads.max(k_heads).div_ceil(at_once).max(1);
        Self {
            q_group: q_heads.div_ceil(groups),
            k_group: k_heads.div_ceil(groups),
            groups,
            // Lanes of a head, heads of a token, tokens: the order in memory. Few tokens need no more than they are.
            workgroup: limits.workgroup([lanes, groups, rows.next_power_of_two()]),
        }
    }
}

/// A piece of the grid: rows of the batch, tokens, groups of heads. And a window of a cache's rows, outside of which tokens
/// are not written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Region {
    batch: Range<usize>,
    tokens: Range<usize>,
    groups: Range<usize>,
    cache_rows: Range<usize>,
}

/// What a region can be cut along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Axis {
    Batch,
    Tokens,
    Groups,
    CacheRows,
}

impl Region {
    fn rows(&self) -> usize {
        self.batch.len() * self.tokens.len()
    }

    /// Two halves along the axis on which a tensor reaches farthest: of a cache that of its rows, not of tokens.
    fn halves_along_reach(&self, layout: Layout, is_cache: bool) -> Option<(Self, Self)> {
        let reach = |axis: usize| layout.shape()[axis].saturating_sub(1).saturating_mul(layout.strides()[axis]);
        let axes = [Axis::Batch, if is_cache { Axis::CacheRows } else { Axis::Tokens }, Axis::Groups];
        let shrinks = |&at: &usize| self.extent(axes[at]) > 1;
        let at = (0..3).filter(shrinks).max_by_key(|&at| reach(at))?;
        Some(self.halves(axes[at]))
    }

    /// Two halves with fewer rows or groups each.
    fn halves_of_longest(&self) -> Option<(Self, Self)> {
        let axes = [Axis::Batch, Axis::Tokens, Axis::Groups];
        let axis = axes.into_iter().max_by_key(|&axis| self.extent(axis))?;
        (self.extent(axis) > 1).then(|| self.halves(axis))
    }

    fn extent(&self, axis: Axis) -> usize {
        match axis {
            Axis::Batch => self.batch.len(),
            Axis::Tokens => self.tokens.len(),
            Axis::Groups => self.groups.len(),
            Axis::CacheRows => self.cache_rows.len(),
        }
    }

    fn halves(&self, axis: Axis) -> (Self, Self) {
        let (mut left, mut right) = (self.clone(), self.clone());
        let (a, b) = match axis {
            Axis::Batch => (&mut left.batch, &mut right.batch),
            Axis::Tokens => (&mut left.tokens, &mut right.tokens),
            Axis::Groups => (&mut left.groups, &mut right.groups),
            Axis::CacheRows => (&mut left.cache_rows, &mut right.cache_rows),
        };
        let middle = a.start + a.len() / 2;
        a.end = middle;
        b.start = middle;
        (left, right)
    }
}

/// Cuts a job until the device's limits hold for each part.
struct Planner {
    job: Job,
    lane: Lane,
    cut: Cut,
    copies: usize,
    limits: Limits,
}

impl Planner {
    fn split(&self, region: &Region, parts: &mut Vec<Part>) -> Result<()> {
        let piece = self.narrowed(region);
        let part = self.part(&piece, region);
        let Some((_, largest, range)) = part.ranges.iter().max_by_key(|(.., range)| range.end - range.start) else {
            return Ok(());
        };
        let (largest, bytes) = (*largest, range.end - range.start);
        let grid_fits = part.groups.iter().all(|&n| n <= self.limits.groups) && u32::try_from(region.rows()).is_ok();
        if grid_fits && bytes <= self.limits.binding {
            parts.push(part);
            return Ok(());
        }
        let halves = match piece.layout(largest) {
            Some(layout) if grid_fits => region.halves_along_reach(layout, self.job.cached() == Some(largest)),
            _ => region.halves_of_longest(),
        };
        match halves {
            Some((left, right)) => {
                self.split(&left, parts)?;
                self.split(&right, parts)
            }
            None => {
                self.limits.expect_groups("the channels of one head", part.groups[0])?;
                self.limits.expect_binding(&self.least(largest), bytes)
            }
        }
    }

    /// What of a tensor a dispatch cannot do without.
    fn least(&self, tensor: Tensor) -> String {
        let name = match tensor {
            Tensor::Q => self.job.name.into(),
            Tensor::QOut => format!("{}.output", self.job.name),
            other => other.name().into(),
        };
        format!("one head of {name} in one token")
    }

    /// The part of the job that lies in a region. The last groups may hold no heads of one of the tensors.
    fn narrowed(&self, region: &Region) -> Job {
        let cached = self.job.cached();
        // Which row of a cache a token goes to only the device knows: each window of rows takes all tokens, and the first
        // one the queries beside them, which may be turned in place.
        let is_again = region.cache_rows.start > 0;
        let narrow = |tensor: Tensor, layout: Layout| {
            let rows = layout.narrow(0, region.batch.clone()).ok()?;
            let window = if cached == Some(tensor) { &region.cache_rows } else { &region.tokens };
            let rows = rows.narrow(1, window.clone()).ok()?;
            let size = match tensor {
                Tensor::Positions | Tensor::Rows => return Some(rows),
                Tensor::Q | Tensor::QOut => self.cut.q_group,
                Tensor::K | Tensor::KOut => self.cut.k_group,
            };
            let n_heads = layout.shape()[2];
            if is_again && cached == Some(Tensor::KOut) && matches!(tensor, Tensor::Q | Tensor::QOut) {
                return rows.narrow(2, n_heads..n_heads).ok();
            }
            rows.narrow(2, (region.groups.start * size).min(n_heads)..(region.groups.end * size).min(n_heads)).ok()
        };
        // Every range lies within the job's own, so that there is always a narrowed job.
        let job = self.job.map_layouts(narrow).unwrap_or(self.job);
        // Positions wrap as the shader's do, and come out right wherever a token's own position is an i32.
        let steps = |by: i32, n: usize| by.wrapping_mul(n as i32);
        let start = job
            .start
            .wrapping_add(steps(job.start_batch, region.batch.start))
            .wrapping_add(steps(job.start_token, region.tokens.start));
        Job { start, ..job }
    }

    /// The layout to bind for a tensor: where a piece holds none of its heads, its first word, for a binding must be
    /// filled whether or not it is used.
    fn bound(&self, job: &Job, tensor: Tensor) -> Option<Layout> {
        let layout = job.layout(tensor)?;
        if !layout.is_empty() {
            return Some(layout);
        }
        let whole = self.job.layout(tensor)?;
        Layout::strided([1, 1, 1, tensor.word(self.lane)], [0, 0, 0, 1], whole.offset()).ok()
    }

    /// The dispatch that does all of a job at once.
    fn part(&self, job: &Job, region: &Region) -> Part {
        let mut ranges = Vec::new();
        let mut places = [Place::default(); 6];
        let all = job.data.bindings().iter().chain(&[Tensor::POSITIONS_BINDING, Tensor::ROWS_BINDING]);
        for (binding, tensors) in all {
            let present = || tensors.iter().filter_map(|&tensor| Some((tensor, self.bound(job, tensor)?)));
            // What is bound is named, and cut, by the tensor that takes most of it.
            let Some((largest, _)) = present().min_by_key(|(_, layout)| std::cmp::Reverse(layout.span().len())) else {
                continue;
            };
            let range = self.limits.range(present().map(|(tensor, layout)| (layout, job.elements.of(tensor))));
            for (tensor, layout) in present() {
                places[tensor as usize] =
                    Place::new(layout, job.elements.of(tensor), tensor.word(self.lane), range.start);
            }
            ranges.push((binding.index, largest, range));
        }
        let cached = job.cached().and_then(|tensor| job.layout(tensor));
        let [q, q_out, k, k_out, position, row] = places;
        let word = self.lane.pairs();
        let lanes = job.pairs / word;
        let (lane_step, pair_step) = match job.pairing {
            Pairing::HalfSplit => (1, lanes),
            Pairing::Interleaved => (2, 1),
        };
        let params = Params {
            q,
            q_out,
            k,
            k_out,
            position,
            row,
            start: job.start,
            start_batch: job.start_batch,
            start_token: job.start_token,
            // Counted from the window's first row: those before it wrap, to far beyond the last.
            row_start: job.rows.map_or(0, |cache| {
                cache.step.wrapping_mul(region.tokens.start as i32).wrapping_sub(region.cache_rows.start as i32)
            }),
            row_token: job.rows.map_or(0, |cache| cache.step),
            cache_rows: cached.map_or(0, |layout| layout.shape()[1] as u32),
            tokens: region.tokens.len() as u32,
            rows: region.rows() as u32,
            groups: region.groups.len() as u32,
            q_heads: job.q.shape()[2] as u32,
            k_heads: job.k.map_or(0, |(k, _)| k.shape()[2] as u32),
            q_group: self.cut.q_group as u32,
            k_group: self.cut.k_group as u32,
            lanes: lanes as u32,
            copies: self.copies as u32,
            first: (job.first_channel / word) as u32,
            lane_step,
            pair_step: pair_step as u32,
            cos_scale: job.cos_scale,
            sin_scale: job.sin_scale,
        };
        let [x, y, z] = self.cut.workgroup;
        let groups = |n: usize, size: u32| u32::try_from(n.div_ceil(size as usize)).unwrap_or(u32::MAX);
        Part {
            params,
            ranges,
            groups: [groups(lanes + self.copies, x), groups(region.groups.len(), y), groups(region.rows(), z)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ElementType;

    const LIMITS: Limits = Limits::LOWEST;

    fn job(shape: [usize; 4], k_heads: usize) -> Job {
        let q = Layout::contiguous(shape).unwrap();
        let k = Layout::contiguous([shape[0], shape[1], k_heads, shape[3]]).unwrap();
        Job {
            name: "q",
            data: Data::InPlace,
            elements: Elements::all(ElementType::F32),
            angles: Angles::Turns,
            pairing: Pairing::HalfSplit,
            pairs: shape[3] / 2,
            first_channel: 0,
            q,
            q_out: q,
            k: Some((k, k)),
            positions: None,
            axes: false,
            rows: None,
            start: 0,
            start_batch: 0,
            start_token: 1,
            cos_scale: 1.0,
            sin_scale: 1.0,
        }
    }

    /// Every token of every head is in exactly one part.
    fn assert_covers(job: &Job, limits: Limits, software: bool) -> Vec<Part> {
        let (_, parts) = job.plan(limits, software).unwrap();
        let rows = |part: &Part| u64::from(part.params.rows);
        let heads = |part: &Part| u64::from(part.params.q_heads + part.params.k_heads);
        let [batch, tokens, q_heads, _] = job.q.shape();
        let all = (batch * tokens * (q_heads + job.k.map_or(0, |(k, _)| k.shape()[2]))) as u64;
        assert_eq!(parts.iter().map(|part| rows(part) * heads(part)).sum::<u64>(), all);
        for part in &parts {
            assert!(part.groups.iter().all(|&n| n > 0 && n <= limits.groups), "{part:?}");
            for (_, _, range) in &part.ranges {
                assert!(range.end - range.start <= limits.binding && range.start % limits.alignment == 0, "{part:?}");
                // All jobs here take the vector path, whose words are of sixteen bytes.
                assert!(range.end - range.start >= 16, "{part:?}");
            }
        }
        parts
    }

    #[test]
    fn one_dispatch_where_limits_allow() {
        for software in [false, true] {
            for (q_heads, k_heads) in [(32, 8), (32, 32), (9, 3), (28, 4), (71, 1), (1, 5), (4, 0)] {
                let parts = assert_covers(&job([1, 2048, q_heads, 128], k_heads), LIMITS, software);
                assert_eq!(parts.len(), 1, "{q_heads} + {k_heads}");
            }
        }
    }

    #[test]
    fn large_views_are_split_by_offset_and_grids_fold() {
        let small = Limits { binding: 1 << 16, ..LIMITS };
        let parts = assert_covers(&job([3, 100, 8, 64], 2), small, false);
        assert!(parts.len() > 1);
        // The positions of a later part go on where the earlier ones end.
        let starts: Vec<_> = parts.iter().map(|part| part.params.start).collect();
        assert!(starts.iter().any(|&start| start > 0), "{starts:?}");
        assert!(assert_covers(&job([1, 1000, 8, 64], 2), Limits { groups: 7, ..LIMITS }, false).len() > 1);
        let heads_first = Layout::heads_first([1, 100, 8, 64]).unwrap();
        let job = Job { q: heads_first, q_out: heads_first, k: None, data: Data::One, ..job([1, 100, 8, 64], 2) };
        assert!(assert_covers(&job, small, false).len() > 1);
    }

    /// Every token may go to any row: each window of a cache takes all of them, and queries are turned but once.
    #[test]
    fn caches_are_taken_in_windows() {
        let small = Limits { binding: 1 << 16, ..LIMITS };
        let all = job([2, 10, 8, 64], 2);
        let cache = Layout::contiguous([2, 1000, 2, 64]).unwrap();
        let rows = Layout::contiguous([2, 10, 1, 1]).unwrap();
        let rows = Some(CacheRows { rows, step: 0 });
        let (k, _) = all.k.unwrap();
        let job = Job { data: Data::Copy, k: Some((k, cache)), rows, ..all };
        for software in [false, true] {
            let (_, parts) = job.plan(small, software).unwrap();
            // 512,000 bytes to a row of the batch are eight windows.
            assert_eq!(parts.len(), 2 * 8);
            assert!(parts.iter().flat_map(|part| &part.ranges).all(|(.., range)| range.end - range.start <= 1 << 16));
            let cache_rows = |parts: &[Part]| parts.iter().map(|part| part.params.cache_rows).sum::<u32>();
            assert_eq!([cache_rows(&parts[..8]), cache_rows(&parts[8..])], [1000; 2]);
            let first_rows: Vec<_> = parts[..8].iter().map(|part| -part.params.row_start).collect();
            assert_eq!(first_rows, [0, 125, 250, 375, 500, 625, 750, 875]);
            assert_eq!(parts.iter().map(|part| part.params.q_heads * part.params.rows).sum::<u32>(), 2 * 10 * 8);
        }
    }

    /// 16 GiB: bytes and elements that no 32 bits count, in bindings of 128 MiB in which each word has a number.
    #[test]
    fn sizes_of_64_bits() {
        let parts = assert_covers(&job([1, 1 << 20, 32, 128], 8), LIMITS, false);
        assert!(parts.len() >= 128, "{}", parts.len());
        let ends = parts.iter().flat_map(|part| part.ranges.iter().map(|(.., range)| range.end));
        assert_eq!(ends.max(), Some(1 << 34));
    }

    #[test]
    fn groups_without_a_key_still_fill_its_binding() {
        for (heads, k_heads, limits) in [(40, 8, LIMITS), (4, 1, Limits { binding: 1 << 12, ..LIMITS })] {
            let tokens = if heads == 40 { 7000 } else { 64 };
            let of = |heads| Layout::heads_first([1, tokens, heads, 64]).unwrap();
            let (q, k) = (of(heads), of(k_heads));
            for software in [false, true] {
                let job = Job { q, q_out: q, k: Some((k, k)), ..job([1, tokens, heads, 64], k_heads) };
                assert!(!assert_covers(&job, limits, software).is_empty());
            }
        }
    }

    #[test]
    fn what_cannot_be_split_is_refused_with_the_numbers() {
        let error = job([1, 4, 8, 64], 2).plan(Limits { binding: 128, ..LIMITS }, false).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("256 bytes"), "{error}");
    }

    #[test]
    fn rows_are_joined_where_memory_follows() {
        let batched = |job: Job| job.plan(LIMITS, false).unwrap().0.batched;
        // A position that starts anew with each row needs the token's number.
        assert!(batched(job([3, 5, 8, 64], 2)));
        assert!(!batched(Job { start_token: 0, ..job([3, 5, 8, 64], 2) }));
        assert!(!batched(job([3, 1, 8, 64], 2)));
        let heads_first = Layout::heads_first([3, 5, 8, 64]).unwrap();
        let strided = Job { q: heads_first, q_out: heads_first, start_token: 0, ..job([3, 5, 8, 64], 2) };
        assert!(batched(strided));
    }
}
