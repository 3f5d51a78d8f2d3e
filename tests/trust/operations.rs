//! Every operation, small, over buffers of its own with marks around each tensor: what must hold for all of them is
//! tested for all of them.

use crate::common::{Random, Recording};
use phasor::attention::{
    Attention, ContextualPe, Fused, Linear, Merge, Module, Projection, ProjectionSchedule, Rotation, Schedule,
    SelfAttention, SelfAttentionWeights, Standing, Unfused,
};
use phasor::frequencies::{Frequencies, Plain};
use phasor::{CacheRows, ContextualBias, ElementType, Gpu, Layout, Pairing, Positions, Result, Rope, Rotate, View};

/// Elements before and behind each tensor. Bindings begin at multiples of 256 bytes, so that this one's does not begin
/// where its tensor does.
const AROUND: usize = 68;

/// A tensor that an operation is given.
#[derive(Debug, Clone)]
pub struct Argument {
    /// What errors call it.
    pub name: &'static str,
    pub shape: [usize; 4],
    /// Whether the operation may change it.
    pub written: bool,
    pub numbers: Numbers,
}

/// What an argument holds.
#[derive(Debug, Clone)]
pub enum Numbers {
    /// From -2 to 2, times this.
    Random(f32),
    Integers(Vec<i32>),
}

impl Numbers {
    pub fn element(&self) -> ElementType {
        match self {
            Self::Random(_) => ElementType::F32,
            Self::Integers(_) => ElementType::I32,
        }
    }
}

type Prepare = Box<dyn Fn(&Gpu, &[View]) -> Result<Recording> + Send + Sync>;

/// An operation, with numbers to run it on.
pub struct Operation {
    pub name: String,
    pub arguments: Vec<Argument>,
    prepare: Prepare,
}

impl Operation {
    fn new(
        name: impl Into<String>,
        arguments: &[Argument],
        prepare: impl Fn(&Gpu, &[View]) -> Result<Recording> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), arguments: arguments.to_vec(), prepare: Box::new(prepare) }
    }

    /// Prepares it over these tensors, in the order of its arguments.
    pub fn prepare(&self, gpu: &Gpu, views: &[View]) -> Result<Recording> {
        (self.prepare)(gpu, views)
    }

    /// Its tensors on a device, each in a buffer of its own.
    pub fn upload(&self, gpu: &Gpu) -> Result<Vec<View>> {
        self.arguments.iter().zip(1..).map(|(argument, seed)| argument.upload(gpu, seed)).collect()
    }

    /// Prepares, runs and reads back.
    ///
    /// # Panics
    /// If an element that is not one of a written tensor's has changed, or one of these is still as it was.
    pub fn run(&self, gpu: &Gpu) -> Result<Vec<Vec<f32>>> {
        let views = self.upload(gpu)?;
        let recording = self.prepare(gpu, &views)?;
        gpu.submit(|pass| recording.record(pass))?;
        self.results(gpu, &views)
    }

    /// What the written tensors hold by now.
    ///
    /// # Panics
    /// As [`Operation::run`].
    pub fn results(&self, gpu: &Gpu, views: &[View]) -> Result<Vec<Vec<f32>>> {
        let mut results = Vec::new();
        for ((argument, view), seed) in self.arguments.iter().zip(views).zip(1..) {
            let (before, mut after) = (argument.bits(seed), bits_of(gpu, view)?);
            if argument.written {
                let places: Vec<_> = view.layout().places().collect();
                results.push(places.iter().map(|&place| f32::from_bits(after[place])).collect());
                places.iter().for_each(|&place| after[place] = before[place]);
            }
            assert!(before == after, "{}: something outside of the view of {} has changed", self.name, argument.name);
        }
        Ok(results)
    }
}

impl Argument {
    pub fn layout(&self) -> Layout {
        Layout::contiguous(self.shape).and_then(|layout| layout.offset_by(AROUND)).expect("a small tensor")
    }

    fn upload(&self, gpu: &Gpu, seed: u64) -> Result<View> {
        let floats: Vec<_> = self.bits(seed).into_iter().map(f32::from_bits).collect();
        let all = gpu.upload(&floats, [1, 1, 1, floats.len()])?;
        View::new(all.buffer(), self.numbers.element(), self.layout())
    }

    /// The whole buffer: NaNs that name their places, with the tensor among them.
    fn bits(&self, seed: u64) -> Vec<u32> {
        let layout = self.layout();
        let mut bits: Vec<u32> = (0..(layout.span().end + AROUND) as u32).map(|place| 0x7fc0_0000 | place).collect();
        let mut random = Random::new(seed);
        for (i, place) in layout.places().enumerate() {
            bits[place] = match &self.numbers {
                Numbers::Random(scale) => (scale * random.value()).to_bits(),
                Numbers::Integers(all) => all[i] as u32,
            };
        }
        bits
    }
}

/// All of a view's buffer.
fn bits_of(gpu: &Gpu, view: &View) -> Result<Vec<u32>> {
    let words = view.buffer().size() as usize / 4;
    let all = View::new(view.buffer(), ElementType::F32, Layout::contiguous([1, 1, 1, words])?)?;
    Ok(gpu.read_blocking(&all)?.into_iter().map(f32::to_bits).collect())
}

fn read(name: &'static str, shape: [usize; 4]) -> Argument {
    Argument { name, shape, written: false, numbers: Numbers::Random(1.0) }
}

fn written(name: &'static str, shape: [usize; 4]) -> Argument {
    Argument { written: true, ..read(name, shape) }
}

fn integers(name: &'static str, shape: [usize; 4], all: &[i32]) -> Argument {
    Argument { name, shape, written: false, numbers: Numbers::Integers(all.to_vec()) }
}

fn frequencies() -> Result<Frequencies> {
    Plain::new(100.0).frequencies(CHANNELS as u32)
}

const BATCH: usize = 2;
const TOKENS: usize = 5;
const KEYS: usize = 37;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const CHANNELS: usize = 8;
const POSITIONS: usize = 6;

fn rows_of(heads: usize, channels: usize) -> [usize; 4] {
    [BATCH, TOKENS, heads, channels]
}

/// All of them. Those that need what the device lacks are left out.
pub fn all(gpu: &Gpu) -> Vec<Operation> {
    let schedules = [Schedule::Rows, Schedule::Tiles, Schedule::Split];
    let mut all = vec![rotation(), rotation_from_a_table(), contextual_bias(), unfused(), merge(), module()];
    all.extend(schedules.map(fused));
    all.extend(schedules.map(rotated));
    let lanes = gpu.has_subgroups() && gpu.info().subgroup_min_size >= 4;
    let projections = [ProjectionSchedule::Tiles, ProjectionSchedule::Dots].into_iter();
    all.extend(projections.chain(lanes.then_some(ProjectionSchedule::Rows)).map(projection));
    all
}

/// Queries in place, and keys to the rows of a cache.
fn rotation() -> Operation {
    let arguments = [
        written("q", rows_of(HEADS, CHANNELS)),
        read("k", rows_of(KV_HEADS, CHANNELS)),
        written("k.output", [BATCH, 9, KV_HEADS, CHANNELS]),
        integers("positions", [BATCH, 1, 1, 1], &[3, 1_000_000]),
        integers("rows", [BATCH, TOKENS, 1, 1], &[8, 0, 7, 1, -1, 4, 3, 2, 9, 0]),
    ];
    Operation::new("rotation", &arguments, |gpu, views| {
        let [q, k, cache, positions, rows] = views else { unreachable!("five arguments") };
        let rope = Rope::new(gpu, &frequencies()?, Pairing::HalfSplit)?;
        let rotate = Rotate::in_place(q).and_into_cache(k, cache, CacheRows::PerToken(rows.clone()));
        Ok(rope.prepare(&rotate.positions(Positions::StartPerRow(positions.clone())))?.into())
    })
}

/// A table with a row for each token, and a rotation by it.
fn rotation_from_a_table() -> Operation {
    let arguments = [
        integers("positions", [BATCH, TOKENS, 1, 1], &[0, 7, 500_000, -3, 12, 1, 2, 3, 4, 5]),
        read("q", rows_of(HEADS, CHANNELS)),
        written("q.output", rows_of(HEADS, CHANNELS)),
    ];
    Operation::new("rotation from a table", &arguments, |gpu, views| {
        let [positions, q, output] = views else { unreachable!("three arguments") };
        let rope = Rope::new(gpu, &frequencies()?, Pairing::Interleaved)?;
        let table = rope.table_for(positions)?;
        let prepared = rope.prepare(&Rotate::into(q, output).from_table(&table))?;
        Ok(Recording { table: Some(table), prepared })
    })
}

fn contextual_bias() -> Operation {
    let arguments = [
        read("query", rows_of(HEADS, CHANNELS)),
        read("logits", rows_of(HEADS, KEYS)),
        read("position_embeddings", [1, CHANNELS, HEADS, POSITIONS]),
        written("output", rows_of(HEADS, KEYS)),
    ];
    Operation::new("contextual bias", &arguments, |gpu, views| {
        let [query, logits, embeddings, output] = views else { unreachable!("four arguments") };
        Ok(ContextualBias::new(query, logits, embeddings, output).prepare(gpu)?.into())
    })
}

/// Attention with contextual encoding over rows of different lengths: eight storage buffers at most.
fn contextual() -> [Argument; 7] {
    [
        read("q", rows_of(HEADS, CHANNELS)),
        read("k", [BATCH, KEYS, KV_HEADS, CHANNELS]),
        read("v", [BATCH, KEYS, KV_HEADS, CHANNELS]),
        read("position_embeddings", [1, CHANNELS, 1, POSITIONS]),
        integers("key_ranges", [BATCH, 1, 1, 1], &[KEYS as i32, 21]),
        written("output", rows_of(HEADS, CHANNELS)),
        written("lse", rows_of(HEADS, 1)),
    ]
}

fn request(views: &[View]) -> (Attention<View>, &View, &View) {
    let [q, k, v, embeddings, ranges, output, lse] = views else { unreachable!("seven arguments") };
    let request = Attention::new(q, k, v).causal().key_ranges(ranges).standing(Standing::RowLast);
    (request.cope(ContextualPe::new(embeddings)), output, lse)
}

fn fused(schedule: Schedule) -> Operation {
    Operation::new(format!("fused attention by {schedule:?}"), &contextual(), move |gpu, views| {
        let (request, output, lse) = request(views);
        Ok(Fused::new(&request, output).schedule(schedule).lse(lse).prepare(gpu)?.into())
    })
}

fn unfused() -> Operation {
    Operation::new("unfused attention", &contextual(), |gpu, views| {
        let (request, output, lse) = request(views);
        Ok(Unfused::new(&request, output).lse(lse).prepare(gpu)?.into())
    })
}

fn rotated(schedule: Schedule) -> Operation {
    Operation::new(format!("rotated attention by {schedule:?}"), &contextual(), move |gpu, views| {
        let (request, output, lse) = request(views);
        let request = request.rotate(Rotation::new(&frequencies()?, Pairing::HalfSplit));
        Ok(Fused::new(&request, output).schedule(schedule).lse(lse).prepare(gpu)?.into())
    })
}

fn merge() -> Operation {
    let arguments = [
        written("output", rows_of(HEADS, CHANNELS)),
        written("lse", rows_of(HEADS, 1)),
        read("part", rows_of(HEADS, CHANNELS)),
        read("part_lse", rows_of(HEADS, 1)),
    ];
    Operation::new("merge", &arguments, |gpu, views| {
        let [output, lse, part, part_lse] = views else { unreachable!("four arguments") };
        Ok(Merge::new(output, lse, part, part_lse).prepare(gpu)?.into())
    })
}

fn projection(schedule: ProjectionSchedule) -> Operation {
    let arguments = [
        read("x", [BATCH, TOKENS, 3, 4]),
        read("weight", [1, 8, 1, 12]),
        read("bias", [1, 1, 1, 8]),
        written("output", [BATCH, TOKENS, 2, 4]),
    ];
    Operation::new(format!("projection by {schedule:?}"), &arguments, move |gpu, views| {
        let [x, weight, bias, output] = views else { unreachable!("four arguments") };
        Ok(Projection::new(x, weight, output).bias(bias).schedule(schedule).prepare(gpu)?.into())
    })
}

/// A whole layer: projections, rotation, contextual attention, projection.
fn module() -> Operation {
    let (inputs, kv) = (12, KV_HEADS * CHANNELS);
    let weight =
        |name, outputs, inputs| Argument { numbers: Numbers::Random(0.3), ..read(name, [1, outputs, 1, inputs]) };
    let arguments = [
        read("inputs", [BATCH, TOKENS, 1, inputs]),
        weight("query_proj.weight", HEADS * CHANNELS, inputs),
        weight("key_proj.weight", kv, inputs),
        weight("value_proj.weight", kv, inputs),
        weight("output_proj.weight", inputs, HEADS * CHANNELS),
        read("position_embeddings", [1, CHANNELS, 1, POSITIONS]),
        written("output", [BATCH, TOKENS, 1, inputs]),
    ];
    Operation::new("module", &arguments, |gpu, views| {
        let [inputs, query, key, value, output_weight, embeddings, output] = views else {
            unreachable!("seven arguments")
        };
        let linear = |weight: &View| Linear { weight: weight.clone(), bias: None };
        let weights = SelfAttentionWeights {
            query: linear(query),
            key: linear(key),
            value: linear(value),
            output: linear(output_weight),
            position_embeddings: Some(embeddings.clone()),
        };
        let layer = SelfAttention::new(inputs, &weights, HEADS, KV_HEADS).attend(Attention::causal);
        let rope = Rope::new(gpu, &frequencies()?, Pairing::HalfSplit)?;
        Ok(Module::new(&layer, output).rotate(&rope, Positions::Start(5)).prepare(gpu)?.into())
    })
}
