//! Operations on arguments that are drawn at random: tensors that lie anywhere in their buffers, with any strides and in any
//! element type, right ones and wrong ones. What is accepted must be what the reference computes, and nothing around the
//! written views may change; all else must be an error that names what was wrong.
//!
//! Usual runs try a few cases, the same ones each time. `PROPTEST_CASES=2000` tries that many other ones; what fails is kept
//! in `tests/regressions` and tried first from then on. Each binary uses some of this.

#![allow(dead_code)]

use crate::common::{Random, Recording, gpu};
use half::{bf16, f16};
use phasor::attention::MASKED;
use phasor::reference::Tensor;
use phasor::{ElementType, Error, ErrorKind, Gpu, Layout, Result, View};
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, RngSeed, TestCaseError, TestError, TestRunner};
use std::collections::HashMap;
use std::fmt::Debug;

/// A tensor that an operation is given, before anything is wrong with it.
#[derive(Debug, Clone)]
pub struct Argument {
    pub name: &'static str,
    pub shape: [usize; 4],
    pub element: ElementType,
    pub access: Access,
    pub numbers: Numbers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Reads,
    Writes,
    /// Reads, and then writes.
    Updates,
}

/// What a tensor holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Numbers {
    /// From -2 to 2, times this.
    Floats(f32),
    /// The same, some of them hidden by the lowest number of f32.
    Bias,
    /// Log-sum-exps, some of queries that saw nothing.
    LogSumExps,
    /// Wholes and fractions in turns.
    GateSums,
    /// Whole numbers from the first to below the second.
    Whole(i32, i32),
    /// Rows of a cache: up to eleven in a row are all different, the least is -1, and the largest is 9.
    Rows,
}

/// What an element of a written tensor is afterwards.
#[derive(Debug, Clone, PartialEq)]
pub enum Expected {
    /// Each element near a number, in the order of the axes, or as it was.
    Each(Vec<Option<Near>>),
    /// Two neighbours together: wholes and fractions, of which a sum just below a whole number may be rounded to it.
    Sums(Vec<Near>),
}

/// A number, and how far another one may be from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near(pub f64, pub f64);

impl Near {
    /// What comes of it when it is stored: one of the two neighbours, with the smallest numbers that f16 rounds to 0.
    pub fn stored(self, element: ElementType) -> Self {
        let most = self.0.abs() + self.1;
        Self(
            self.0,
            self.1
                + match element {
                    ElementType::F16 => most / f64::from(1 << 10) + f64::from(f16::MIN_POSITIVE),
                    ElementType::BF16 => most / f64::from(1 << 8),
                    _ => 0.0,
                },
        )
    }
}

/// Tensors by their names.
pub struct Named<'a, T>(HashMap<&'static str, &'a T>);

impl<'a, T> Named<'a, T> {
    pub fn get(&self, name: &'static str) -> &'a T {
        self.0[name]
    }
}

/// A tensor on the host, with all of its buffer.
#[derive(Debug, Clone)]
pub struct Host {
    pub values: Vec<f64>,
    pub layout: Layout,
    pub element: ElementType,
}

impl Host {
    pub fn tensor(&self) -> Result<Tensor<'_>> {
        Tensor::new(&self.values, self.layout)
    }

    /// In the order of the axes.
    pub fn in_order(&self) -> Vec<f64> {
        self.layout.places().map(|place| self.values[place]).collect()
    }
}

/// An operation with all that can vary in it but for its tensors.
pub trait Operation: Debug + Clone {
    fn arguments(&self) -> Vec<Argument>;

    fn prepare(&self, gpu: &Gpu, views: &Named<'_, View>) -> Result<Recording>;

    /// What written tensors hold afterwards, in the order of the arguments; `None` where it is a race.
    fn reference(&self, tensors: &Named<'_, Host>) -> Result<Option<Vec<Expected>>>;
}

/// Where a tensor of any shape lies.
#[derive(Debug, Clone)]
struct Lie {
    /// From the outermost axis to the innermost one.
    order: [usize; 4],
    /// Elements left out after each axis.
    gaps: [usize; 4],
    /// The innermost axis' step.
    step: usize,
    offset: usize,
}

impl Lie {
    fn over(&self, shape: [usize; 4]) -> Layout {
        let mut strides = [0; 4];
        let mut next = self.step;
        for &axis in self.order.iter().rev() {
            strides[axis] = next;
            next = next * shape[axis].max(1) + self.gaps[axis];
        }
        Layout::strided(shape, strides, self.offset).expect("a small tensor")
    }
}

fn lie() -> impl Strategy<Value = Lie> {
    let gap = || prop::sample::select(vec![0usize, 0, 0, 1, 4, 8]);
    let any = (Just([0, 1, 2, 3]).prop_shuffle(), [gap(), gap(), gap(), gap()], 1usize..3, 0usize..12);
    let in_words = (prop::sample::select(vec![[0, 1, 2, 3], [0, 2, 1, 3]]), prop::sample::select(vec![0, 4, 68]));
    prop_oneof![
        3 => in_words.prop_map(|(order, offset)| Lie { order, gaps: [0; 4], step: 1, offset }),
        2 => any.prop_map(|(order, gaps, step, offset)| Lie { order, gaps, step, offset }),
    ]
}

/// What is wrong with an argument, or may be.
#[derive(Debug, Clone)]
enum Wrong {
    Extent(usize, usize),
    Stride(usize, usize),
    Offset(usize),
    /// At its buffer's end: an element before it, right at it, or past it.
    End(usize),
    Element(ElementType),
    /// In another argument's buffer.
    Buffer(prop::sample::Index),
    /// In a buffer that kernels may not use.
    Usage,
}

fn wrong() -> impl Strategy<Value = Wrong> {
    let extent = prop_oneof![6 => 0usize..9, 1 => prop::sample::select(vec![1 << 31, 1 << 40, usize::MAX])];
    let stride = prop_oneof![6 => 0usize..40, 1 => prop::sample::select(vec![1 << 31, 1 << 62, usize::MAX])];
    let offset = prop_oneof![4 => 0usize..300, 1 => prop::sample::select(vec![1 << 33, usize::MAX])];
    let element = prop::sample::select(vec![ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::I32]);
    prop_oneof![
        3 => (0usize..4, extent).prop_map(|(axis, extent)| Wrong::Extent(axis, extent)),
        3 => (0usize..4, stride).prop_map(|(axis, stride)| Wrong::Stride(axis, stride)),
        1 => offset.prop_map(Wrong::Offset),
        2 => (0usize..5).prop_map(Wrong::End),
        1 => element.prop_map(Wrong::Element),
        2 => any::<prop::sample::Index>().prop_map(Wrong::Buffer),
        1 => Just(Wrong::Usage),
    ]
}

/// A type of floats, f32 half of the time.
pub fn draw_floats() -> impl Strategy<Value = ElementType> {
    prop::sample::select(vec![ElementType::F32, ElementType::F32, ElementType::F16, ElementType::BF16])
}

/// Where tensors lie, and what is wrong with some of them.
#[derive(Debug, Clone)]
pub struct Draw {
    lies: Vec<Lie>,
    /// Whether what is read and has one element type lies in one buffer, one tensor behind the other.
    packed: bool,
    wrong: Vec<(prop::sample::Index, Wrong)>,
    seed: u64,
}

/// Every other case has nothing wrong with it.
pub fn draw() -> impl Strategy<Value = Draw> {
    let wrong =
        prop_oneof![1 => Just(Vec::new()), 1 => prop::collection::vec((any::<prop::sample::Index>(), wrong()), 1..4)];
    (prop::collection::vec(lie(), 4), prop::bool::weighted(0.25), wrong, any::<u64>())
        .prop_map(|(lies, packed, wrong, seed)| Draw { lies, packed, wrong, seed })
}

/// Tries an operation on so many cases in a usual run.
pub fn try_all<O: Operation>(name: &'static str, cases: u32, operations: impl Strategy<Value = O>) {
    let long = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let mut runner = TestRunner::new(ProptestConfig {
        cases: long.unwrap_or(cases),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(name))),
        max_shrink_iters: 300,
        rng_seed: if long.is_some() { RngSeed::Random } else { RngSeed::Fixed(0x70a5_0125) },
        ..ProptestConfig::default()
    });
    match runner.run(&(operations, draw()), |(operation, draw)| draw.tried(&operation)) {
        Ok(()) => {}
        Err(TestError::Fail(why, (operation, draw))) => panic!("{why}\n{operation:#?}\n{:#?}", draw.placed(&operation)),
        Err(other) => panic!("{other}"),
    }
}

/// An argument in its buffer.
#[derive(Debug, Clone)]
struct Placed {
    argument: Argument,
    layout: Result<Layout>,
    element: ElementType,
    buffer: usize,
    /// How many elements its buffer has for it, be they enough or not.
    room: usize,
    usable: bool,
}

/// Elements behind each buffer's last tensor.
const BEHIND: usize = 64;

/// No more of them than this is computed with on purpose.
const MOST_ELEMENTS: usize = 1 << 18;

impl Draw {
    fn placed(&self, operation: &impl Operation) -> Vec<Placed> {
        let arguments = operation.arguments();
        let mut ends: HashMap<ElementType, (usize, usize)> = HashMap::new();
        let mut placed = Vec::new();
        for (i, argument) in arguments.into_iter().enumerate() {
            let layout = self.lies[i % self.lies.len()].over(argument.shape);
            let (buffer, layout) = if self.packed && argument.access == Access::Reads {
                let (buffer, end) = *ends.entry(argument.element).or_insert((i, 0));
                let layout = layout.offset_by(end).expect("small tensors");
                ends.insert(argument.element, (buffer, layout.span().end));
                (buffer, layout)
            } else {
                (i, layout)
            };
            let (element, room) = (argument.element, layout.span().end + BEHIND);
            placed.push(Placed { argument, layout: Ok(layout), element, buffer, room, usable: true });
        }
        for (which, wrong) in &self.wrong {
            let other = |index: &prop::sample::Index| placed[index.index(placed.len())].buffer;
            let buffer = if let Wrong::Buffer(index) = wrong { Some(other(index)) } else { None };
            let n = placed.len();
            placed[which.index(n)].spoil(wrong, buffer);
        }
        placed
    }

    fn tried(&self, operation: &impl Operation) -> std::result::Result<(), TestCaseError> {
        let placed = self.placed(operation);
        let outcome = self.run(operation, &placed);
        match outcome {
            Ok(()) => Ok(()),
            Err(Failure::Refused(error)) if error.kind() == ErrorKind::Limit => Ok(()),
            Err(Failure::Refused(error)) if self.wrong.is_empty() => {
                Err(TestCaseError::fail(format!("refused: {error}")))
            }
            Err(Failure::Refused(error)) if names_something(&error) => Ok(()),
            Err(Failure::Refused(error)) => Err(TestCaseError::fail(format!("refused without a reason: {error}"))),
            Err(Failure::Wrong(what)) => Err(TestCaseError::fail(what)),
        }
    }

    fn run(&self, operation: &impl Operation, placed: &[Placed]) -> std::result::Result<(), Failure> {
        let layouts = placed.iter().map(|placed| placed.layout.clone()).collect::<Result<Vec<_>>>()?;
        let filled = self.filled(placed, &layouts);
        let usable = |buffer| placed.iter().all(|placed| placed.buffer != buffer || placed.usable);
        let buffers: HashMap<usize, wgpu::Buffer> =
            filled.bytes.iter().map(|(&buffer, bytes)| (buffer, uploaded(bytes, usable(buffer)))).collect();
        let views = placed
            .iter()
            .zip(&layouts)
            .map(|(placed, &layout)| View::new(&buffers[&placed.buffer], placed.element, layout))
            .collect::<Result<Vec<_>>>()?;
        let recording = operation.prepare(gpu(), &named(placed, &views))?;
        let small = layouts.iter().all(|layout| layout.elements() <= MOST_ELEMENTS);
        if !small {
            let done = recording.prepared.dispatches() == 0;
            return if done { Ok(()) } else { Err(Failure::Wrong("accepted more than its buffers hold".into())) };
        }
        gpu().submit(|pass| recording.record(pass))?;
        let hosts: Vec<_> = placed.iter().zip(&layouts).map(|(placed, &layout)| filled.host(placed, layout)).collect();
        let expected = operation
            .reference(&named(placed, &hosts))
            .map_err(|error| Failure::Wrong(format!("accepted, where the reference says {error}")))?;
        let mut after = HashMap::new();
        for (&buffer, bytes) in &filled.bytes {
            after.insert(buffer, read(&buffers[&buffer], bytes.len())?);
        }
        let written = || placed.iter().zip(&layouts).filter(|(placed, _)| placed.argument.access != Access::Reads);
        if let Some(expected) = expected.filter(|_| !filled.ambiguous) {
            for ((placed, layout), expected) in written().zip(expected) {
                compare(placed, layout, &filled.bytes[&placed.buffer], &after[&placed.buffer], &expected)?;
            }
        }
        for (placed, layout) in written() {
            let (before, after) = (&filled.bytes[&placed.buffer], after.get_mut(&placed.buffer).expect("read above"));
            for byte in layout.places().flat_map(|place| bytes_of(placed.element, place)) {
                after[byte] = before[byte];
            }
        }
        match after.iter().find(|(buffer, after)| filled.bytes[buffer] != **after) {
            None => Ok(()),
            Some((buffer, _)) => {
                let names: Vec<_> = placed.iter().filter(|p| p.buffer == *buffer).map(|p| p.argument.name).collect();
                Err(Failure::Wrong(format!("something around {names:?} has changed")))
            }
        }
    }

    /// The buffers' bytes: numbers in tensors that are read, else NaNs that name their places.
    fn filled(&self, placed: &[Placed], layouts: &[Layout]) -> Filled {
        let mut random = Random::new(self.seed);
        let mut filled = Filled { bytes: HashMap::new(), ambiguous: false };
        for placed in placed {
            let words = (placed.room * placed.element.bytes()).div_ceil(4);
            let bytes = filled.bytes.entry(placed.buffer).or_default();
            for word in bytes.len() / 4..words {
                // In 16 bits these are two.
                let place = word as u32;
                bytes.extend((0x7fc0_7fc0 | (place & 0x3f) << 16 | place >> 6 & 0x3f).to_le_bytes());
            }
        }
        let mut owners: HashMap<(usize, usize), (Numbers, ElementType)> = HashMap::new();
        for (placed, layout) in
            placed.iter().zip(layouts).filter(|(placed, _)| placed.argument.access != Access::Writes)
        {
            let Some(bytes) = filled.bytes.get_mut(&placed.buffer) else { continue };
            // Larger than its buffer: no view of it is made.
            if layout.span().end > bytes.len() / placed.element.bytes() || layout.elements() > MOST_ELEMENTS {
                continue;
            }
            for (i, place) in layout.places().enumerate() {
                let range = bytes_of(placed.element, place);
                let own = (placed.argument.numbers, placed.element);
                for byte in range.clone() {
                    let before = owners.insert((placed.buffer, byte), own);
                    filled.ambiguous |= before.is_some_and(|other| other != own || own.0.by_index());
                }
                let number = placed.argument.numbers.number(i, &mut random, placed.element);
                bytes[range].copy_from_slice(&encoded(number, placed.element));
            }
        }
        filled
    }
}

struct Filled {
    bytes: HashMap<usize, Vec<u8>>,
    /// Whether an element is read as two things.
    ambiguous: bool,
}

impl Filled {
    fn host(&self, placed: &Placed, layout: Layout) -> Host {
        let size = placed.element.bytes();
        let values = self.bytes[&placed.buffer].chunks_exact(size).map(|bytes| decoded(bytes, placed.element));
        Host { values: values.collect(), layout, element: placed.element }
    }
}

enum Failure {
    Refused(Error),
    Wrong(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

fn names_something(error: &Error) -> bool {
    use ErrorKind::{Overlap, Position, Setting, Tensor, Usage};
    let may_be_blamed = matches!(error.kind(), Setting | Tensor | Usage | Position | Overlap);
    may_be_blamed && [error.argument(), error.was(), error.may_be()].iter().all(|text| !text.is_empty())
}

impl Placed {
    fn spoil(&mut self, wrong: &Wrong, other_buffer: Option<usize>) {
        let Ok(layout) = &self.layout else { return };
        let (mut shape, mut strides) = (layout.shape(), layout.strides());
        match *wrong {
            Wrong::Extent(axis, extent) => shape[axis] = extent,
            Wrong::Stride(axis, stride) => strides[axis] = stride,
            Wrong::Offset(elements) => {
                self.layout = layout.offset_by(elements);
                return;
            }
            Wrong::End(past) => {
                self.layout = layout.offset_by((self.room + past).saturating_sub(layout.span().end + 1));
                return;
            }
            Wrong::Element(element) => self.element = element,
            Wrong::Buffer(_) => self.buffer = other_buffer.unwrap_or(self.buffer),
            Wrong::Usage => self.usable = false,
        }
        self.layout = Layout::strided(shape, strides, layout.offset());
    }
}

impl Numbers {
    /// Whether a number goes by which of the elements it is.
    fn by_index(self) -> bool {
        matches!(self, Self::GateSums | Self::Rows)
    }

    fn number(self, i: usize, random: &mut Random, element: ElementType) -> f64 {
        let one_in = |n: u32, random: &mut Random| random.bits().is_multiple_of(n);
        match self {
            Self::Floats(scale) => f64::from(scale * random.value()),
            // In 16 bits there is no such number.
            Self::Bias if element == ElementType::F32 && one_in(6, random) => f32::MIN.into(),
            Self::Bias => random.value().into(),
            Self::LogSumExps if one_in(5, random) => MASKED.into(),
            Self::LogSumExps => (4.0 * random.value()).into(),
            Self::GateSums if i.is_multiple_of(2) => (random.bits() % 3).into(),
            Self::GateSums => f64::from(random.bits() >> 8) / f64::from(1 << 24),
            Self::Whole(from, to) => f64::from(from) + f64::from(random.bits() % from.abs_diff(to)),
            Self::Rows => (i * 5 % 11) as f64 - 1.0,
        }
    }
}

fn named<'a, T>(placed: &[Placed], tensors: &'a [T]) -> Named<'a, T> {
    Named(placed.iter().map(|placed| placed.argument.name).zip(tensors).collect())
}

fn bytes_of(element: ElementType, place: usize) -> std::ops::Range<usize> {
    let size = element.bytes();
    place * size..(place + 1) * size
}

fn encoded(number: f64, element: ElementType) -> Vec<u8> {
    match element {
        ElementType::F16 => f16::from_f32(number as f32).to_le_bytes().to_vec(),
        ElementType::BF16 => bf16::from_f32(number as f32).to_le_bytes().to_vec(),
        ElementType::I32 => (number as i32).to_le_bytes().to_vec(),
        _ => (number as f32).to_le_bytes().to_vec(),
    }
}

fn decoded(bytes: &[u8], element: ElementType) -> f64 {
    match (element, bytes) {
        (ElementType::F16, &[a, b]) => f16::from_le_bytes([a, b]).to_f64(),
        (ElementType::BF16, &[a, b]) => bf16::from_le_bytes([a, b]).to_f64(),
        (ElementType::I32, &[a, b, c, d]) => i32::from_le_bytes([a, b, c, d]).into(),
        (ElementType::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).into(),
        _ => unreachable!("as many bytes as an element has"),
    }
}

fn uploaded(bytes: &[u8], usable: bool) -> wgpu::Buffer {
    let storage = if usable { wgpu::BufferUsages::STORAGE } else { wgpu::BufferUsages::VERTEX };
    let buffer = gpu().device().create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: bytes.len().max(4) as u64,
        usage: storage | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    gpu().queue().write_buffer(&buffer, 0, bytes);
    buffer
}

fn read(buffer: &wgpu::Buffer, bytes: usize) -> Result<Vec<u8>> {
    let words = View::new(buffer, ElementType::F32, Layout::contiguous([1, 1, 1, bytes / 4])?)?;
    Ok(gpu().read_blocking(&words)?.into_iter().flat_map(f32::to_le_bytes).collect())
}

fn compare(
    placed: &Placed,
    layout: &Layout,
    before: &[u8],
    after: &[u8],
    expected: &Expected,
) -> std::result::Result<(), Failure> {
    let name = placed.argument.name;
    let of = |bytes: &[u8]| -> Vec<f64> {
        layout.places().map(|place| decoded(&bytes[bytes_of(placed.element, place)], placed.element)).collect()
    };
    let (before, got) = (of(before), of(after));
    let wrong = |what: String| Err(Failure::Wrong(format!("{name}: {what}")));
    let is_near = |got: f64, Near(number, tolerance): Near| (got - number).abs() <= tolerance;
    match expected {
        Expected::Each(all) => {
            if all.len() != got.len() {
                return wrong(format!("accepted with {} elements, where the reference has {}", got.len(), all.len()));
            }
            for (i, ((&got, &before), expected)) in got.iter().zip(&before).zip(all).enumerate() {
                match *expected {
                    Some(near) if !is_near(got, near) => return wrong(format!("{got} instead of {near:?} at {i}")),
                    None if got.to_bits() != before.to_bits() => {
                        return wrong(format!("{got} instead of {before} at {i}"));
                    }
                    _ => {}
                }
            }
        }
        Expected::Sums(all) => {
            if 2 * all.len() != got.len() {
                return wrong(format!("accepted with {} elements, where the reference has {}", got.len(), all.len()));
            }
            let pairs = got.as_chunks::<2>().0.iter().zip(all).enumerate();
            for (i, (&[whole, fraction], &near)) in pairs {
                if !is_near(whole + fraction, near) {
                    return wrong(format!("{whole} + {fraction} instead of {near:?} at {i}"));
                }
            }
        }
    }
    Ok(())
}
