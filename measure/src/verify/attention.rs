//! Attention and contextual encoding: every way to cut the work, with every option and every kind of storage.

use super::attention_bound::{Contextual, Sizes};
use super::bound::stored;
use super::tally::{Compared, Tally};
use phasor::attention::{Attention, ContextualPe, Fused, Gates, Merge, Rotation, Schedule, Standing, Unfused};
use phasor::frequencies::Frequencies;
use phasor::reference::{self, Attended, Tensor, attention, attention_merge};
use phasor::{ContextualBias, ElementType, ErrorKind, Gpu, Layout, Pairing, Prepared, Result, View};
use std::fmt;
use std::ops::Range;

const BATCH: usize = 2;
const KEYS: usize = 37;
const HEADS: usize = 4;
const POSITIONS: usize = 9;
/// The first key of the first row, where rows have ranges.
const FIRST_KEY: usize = 3;
/// Channels between an output's heads that are nobody's.
const GAP: usize = 4;

/// One attention.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    how: How,
    what: What,
    element: ElementType,
    channels: usize,
}

/// How the work is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Fused(Schedule),
    /// One query over many keys, and a key head to each head.
    Decode,
    /// So many keys that gates are summed split by split.
    LongDecode,
    /// By tiles: more than one of queries, of keys, and of value channels.
    Tiled,
    Unfused,
    /// The keys in two parts, merged.
    Merged,
}

/// What stands beside queries, keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Plain,
    Causal,
    /// Ranges, a boolean mask, a bias and a window.
    Masked,
    Contextual,
    /// The same over rows of different lengths, with a bias that gates do not see.
    ContextualMasked,
    /// Keys of their own for gates, queries of their own for positions.
    SeparateKeys,
    /// Gates from values, and sums of gates handed in and out.
    ValueGates,
    /// Rotated on the way in, half-split.
    Rotated,
    /// Rotated on the way in, by neighbours, with position embeddings that meet rotated queries.
    RotatedContextual,
    /// The same over rows of different lengths, with a bias.
    RotatedRows,
    /// Some channels, half-split, with position embeddings that meet unrotated queries.
    RotatedApart,
}

impl What {
    const ALL: [Self; 11] = [
        Self::Plain,
        Self::Causal,
        Self::Masked,
        Self::Contextual,
        Self::ContextualMasked,
        Self::SeparateKeys,
        Self::ValueGates,
        Self::Rotated,
        Self::RotatedContextual,
        Self::RotatedRows,
        Self::RotatedApart,
    ];

    fn is_contextual(self) -> bool {
        !matches!(self, Self::Plain | Self::Causal | Self::Masked | Self::Rotated)
    }
}

impl Case {
    fn tokens(&self) -> usize {
        match self.how {
            How::Decode | How::LongDecode => 1,
            How::Tiled => 70,
            _ => 11,
        }
    }

    /// More than a split has, on any device.
    fn keys(&self) -> usize {
        match self.how {
            How::Decode => 1300,
            How::LongDecode => 33_000,
            How::Tiled => 80,
            _ => KEYS,
        }
    }

    fn value_channels(&self) -> usize {
        if self.how == How::Tiled { 70 } else { self.channels }
    }

    fn kv_heads(&self) -> usize {
        if matches!(self.how, How::Decode | How::LongDecode) { HEADS } else { HEADS / 2 }
    }

    /// Whether log-sum-exps are written, and sums of gates where there are any. Without, counting may stop early.
    fn writes_all(&self) -> bool {
        self.how == How::Merged || !matches!(self.what, What::Plain | What::Contextual)
    }

    fn writes_gate_sums(&self) -> bool {
        self.writes_all() && self.what.is_contextual()
    }

    /// All channels, but for an odd one, half-split or by neighbours; or about half of them from a quarter on.
    fn rotation(&self) -> Result<Rotation> {
        let pairs = match self.what {
            What::RotatedApart => self.channels / 4,
            _ => self.channels / 2,
        };
        let inv_freq = (0..pairs).map(|pair| 0.7f64.powi(pair as i32)).collect();
        let frequencies = Frequencies::new(inv_freq, FACTOR)?;
        Ok(match self.what {
            What::Rotated => Rotation::new(&frequencies, Pairing::HalfSplit),
            What::RotatedApart => Rotation::new(&frequencies, Pairing::HalfSplit).from_channel(self.channels / 4),
            _ => Rotation::new(&frequencies, Pairing::Interleaved).first_key(-3),
        })
    }

    /// An output's shape, with this many channels.
    fn rows(&self, channels: usize) -> [usize; 4] {
        [BATCH, self.tokens(), HEADS, channels]
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { how, what, element, channels } = self;
        write!(f, "{how:?}, {what:?}, {element}, {channels} channels")
    }
}

/// Each way with each request, and each way with each kind of storage.
pub(super) fn cases() -> Vec<Case> {
    let schedules = [Schedule::Rows, Schedule::Tiles, Schedule::Split].map(How::Fused);
    let merged = [What::Causal, What::Contextual, What::ValueGates];
    let merged = merged.map(|what| Case { how: How::Merged, what, element: ElementType::F32, channels: 8 });
    let ways = schedules.into_iter().chain([How::Decode, How::Unfused]);
    let tiled = [What::Causal, What::Contextual, What::RotatedContextual];
    let tiled = tiled.map(|what| Case { how: How::Tiled, what, element: ElementType::F32, channels: 8 });
    let long = [What::Contextual, What::ValueGates];
    let long = long.map(|what| Case { how: How::LongDecode, what, element: ElementType::F32, channels: 8 });
    let ways = ways.flat_map(|how| {
        let case = move |what, element, channels| Case { how, what, element, channels };
        // Channels that come in fours, and such that do not.
        let whats = What::ALL.into_iter().map(move |what| case(what, ElementType::F32, 8));
        let storages = [(ElementType::F16, 8), (ElementType::BF16, 8), (ElementType::F32, 5), (ElementType::F16, 5)];
        let storages = storages.into_iter().flat_map(move |(element, channels)| {
            [What::Causal, What::Masked, What::RotatedContextual].map(|what| case(what, element, channels))
        });
        // Words of four that do not turn, before and behind those that do.
        whats.chain(storages).chain([case(What::RotatedApart, ElementType::F32, 16)])
    });
    ways.chain(merged).chain(tiled).chain(long).collect()
}

/// The tensors that a request may have.
struct Tensors<T> {
    q: T,
    k: T,
    v: T,
    keep: T,
    bias: T,
    key_ranges: T,
    embeddings: T,
    query: T,
    gate_keys: T,
    gate_sum: T,
}

/// A tensor's numbers, where it lies, and how it is stored.
struct Numbers {
    values: Vec<f32>,
    wide: Vec<f64>,
    layout: Layout,
    element: ElementType,
}

impl Numbers {
    fn new(element: ElementType, shape: [usize; 4], mut value: impl FnMut() -> f32) -> Result<Self> {
        let layout = Layout::contiguous(shape)?;
        let values: Vec<_> = (0..layout.elements()).map(|_| value()).collect();
        Ok(Self { wide: values.iter().copied().map(f64::from).collect(), values, layout, element })
    }

    fn tensor(&self) -> Result<Tensor<'_>> {
        Tensor::new(&self.wide, self.layout)
    }

    fn view(&self, gpu: &Gpu) -> Result<View> {
        let shape = self.layout.shape();
        if self.element != ElementType::I32 {
            return gpu.upload_as(self.element, &self.values, shape);
        }
        let numbers: Vec<_> = self.values.iter().map(|&x| x as i32).collect();
        let flat = gpu.upload_positions(&numbers, [1, numbers.len()])?;
        View::new(flat.buffer(), ElementType::I32, self.layout)
    }

    /// Makes no numbers of keys that the first row's range begins behind.
    fn hide_first_keys(&mut self) -> Result<()> {
        for place in self.layout.batch(0..1)?.tokens(0..FIRST_KEY)?.places() {
            if let (Some(value), Some(wide)) = (self.values.get_mut(place), self.wide.get_mut(place)) {
                (*value, *wide) = (f32::NAN, f64::NAN);
            }
        }
        Ok(())
    }

    /// The largest magnitude.
    fn largest(&self) -> f64 {
        self.wide.iter().fold(0.0, |largest, x| x.abs().max(largest))
    }
}

impl Tensors<Numbers> {
    /// Numbers from -1 to 1 that every element type holds exactly.
    fn random(case: &Case) -> Result<Self> {
        let mut noise = fastrand::Rng::with_seed(case.channels as u64);
        let mut random =
            |scale: f32, shape| Numbers::new(case.element, shape, || noise.i32(-128..=128) as f32 / 128.0 * scale);
        let channels = case.channels;
        let (queries, keys) = (case.rows(channels), [BATCH, case.keys(), case.kv_heads(), channels]);
        let values = [BATCH, case.keys(), case.kv_heads(), case.value_channels()];
        let keys_end = case.keys() as f32;
        let mut rows = [[FIRST_KEY as f32, keys_end - 7.0], [0.0, keys_end]].concat().into_iter();
        // Every fifth key is hidden. One gate and three quarters lie to the right.
        let mut keep = [0.0, 1.0, 1.0, 1.0, 1.0].into_iter().cycle();
        let mut gate_sum = [1.0, 0.75].into_iter().cycle();
        let mut tensors = Self {
            q: random(1.0, queries)?,
            k: random(1.0, keys)?,
            v: random(1.0, values)?,
            keep: Numbers::new(ElementType::I32, [1, case.tokens(), 1, case.keys()], || {
                keep.next().unwrap_or_default()
            })?,
            bias: random(1.0, [BATCH, 1, HEADS, case.keys()])?,
            key_ranges: Numbers::new(ElementType::I32, [BATCH, 1, 1, 2], || rows.next().unwrap_or_default())?,
            embeddings: random(0.5, [1, channels, 1, POSITIONS])?,
            query: random(1.0, queries)?,
            gate_keys: random(1.0, keys)?,
            gate_sum: Numbers::new(ElementType::F32, case.rows(2), || gate_sum.next().unwrap_or_default())?,
        };
        if case.what == What::Masked {
            tensors.k.hide_first_keys()?;
            tensors.v.hide_first_keys()?;
        }
        Ok(tensors)
    }

    fn map<'a, T>(&'a self, of: impl Fn(&'a Numbers) -> Result<T>) -> Result<Tensors<T>> {
        Ok(Tensors {
            q: of(&self.q)?,
            k: of(&self.k)?,
            v: of(&self.v)?,
            keep: of(&self.keep)?,
            bias: of(&self.bias)?,
            key_ranges: of(&self.key_ranges)?,
            embeddings: of(&self.embeddings)?,
            query: of(&self.query)?,
            gate_keys: of(&self.gate_keys)?,
            gate_sum: of(&self.gate_sum)?,
        })
    }

    fn sizes(&self, what: What) -> Result<Sizes> {
        let rotated = matches!(what, What::Rotated | What::RotatedContextual | What::RotatedRows | What::RotatedApart);
        let channels = self.q.layout.shape()[3];
        let scale = (channels as f64).sqrt().recip();
        let query = if what == What::SeparateKeys { &self.query } else { &self.q };
        let with_positions = channels as f64 * query.largest() * self.embeddings.largest();
        let product = scale * channels as f64 * self.q.largest() * self.k.largest();
        Ok(Sizes {
            channels,
            keys: self.k.layout.shape()[1],
            product: if rotated { Sizes::turned(product, FACTOR) } else { product },
            turned: if rotated { Sizes::turning(product, FACTOR) } else { 0.0 },
            bias: if matches!(what, What::Masked | What::ContextualMasked | What::RotatedRows) {
                self.bias.largest()
            } else {
                0.0
            },
            value: self.v.largest(),
            contextual: match what.is_contextual() {
                false => None,
                true if matches!(what, What::RotatedContextual | What::RotatedRows) => {
                    Some(Contextual::turned(with_positions, FACTOR).times(BIAS_SCALE))
                }
                true => Some(Contextual::new(with_positions).times(BIAS_SCALE)),
            },
        })
    }
}

/// Some factors other than 1: of the contextual bias, and of a rotation.
const BIAS_SCALE: f64 = 0.75;
const FACTOR: f64 = 1.25;

impl<T: Clone> Tensors<T> {
    fn contextual(&self) -> ContextualPe<T> {
        ContextualPe::new(&self.embeddings).bias_scale(BIAS_SCALE)
    }

    fn request(&self, case: &Case) -> Result<Attention<T>> {
        let plain = Attention::new(&self.q, &self.k, &self.v);
        let contextual = self.contextual();
        Ok(match case.what {
            What::Plain => plain,
            What::Causal => plain.causal(),
            What::Masked => {
                plain.key_ranges(&self.key_ranges).keep(&self.keep).bias(&self.bias).window(2 * case.keys() / 3)
            }
            What::Contextual => plain.causal().cope(contextual),
            What::ContextualMasked => plain
                .key_ranges(&self.key_ranges)
                .bias(&self.bias)
                .causal()
                .standing(Standing::RowLast)
                .cope(contextual.gates_see_bias(false)),
            What::SeparateKeys => plain.cope(contextual.query(&self.query).gates(Gates::Keys(self.gate_keys.clone()))),
            What::ValueGates => plain.causal().cope(contextual.gates(Gates::Values).gate_sum(&self.gate_sum)),
            What::Rotated => plain.key_ranges(&self.key_ranges).standing(Standing::RowLast).rotate(case.rotation()?),
            What::RotatedContextual => plain.causal().rotate(case.rotation()?).cope(contextual),
            What::RotatedRows => {
                let rows = plain.key_ranges(&self.key_ranges).bias(&self.bias).causal().standing(Standing::RowLast);
                rows.rotate(case.rotation()?).cope(contextual)
            }
            What::RotatedApart => plain.causal().rotate(case.rotation()?).cope(contextual.query(&self.q)),
        })
    }
}

/// What an operation writes, the output between numbers that are nobody's.
struct Results {
    flat: View,
    out: View,
    lse: View,
    gate_sum: View,
}

/// What lies in and around an output before it is written.
const UNTOUCHED: f32 = 77.0;

impl Results {
    fn new(gpu: &Gpu, case: &Case) -> Result<Self> {
        let channels = case.value_channels();
        let row = channels + GAP;
        let strides = [case.tokens() * HEADS * row, HEADS * row, row, 1];
        let layout = Layout::strided(case.rows(channels), strides, GAP)?;
        let elements = GAP + BATCH * strides[0];
        let flat = gpu.upload_as(case.element, &vec![UNTOUCHED; elements], [1, 1, 1, elements])?;
        let zeros = |channels| gpu.zeros(ElementType::F32, case.rows(channels));
        let out = View::new(flat.buffer(), case.element, layout)?;
        Ok(Self { out, flat, lse: zeros(1)?, gate_sum: zeros(2)? })
    }
}

pub(super) async fn check(gpu: &Gpu, case: &Case, tally: &mut Tally) -> Result<()> {
    let numbers = Tensors::random(case)?;
    let expected = attention(&numbers.map(Numbers::tensor)?.request(case)?)?;
    let results = Results::new(gpu, case)?;
    let operations = match operations(gpu, case, &numbers.map(|numbers| numbers.view(gpu))?, &results) {
        // What a device has too few bindings for, the library refuses, and the device cannot get wrong.
        Err(error) if error.kind() == ErrorKind::Limit => {
            tally.refused.push(case.to_string());
            return Ok(());
        }
        operations => operations?,
    };
    gpu.submit(|pass| operations.iter().for_each(|operation| operation.record(pass)))?;
    let compared = compared(gpu, case, &numbers.sizes(case.what)?, &results, &expected).await?;
    tally.add(operations.iter().flat_map(Prepared::shaders), &case.to_string(), &compared);
    Ok(())
}

fn operations(gpu: &Gpu, case: &Case, tensors: &Tensors<View>, results: &Results) -> Result<Vec<Prepared>> {
    let request = tensors.request(case)?;
    let fused = |request: &Attention<View>, to: &Results, schedule| {
        let fused = Fused::new(request, &to.out).schedule(schedule);
        let fused = if case.writes_all() { fused.lse(&to.lse) } else { fused };
        if case.writes_gate_sums() { fused.gate_sum(&to.gate_sum) } else { fused }.prepare(gpu)
    };
    match case.how {
        How::Fused(schedule) => Ok(vec![fused(&request, results, schedule)?]),
        How::Decode | How::LongDecode => Ok(vec![fused(&request, results, Schedule::Split)?]),
        How::Tiled => Ok(vec![fused(&request, results, Schedule::Tiles)?]),
        How::Unfused => {
            let unfused = Unfused::new(&request, &results.out);
            let unfused = if case.writes_all() { unfused.lse(&results.lse) } else { unfused };
            let unfused = if case.writes_gate_sums() { unfused.gate_sum(&results.gate_sum) } else { unfused };
            Ok(vec![unfused.prepare(gpu)?])
        }
        How::Merged => {
            let part = Results::new(gpu, case)?;
            let (left, right) = (tensors.part(0..CUT)?, tensors.part(CUT..KEYS)?);
            // What was counted on the right is where the left begins.
            let left = Tensors { gate_sum: part.gate_sum.clone(), ..left };
            let standing = |start: usize| Standing::From((KEYS - case.tokens()) as i64 - start as i64);
            let left = match case.what {
                What::Contextual => left.request(case)?.cope(left.contextual().gate_sum(&left.gate_sum)),
                _ => left.request(case)?,
            };
            let right = right.request(case)?.standing(standing(CUT));
            Ok(vec![
                fused(&right, &part, Schedule::Split)?,
                fused(&left.standing(standing(0)), results, Schedule::Split)?,
                Merge::new(&results.out, &results.lse, &part.out, &part.lse).prepare(gpu)?,
            ])
        }
    }
}

/// Where keys in two parts are cut.
const CUT: usize = 20;

impl Tensors<View> {
    /// With some of the keys.
    fn part(&self, keys: Range<usize>) -> Result<Self> {
        Ok(Self {
            q: self.q.clone(),
            k: self.k.tokens(keys.clone())?,
            v: self.v.tokens(keys.clone())?,
            keep: self.keep.clone(),
            bias: self.bias.clone(),
            key_ranges: self.key_ranges.clone(),
            embeddings: self.embeddings.clone(),
            query: self.query.clone(),
            gate_keys: self.gate_keys.tokens(keys)?,
            gate_sum: self.gate_sum.clone(),
        })
    }
}

/// Everything that was written, what lies around the output too.
async fn compared(
    gpu: &Gpu,
    case: &Case,
    sizes: &Sizes,
    results: &Results,
    expected: &Attended,
) -> Result<Vec<Compared>> {
    let mut numbers: Vec<_> = gpu
        .read(&results.flat)
        .await?
        .into_iter()
        .map(|got| Compared { got, expected: UNTOUCHED.into(), bound: 0.0 })
        .collect();
    for (place, &exact) in results.out.layout().places().zip(&expected.out) {
        if let Some(number) = numbers.get_mut(place) {
            (number.expected, number.bound) = (exact, sizes.out(case.element, exact));
        }
    }
    if !case.writes_all() {
        return Ok(numbers);
    }
    let lse = gpu.read(&results.lse).await?.into_iter().zip(&expected.lse);
    numbers.extend(lse.map(|(got, &exact)| Compared { got, expected: exact, bound: sizes.lse(exact) }));
    let sums = gpu.read(&results.gate_sum).await?;
    // Whole part and fraction together: a sum just below an integer may be rounded to it.
    let sums = sums.chunks_exact(2).zip(expected.gate_sum.chunks_exact(2));
    numbers.extend(sums.map(|(got, exact)| {
        let (got, exact) = (f64::from(got[0]) + f64::from(got[1]), exact[0] + exact[1]);
        Compared { got: got as f32, expected: exact, bound: sizes.gate_sum() + f64::from(f32::EPSILON) * exact }
    }));
    Ok(numbers)
}

/// The contextual bias alone, over logits some of which are masked, to every element type.
pub(super) async fn check_bias(gpu: &Gpu, element: ElementType, tally: &mut Tally) -> Result<()> {
    let case = Case { how: How::Unfused, what: What::Contextual, element, channels: 8 };
    let tensors = Tensors::random(&case)?;
    let Tensors { q, embeddings, .. } = &tensors;
    let mut turn = 0;
    let logits = Numbers::new(element, case.rows(KEYS), || {
        turn += 1;
        // The lowest numbers of f16 are no mask.
        if turn % 4 == 0 && element != ElementType::F16 { -2e30 } else { (turn % 63 - 31) as f32 / 8.0 }
    })?;
    let expected = reference::cope(&q.tensor()?, &logits.tensor()?, &embeddings.tensor()?)?;
    let out = gpu.zeros(element, case.rows(KEYS))?;
    let bias = ContextualBias::new(&q.view(gpu)?, &logits.view(gpu)?, &embeddings.view(gpu)?, &out).prepare(gpu)?;
    gpu.submit(|pass| bias.record(pass))?;
    // Logits are exact here.
    let sizes = tensors.sizes(What::Contextual)?;
    let sizes = Sizes { product: 0.0, contextual: sizes.contextual.map(|c| c.times(1.0)), ..sizes };
    let numbers: Vec<_> = gpu
        .read(&out)
        .await?
        .into_iter()
        .zip(expected)
        .map(|(got, expected)| Compared { got, expected, bound: stored(element, expected, sizes.contextual_bias()) })
        .collect();
    tally.add(bias.shaders(), &format!("contextual bias, {element}"), &numbers);
    Ok(())
}

/// Merges between element types.
pub(super) async fn check_merge(gpu: &Gpu, [own, other]: [ElementType; 2], tally: &mut Tally) -> Result<()> {
    let mut noise = fastrand::Rng::with_seed(7);
    let mut random =
        |element, channels| Numbers::new(element, [BATCH, 5, HEADS, channels], || noise.i32(-128..=128) as f32 / 128.0);
    let (out, lse) = (random(own, 70)?, random(ElementType::F32, 1)?);
    let (part, part_lse) = (random(other, 70)?, random(ElementType::F32, 1)?);
    let attended =
        |out: &Numbers, lse: &Numbers| Attended { out: out.wide.clone(), lse: lse.wide.clone(), gate_sum: Vec::new() };
    let expected = attention_merge(&[attended(&out, &lse), attended(&part, &part_lse)])?;
    let (out, lse) = (out.view(gpu)?, lse.view(gpu)?);
    let merge = Merge::new(&out, &lse, &part.view(gpu)?, &part_lse.view(gpu)?).prepare(gpu)?;
    gpu.submit(|pass| merge.record(pass))?;
    // Two keys of logits up to 1.
    let sizes = Sizes { channels: 0, keys: 2, product: 1.0, turned: 0.0, bias: 0.0, value: 1.0, contextual: None };
    let outputs = gpu.read(&out).await?.into_iter().zip(&expected.out);
    let outputs = outputs.map(|(got, &exact)| Compared { got, expected: exact, bound: sizes.out(own, exact) });
    let sums = gpu.read(&lse).await?.into_iter().zip(&expected.lse);
    let sums = sums.map(|(got, &exact)| Compared { got, expected: exact, bound: sizes.lse(exact) });
    let numbers: Vec<_> = outputs.chain(sums).collect();
    tally.add(merge.shaders(), &format!("merge, {other} into {own}"), &numbers);
    Ok(())
}
