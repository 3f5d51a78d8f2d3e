//! Rotation straight into a cache: the same bits as a rotation to somewhere else, converted, and then copied by the host
//! to the rows that are named. Every other bit of the cache's buffer stays.

use crate::common::refused::expect_refused;
use crate::common::{Random, gpu, gpu_with};
use crate::raw::{Raw, bits, frequencies, narrow, run, widen};
use phasor::ElementType::{BF16, F16, F32};
use phasor::frequencies::Axes;
use phasor::{CacheRows, Direction, ElementType, ErrorKind, Gpu, Layout, Pairing, Positions, Rope, Rotate, View};

const HEADS: usize = 3;

/// How a cache `[batch, rows, heads, channels]` lies in its buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    TokensFirst,
    HeadsFirst,
    /// Rows of several sequences by turns, an odd number of elements between channels and heads.
    Odd,
}

impl Order {
    const ALL: [Self; 3] = [Self::TokensFirst, Self::HeadsFirst, Self::Odd];

    fn lay(self, [b, t, h, c]: [usize; 4]) -> phasor::Result<Layout> {
        match self {
            Self::TokensFirst => Layout::contiguous([b, t, h, c])?.offset_by(8),
            Self::HeadsFirst => Layout::heads_first([b, t, h, c])?.offset_by(8),
            Self::Odd => Layout::strided([b, t, h, c], [h * (2 * c + 1), b * h * (2 * c + 1), 2 * c + 1, 2], 5),
        }
    }
}

/// Which rows are named, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Naming {
    /// Where each sequence goes on.
    StartPerRow,
    /// One place for all.
    Start,
    /// Slots in no order, some of which do not exist.
    PerToken,
    /// The same slots in each sequence.
    PerTokenShared,
}

impl Naming {
    const ALL: [Self; 4] = [Self::StartPerRow, Self::Start, Self::PerToken, Self::PerTokenShared];

    /// The numbers `[batch or 1, tokens or 1]` in the buffer.
    fn numbers(self, batch: usize, tokens: usize, rows: usize) -> ([usize; 2], Vec<i32>) {
        let absent = [-1, rows as i32, i32::MIN, i32::MAX];
        // Slots from the last one down, but for every third token.
        let slot = |b: usize, t: usize| match (b + t) % 3 {
            2 => absent[(b + t) / 3 % 4],
            _ => rows as i32 - 1 - t as i32,
        };
        match self {
            // The first sequence begins before the cache, the last one ends behind it.
            Self::StartPerRow => {
                let last = |b: usize| if b + 1 == batch { rows as i32 - 2 } else { 3 * b as i32 };
                ([batch, 1], (0..batch).map(|b| if b == 0 { -1 } else { last(b) }).collect())
            }
            Self::Start => ([1, 1], vec![2]),
            Self::PerToken => ([batch, tokens], (0..batch * tokens).map(|i| slot(i / tokens, i % tokens)).collect()),
            Self::PerTokenShared => ([1, tokens], (0..tokens).map(|t| slot(0, t)).collect()),
        }
    }

    fn rows(self, gpu: &Gpu, batch: usize, tokens: usize, rows: usize) -> phasor::Result<CacheRows> {
        let (shape, list) = self.numbers(batch, tokens, rows);
        let view = gpu.upload_positions(&list, shape)?;
        Ok(match self {
            Self::StartPerRow | Self::Start => CacheRows::StartPerRow(view),
            Self::PerToken | Self::PerTokenShared => CacheRows::PerToken(view),
        })
    }

    /// The row that a token goes to.
    fn row(self, [batch, tokens, rows]: [usize; 3], b: usize, t: usize) -> Option<usize> {
        let ([n, steps], list) = self.numbers(batch, tokens, rows);
        let number = i64::from(list[b % n * steps + t % steps]);
        let number =
            if steps == 1 && matches!(self, Self::StartPerRow | Self::Start) { number + t as i64 } else { number };
        usize::try_from(number).ok().filter(|&row| row < rows)
    }
}

/// A rotation into a cache, in everything that can vary.
#[derive(Debug, Clone, Copy)]
struct Setting {
    batch: usize,
    tokens: usize,
    rows: usize,
    channels: usize,
    rotary_dim: usize,
    pairing: Pairing,
    direction: Direction,
    from: ElementType,
    to: ElementType,
    order: Order,
    naming: Naming,
    axes: bool,
    table: bool,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            batch: 3,
            tokens: 7,
            rows: 12,
            channels: 16,
            rotary_dim: 8,
            pairing: Pairing::HalfSplit,
            direction: Direction::Forward,
            from: F32,
            to: F32,
            order: Order::TokensFirst,
            naming: Naming::PerToken,
            axes: false,
            table: false,
        }
    }
}

impl Setting {
    fn shape(&self, tokens: usize) -> [usize; 4] {
        [self.batch, tokens, HEADS, self.channels]
    }

    fn rope(&self, gpu: &Gpu) -> phasor::Result<Rope> {
        let rope = Rope::new(gpu, &frequencies(self.rotary_dim, 1.25)?, self.pairing)?;
        let rope = rope.from_channel(self.channels - self.rotary_dim);
        if self.axes { rope.with_axes(&Axes::axial(self.rotary_dim / 2)?) } else { Ok(rope) }
    }

    /// The rotation's angles: a position for each token and row, from a table or not.
    fn angles(&self, gpu: &Gpu, rope: &Rope, rotate: Rotate) -> phasor::Result<Rotate> {
        let axes = if self.axes { 2 } else { 1 };
        let list: Vec<i32> = (0..self.batch * self.tokens * axes).map(|i| (i * 37 % 61) as i32).collect();
        let all = gpu.upload_positions(&list, [1, list.len()])?;
        let layout = Layout::contiguous([self.batch, self.tokens, axes, 1])?;
        let at = View::new(all.buffer(), ElementType::I32, layout)?;
        let rotate = rotate.direction(self.direction);
        if !self.table {
            return Ok(rotate.positions(Positions::PerToken(at)));
        }
        let table = rope.table_for(&at)?;
        gpu.submit(|pass| table.record(pass))?;
        Ok(rotate.from_table(&table))
    }

    /// A cache full of any bits, but for what would be read: nothing is.
    fn cache<'a>(&self, gpu: &'a Gpu) -> phasor::Result<(Raw<'a>, Layout, Vec<u16>)> {
        let layout = self.order.lay(self.shape(self.rows))?;
        let halves = (layout.span().end + 9) * self.to.bytes() / 2;
        let mut random = Random::new(61);
        let before: Vec<u16> = (0..halves.next_multiple_of(2)).map(|_| random.bits() as u16).collect();
        Ok((Raw::halves(gpu, &before)?, layout, before))
    }

    /// Runs it, keys alone and beside queries; returns the dispatches that keys alone took.
    fn check(&self, gpu: &Gpu) -> phasor::Result<usize> {
        let rope = self.rope(gpu)?;
        let upload = |seed| {
            let shape = self.shape(self.tokens);
            gpu.upload_as(self.from, &Random::new(seed).values(shape.iter().product()), shape)
        };
        let (q, k) = (upload(62)?, upload(63)?);
        let elsewhere = |view: &View| {
            let out = gpu.zeros(self.to, view.shape())?;
            run(gpu, &rope, &self.angles(gpu, &rope, Rotate::into(view, &out))?)?;
            bits(gpu, &out)
        };
        let rows = || self.naming.rows(gpu, self.batch, self.tokens, self.rows);
        let (alone, layout, mut expected) = self.cache(gpu)?;
        let cache = alone.view(self.to, layout)?;
        let dispatches = run(gpu, &rope, &self.angles(gpu, &rope, Rotate::into_cache(&k, &cache, rows()?))?)?;
        self.copy_rows(&elsewhere(&k)?, layout, &mut expected);
        assert!(alone.read_halves()? == expected, "keys alone: {self:?}");

        let (beside, ..) = self.cache(gpu)?;
        let (cache, q_out) = (beside.view(self.to, layout)?, gpu.zeros(self.to, q.shape())?);
        let both = Rotate::into(&q, &q_out).and_into_cache(&k, &cache, rows()?);
        run(gpu, &rope, &self.angles(gpu, &rope, both)?)?;
        assert!(beside.read_halves()? == expected, "keys beside queries: {self:?}");
        assert!(bits(gpu, &q_out)? == elsewhere(&q)?, "queries beside keys: {self:?}");
        Ok(dispatches)
    }

    /// Rotated keys to their rows of the cache, which is told by its halves.
    fn copy_rows(&self, keys: &[u32], cache: Layout, halves: &mut [u16]) {
        let token = HEADS * self.channels;
        for (i, key) in keys.chunks(token).enumerate() {
            let (b, t) = (i / self.tokens, i % self.tokens);
            let Some(row) = self.naming.row([self.batch, self.tokens, self.rows], b, t) else { continue };
            for (channel, &bits) in key.iter().enumerate() {
                let place = cache.at([b, row, channel / self.channels, channel % self.channels]);
                match self.to {
                    F32 => {
                        let words: &mut [[u16; 2]] = bytemuck::cast_slice_mut(halves);
                        words[place] = [bits as u16, (bits >> 16) as u16];
                    }
                    // Exactly: it was such a number before it was widened.
                    half => halves[place] = narrow(half, f32::from_bits(bits)),
                }
            }
        }
    }
}

#[test]
fn every_naming_of_rows_in_every_order() -> phasor::Result<()> {
    for naming in Naming::ALL {
        for order in Order::ALL {
            for table in [false, true] {
                for (batch, tokens) in [(3, 7), (3, 1), (1, 7), (1, 1)] {
                    assert_eq!(Setting { naming, order, table, batch, tokens, ..Setting::default() }.check(gpu())?, 1);
                }
            }
        }
    }
    Ok(())
}

#[test]
fn every_conversion() -> phasor::Result<()> {
    for (from, to) in [F32, F16, BF16].into_iter().flat_map(|from| [F32, F16, BF16].map(|to| (from, to))) {
        for order in [Order::HeadsFirst, Order::Odd] {
            for channels in [16, 11] {
                assert_eq!(Setting { from, to, order, channels, ..Setting::default() }.check(gpu())?, 1);
            }
        }
    }
    Ok(())
}

#[test]
fn every_way_to_turn() -> phasor::Result<()> {
    for pairing in [Pairing::Interleaved, Pairing::HalfSplit] {
        for direction in [Direction::Forward, Direction::Inverse, Direction::Adjoint] {
            for (axes, table) in [(false, false), (true, false), (true, true)] {
                for rotary_dim in [16, 8, 4] {
                    Setting { pairing, direction, axes, table, rotary_dim, to: BF16, ..Setting::default() }
                        .check(gpu())?;
                }
            }
        }
    }
    Ok(())
}

/// A device with bindings of at most so many bytes, which begin as coarsely as WebGPU allows.
fn gpu_with_bindings_of(bytes: u64) -> Gpu {
    gpu_with(|limits| {
        limits.max_storage_buffer_binding_size = bytes;
        limits.min_storage_buffer_offset_alignment = 256;
    })
}

/// Three sequences of 40 tokens, 7.5 KiB each, into 60 rows, 11.25 KiB each.
fn large() -> Setting {
    Setting { tokens: 40, rows: 60, ..Setting::default() }
}

/// As few pieces as hold: sequences or heads, as a cache is split, and tokens only where keys need it.
#[test]
fn work_is_split_where_a_cache_is_larger_than_a_binding() -> phasor::Result<()> {
    for (kilobytes, order, to, pieces) in [
        (64, Order::TokensFirst, F32, 1),
        (12, Order::TokensFirst, F32, 3),
        (12, Order::HeadsFirst, F32, 3),
        // The keys of a head reach over 7.5 KiB: half of the tokens at a time.
        (4, Order::HeadsFirst, F32, 3 * 3 * 2),
        (6, Order::TokensFirst, BF16, 3 * 2),
        (6, Order::TokensFirst, F16, 3 * 2),
    ] {
        let gpu = gpu_with_bindings_of(kilobytes << 10);
        for naming in Naming::ALL {
            for table in [false, to == F32 && kilobytes > 6] {
                let setting = Setting { order, to, naming, table, ..large() };
                assert_eq!(setting.check(&gpu)?, pieces, "{kilobytes} KiB: {setting:?}");
            }
        }
    }
    Ok(())
}

/// The rows' numbers, too, and grids of a single group.
#[test]
fn rows_follow_the_pieces() -> phasor::Result<()> {
    let small = gpu_with_bindings_of(1024);
    let narrow_grid = gpu_with(|limits| limits.max_compute_workgroups_per_dimension = 1);
    for naming in Naming::ALL {
        let many = Setting { tokens: 300, channels: 2, rotary_dim: 2, naming, ..Setting::default() };
        // 1,200 bytes of numbers for a sequence, and 760 of a head's rows.
        let numbers = Setting { order: Order::HeadsFirst, to: F16, rows: 190, batch: 2, ..many };
        assert!(numbers.check(&small)? > 1);
        assert!(Setting { rows: 310, ..many }.check(&narrow_grid)? > 1);
    }
    Ok(())
}

/// Which row a token goes to only the device knows: where no binding reaches all rows of a head, each window of them takes
/// all tokens.
#[test]
fn a_cache_whose_head_no_binding_holds_is_written_in_windows() -> phasor::Result<()> {
    // 11 KiB to a head.
    let gpu = gpu_with_bindings_of(4 << 10);
    for naming in Naming::ALL {
        let windows = Setting { naming, ..large() }.check(&gpu)?;
        assert!(windows >= 3, "{windows}");
    }
    // Not even a token's head.
    let refused = large().check(&gpu_with_bindings_of(16));
    expect_refused(refused, ErrorKind::Limit, "max_storage_buffer_binding_size");
    Ok(())
}

/// Queries that are turned in place, in the dispatch that writes keys to windows of a cache in their own buffer.
#[test]
fn queries_beside_windows_of_a_cache_turn_once() -> phasor::Result<()> {
    let gpu = gpu_with_bindings_of(8 << 10);
    let rope = Rope::new(&gpu, &frequencies(8, 1.0)?, Pairing::HalfSplit)?;
    let mut random = Random::new(66);
    let (queries, keys) = (random.values(3 * 4 * 8), random.values(3 * 2 * 8));
    let q = gpu.upload(&queries, [1, 3, 4, 8])?;
    // Keys beside the middle of their cache, so that half of it is bound with them: 12,800 bytes in all.
    let one = gpu.zeros(F32, [1, 100, 4, 8])?;
    let (k, cache) = (one.heads(2..4)?.tokens(49..52)?, one.heads(0..2)?);
    for (t, numbers) in keys.chunks(16).enumerate() {
        let at = 4 * k.layout().at([0, t, 0, 0]) as u64;
        gpu.queue().write_buffer(one.buffer(), at, bytemuck::cast_slice(numbers));
    }
    let rows = gpu.upload_positions(&[99, 0, 50], [1, 3])?;
    let rotate = Rotate::in_place(&q).and_into_cache(&k, &cache, CacheRows::PerToken(rows));
    assert_eq!(run(&gpu, &rope, &rotate.positions(Positions::Start(5)))?, 2);
    let (got, kept) = (gpu.read_blocking(&q)?, gpu.read_blocking(&cache)?);
    let (q, k) = (gpu.upload(&queries, [1, 3, 4, 8])?, gpu.upload(&keys, [1, 3, 2, 8])?);
    run(&gpu, &rope, &Rotate::in_place(&q).and_in_place(&k).positions(Positions::Start(5)))?;
    assert_eq!(got, gpu.read_blocking(&q)?);
    let k = gpu.read_blocking(&k)?;
    for (row, kept) in kept.chunks(16).enumerate() {
        let token = [99, 0, 50].iter().position(|&named| named == row);
        assert_eq!(kept, token.map_or(&[0.0; 16][..], |token| &k[16 * token..][..16]), "row {row}");
    }
    Ok(())
}

/// Keys and their cache may be in one buffer, and so may two caches, or the numbers of positions and rows.
#[test]
fn keys_and_caches_may_share_buffers() -> phasor::Result<()> {
    let rope = Rope::new(gpu(), &frequencies(8, 1.25)?, Pairing::HalfSplit)?;
    let (new, kept) = (Layout::contiguous([2, 3, 2, 8])?, Layout::contiguous([2, 5, 2, 8])?);
    let numbers = gpu().upload_positions(&[1, 2], [2, 1])?;
    for element in [F32, F16, BF16] {
        let values = Random::new(64).values(2 * 96 + 2 * 160);
        let one = gpu().upload_as(element, &values, [1, 1, 1, values.len()])?;
        let part = |layout: Layout, at| View::new(one.buffer(), element, layout.offset_by(at)?);
        let (k, v, k_cache, v_cache) = (part(new, 0)?, part(new, 96)?, part(kept, 192)?, part(kept, 352)?);
        let mut expected = gpu().read_blocking(&one)?;
        for (from, at) in [(&k, 192), (&v, 352)] {
            let out = gpu().zeros(element, [2, 3, 2, 8])?;
            run(gpu(), &rope, &Rotate::into(from, &out).positions(Positions::StartPerRow(numbers.clone())))?;
            for (i, value) in gpu().read_blocking(&out)?.into_iter().enumerate() {
                let (b, t) = (i / 48, i / 16 % 3);
                expected[at + b * 80 + (b + 1 + t) * 16 + i % 16] = value;
            }
        }
        let rows = || CacheRows::StartPerRow(numbers.clone());
        let rotate = Rotate::into_cache(&k, &k_cache, rows()).and_into_cache(&v, &v_cache, rows());
        let rotate = rotate.positions(Positions::StartPerRow(numbers.clone()));
        assert_eq!(run(gpu(), &rope, &rotate)?, 2, "a dispatch looks up the rows of one cache");
        assert!(gpu().read_blocking(&one)? == expected, "{element}");
    }
    Ok(())
}

/// One step of a decoder, prepared once: token after token the cache becomes what the whole prompt makes of it.
#[test]
fn a_decoder_s_steps_fill_the_prompt_s_cache() -> phasor::Result<()> {
    const TOKENS: usize = 5;
    let starts = [0, 4, 2];
    for order in Order::ALL {
        let setting = Setting { order, to: F16, tokens: TOKENS, ..Setting::default() };
        let rope = setting.rope(gpu())?;
        let k = gpu().upload(&Random::new(65).values(setting.shape(TOKENS).iter().product()), setting.shape(TOKENS))?;
        let (whole, layout, _) = setting.cache(gpu())?;
        let (stepped, ..) = setting.cache(gpu())?;
        let view = |list: &[i32]| gpu().upload_positions(list, [3, 1]);
        let from_start = view(&starts)?;
        let rotate = Rotate::into_cache(&k, &whole.view(F16, layout)?, CacheRows::StartPerRow(from_start.clone()));
        run(gpu(), &rope, &rotate.positions(Positions::StartPerRow(from_start)))?;
        let now = view(&[0; 3])?;
        let token = gpu().zeros(F32, setting.shape(1))?;
        let rotate = Rotate::into_cache(&token, &stepped.view(F16, layout)?, CacheRows::PerToken(now.clone()));
        let step = rope.prepare(&rotate.positions(Positions::PerToken(now.clone())))?;
        for t in 0..TOKENS {
            let list = starts.map(|start| start + t as i32);
            gpu().queue().write_buffer(now.buffer(), 0, bytemuck::cast_slice(&list));
            let values = gpu().read_blocking(&k.tokens(t..t + 1)?)?;
            gpu().queue().write_buffer(token.buffer(), 0, bytemuck::cast_slice(&values));
            gpu().submit(|pass| step.record(pass))?;
        }
        assert!(stepped.read_halves()? == whole.read_halves()?, "{order:?}");
        // What was written is what was meant: the last token of the last sequence stands in row 6.
        let last = gpu().read_blocking(&k.batch(2..3)?.tokens(4..5)?)?;
        let halves = whole.read_halves()?;
        let got: Vec<f32> = (0..setting.channels).map(|c| widen(F16, halves[layout.at([2, 6, 0, c])])).collect();
        let untouched = setting.channels - setting.rotary_dim;
        let expected: Vec<f32> = last[..untouched].iter().map(|&x| widen(F16, narrow(F16, x))).collect();
        assert!(got[..untouched].iter().zip(&expected).all(|(a, b)| (a - b).abs() <= b.abs() / 1024.0), "{order:?}");
    }
    Ok(())
}
