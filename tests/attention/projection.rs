//! Linear layers against the f64 reference.

use crate::case::{Both, wide};
use crate::common::refused::expect_refused;
use crate::common::{Random, gpu, gpu_with};
use phasor::attention::{Projection, ProjectionSchedule};
use phasor::reference::projection;
use phasor::{ElementType, ErrorKind, Gpu, Layout, View};
use proptest::prelude::*;

/// The relative error of one f32 operation.
const U: f64 = 1.0 / (1u32 << 24) as f64;

/// All that the device has, where `Rows` needs subgroups.
pub fn schedules() -> impl Iterator<Item = ProjectionSchedule> {
    use ProjectionSchedule::{Dots, Rows, Tiles};
    let lanes = gpu().has_subgroups() && gpu().info().subgroup_min_size >= 4;
    [Tiles, Rows, Dots].into_iter().filter(move |&schedule| schedule != Rows || lanes)
}

pub struct Case {
    x: Both,
    weight: Both,
    bias: Option<Both>,
    /// Where outputs go, and in what.
    y: Layout,
    y_element: ElementType,
}

impl Case {
    pub fn random(random: &mut Random, [batch, tokens, inputs, outputs]: [usize; 4], bias: bool) -> Self {
        Self {
            x: Both::random(random, [batch, tokens, 1, inputs], 1.0),
            weight: Both::random(random, [1, outputs, 1, inputs], 1.0),
            bias: bias.then(|| Both::random(random, [1, 1, 1, outputs], 1.0)),
            y: of([batch, tokens, 1, outputs]),
            y_element: ElementType::F32,
        }
    }

    fn reference(&self) -> Vec<f64> {
        projection(&self.x.tensor(), &self.weight.tensor(), self.bias.as_ref().map(Both::tensor).as_ref()).unwrap()
    }

    /// What each output may be off by: `n` products, their `n` sums and the bias are rounded, each by `U` of no more than
    /// the sum of all magnitudes; and what is stored in 16 bits is one of its two neighbours there.
    fn bounds(&self) -> Vec<f64> {
        let absolute = |both: &Both| Both::new(both.values.iter().map(|x| x.abs()).collect(), both.layout);
        let magnitudes = Self {
            x: absolute(&self.x),
            weight: absolute(&self.weight),
            bias: self.bias.as_ref().map(absolute),
            ..*self
        };
        let [.., heads, channels] = self.x.layout.shape();
        let operations = (heads * channels + 2) as f64;
        let stored = |y: f64| match self.y_element {
            ElementType::F16 => (y / 1024.0).max(U),
            ElementType::BF16 => y / 256.0,
            _ => 0.0,
        };
        let rounded = |(y, all): (f64, f64)| {
            let bound = operations * U * all;
            bound + stored(y.abs() + bound)
        };
        self.reference().into_iter().zip(magnitudes.reference()).map(rounded).collect()
    }

    /// The outputs, and that nothing around them has changed.
    fn run(&self, gpu: &Gpu, schedule: Option<ProjectionSchedule>) -> phasor::Result<Vec<f64>> {
        let view = |both: &Both| {
            let buffer = gpu.upload_as(both.element, &both.values, [1, 1, 1, both.values.len()])?;
            View::new(buffer.buffer(), both.element, both.layout)
        };
        const AROUND: f32 = 0.625;
        let elements = self.y.span().end + 9;
        let all = gpu.upload_as(self.y_element, &vec![AROUND; elements], [1, 1, 1, elements])?;
        let y = View::new(all.buffer(), self.y_element, self.y)?;
        let request = Projection::new(&view(&self.x)?, &view(&self.weight)?, &y);
        let request = match &self.bias {
            Some(bias) => request.bias(&view(bias)?),
            None => request,
        };
        let prepared = schedule.into_iter().fold(request, Projection::schedule).prepare(gpu)?;
        gpu.submit(|pass| prepared.record(pass))?;
        let mut after = gpu.read_blocking(&all)?;
        let got = self.y.places().map(|place| std::mem::replace(&mut after[place], AROUND)).collect::<Vec<_>>();
        assert!(after.iter().all(|&x| x == AROUND), "written outside of {:?}", self.y);
        Ok(wide(&got))
    }

    #[track_caller]
    pub fn assert_agrees(&self, schedule: ProjectionSchedule) {
        let got = self.run(gpu(), Some(schedule)).unwrap();
        self.assert_within(&got, &format!("{schedule:?}"));
    }

    #[track_caller]
    fn assert_within(&self, got: &[f64], what: &str) {
        let expected = self.reference();
        assert_eq!(got.len(), expected.len());
        for (i, ((got, expected), bound)) in got.iter().zip(expected).zip(self.bounds()).enumerate() {
            let off = (got - expected).abs();
            assert!(off <= bound, "{what}: {got} instead of {expected} at {i}, off by {off:e}, may be {bound:e}");
        }
    }
}

fn of(shape: [usize; 4]) -> Layout {
    Layout::contiguous(shape).unwrap()
}

/// A layout of this shape in some order of memory, with some gap between rows and some offset.
fn lying(shape: [usize; 4]) -> impl Strategy<Value = Layout> {
    let orders = [[0, 1, 2, 3], [0, 2, 1, 3], [1, 0, 2, 3], [3, 2, 1, 0]];
    (prop::sample::select(orders.to_vec()), 0usize..6, 0usize..10).prop_map(move |(order, gap, offset)| {
        let mut strides = [0; 4];
        let mut step = 1;
        for &axis in order.iter().rev() {
            strides[axis] = step;
            step = step * shape[axis] + if axis == order[3] { gap } else { 0 };
        }
        Layout::strided(shape, strides, offset).unwrap()
    })
}

fn floats() -> impl Strategy<Value = ElementType> {
    prop::sample::select(vec![ElementType::F32, ElementType::F16, ElementType::BF16])
}

/// `heads * channels` in heads, often in words of four.
fn width() -> impl Strategy<Value = [usize; 2]> {
    let channels = prop_oneof![1usize..40, (1usize..20).prop_map(|words| 4 * words)];
    (1usize..4, channels).prop_map(|(heads, channels)| [heads, channels])
}

fn cases() -> impl Strategy<Value = Case> {
    let tokens = prop::sample::select(vec![1usize, 2, 3, 4, 5, 8, 9, 31, 33, 64, 65, 70]);
    (1usize..3, tokens, width(), width(), any::<bool>()).prop_flat_map(|(batch, tokens, [h, c], [ho, co], bias)| {
        let (inputs, outputs) = (h * c, ho * co);
        (
            (lying([batch, tokens, h, c]), floats()),
            (lying([1, outputs, 1, inputs]), floats()),
            (lying([1, 1, 1, outputs]), floats()),
            (lying([batch, tokens, ho, co]), floats()),
            any::<u64>(),
        )
            .prop_map(move |(x, weight, bias_at, (y, y_element), seed)| {
                let mut random = Random::new(seed);
                let mut both = |(layout, element): (Layout, ElementType)| {
                    Both::new(random.values(layout.span().end), layout).stored(element)
                };
                let (x, weight, bias_at) = (both(x), both(weight), both(bias_at));
                Case { x, weight, bias: bias.then_some(bias_at), y, y_element }
            })
    })
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let said = |both: &Both| format!("{} {:?}", both.element, both.layout);
        let bias = self.bias.as_ref().map(said);
        write!(
            f,
            "x {}, weight {}, bias {bias:?}, y {} {:?}",
            said(&self.x),
            said(&self.weight),
            self.y_element,
            self.y
        )
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20) })]

    /// Shapes, strides, offsets and element types of all kinds.
    #[test]
    fn any_projection_is_the_references(case in cases()) {
        for schedule in schedules() {
            case.assert_agrees(schedule);
        }
    }
}

/// Sizes at the edges of what workgroups take, without gaps and in words of four: the path of models.
#[test]
fn sizes_around_the_tiles() {
    let mut random = Random::new(21);
    for (tokens, inputs, outputs) in [(1, 4, 4), (63, 60, 124), (64, 64, 64), (65, 68, 132), (130, 256, 28), (2, 0, 5)]
    {
        let case = Case::random(&mut random, [1, tokens, inputs, outputs], tokens % 2 == 0);
        schedules().for_each(|schedule| case.assert_agrees(schedule));
    }
}

/// Heads with other tokens between them, in words of four and not.
#[test]
fn heads_that_lie_apart() {
    let mut random = Random::new(26);
    for (channels, outputs) in [(8, 12), (6, 7)] {
        let mut case = Case::random(&mut random, [2, 40, 3 * channels, 2 * outputs], true);
        case.x.layout = Layout::heads_first([2, 40, 3, channels]).unwrap();
        case.y = Layout::heads_first([2, 40, 2, outputs]).unwrap();
        schedules().for_each(|schedule| case.assert_agrees(schedule));
    }
}

/// More inputs than loops without care are good for: each of them counts.
/// Of one channel each, whose distance within a head says nothing.
#[test]
fn heads_of_one_channel() {
    let mut random = Random::new(26);
    for heads_first in [false, true] {
        let mut case = Case::random(&mut random, [2, 3, 4, 6], true);
        let shape = [2, 3, 4, 1];
        case.x.layout = if heads_first { Layout::heads_first(shape).unwrap() } else { of(shape) };
        schedules().for_each(|schedule| case.assert_agrees(schedule));
    }
}

#[test]
fn long_inputs() {
    let mut random = Random::new(22);
    for inputs in [20_000, 32_768, 100_003, 300_000] {
        let mut case = Case::random(&mut random, [1, 5, inputs, 3], false);
        case.assert_within(&case.run(gpu(), None).unwrap(), "all");
        // One input in some hundreds, so that few numbers are added and a missing one would show.
        let step = inputs / 30;
        for (i, x) in case.x.values.iter_mut().enumerate() {
            if (i + 1) % step != 0 && (i + 1) % inputs != 0 {
                *x = 0.0;
            }
        }
        case.x = Both::new(case.x.values, case.x.layout);
        let expected = case.reference();
        let able = schedules().filter(|&schedule| inputs <= 32_768 || schedule == ProjectionSchedule::Dots);
        for schedule in able.map(Some).chain([None]) {
            let got = case.run(gpu(), schedule).unwrap();
            // Some 31 products of up to 4, and as many sums.
            let bound = 2.0 * 32.0 * 32.0 * 4.0 * U;
            crate::case::assert_near(&format!("{inputs}, {schedule:?}"), &got, &expected, bound);
        }
    }
}

/// What a token does not have is not looked at: weights behind its last input may be no number.
#[test]
fn nothing_behind_the_last_input_counts() {
    let mut random = Random::new(23);
    let mut case = Case::random(&mut random, [1, 40, 30, 33], true);
    for both in [&mut case.x, &mut case.weight] {
        let [_, rows, _, inputs] = both.layout.shape();
        let layout = Layout::strided([1, rows, 1, inputs], [0, inputs + 2, 0, 1], 0).unwrap();
        let mut values = vec![f32::NAN; rows * (inputs + 2)];
        layout.places().zip(&both.values).for_each(|(place, &value)| values[place] = value);
        *both = Both::new(values, layout);
    }
    // No magnitude of a NaN is ever asked for: it lies in no tensor.
    schedules().for_each(|schedule| case.assert_agrees(schedule));
}

/// Limits so small that tokens and outputs are cut.
#[test]
fn small_limits_change_nothing() {
    let mut random = Random::new(24);
    let case = Case::random(&mut random, [2, 30, 64, 70], true);
    for small in [
        gpu_with(|limits| limits.max_storage_buffer_binding_size = 4 << 10),
        gpu_with(|limits| limits.max_compute_workgroups_per_dimension = 2),
    ] {
        for schedule in [ProjectionSchedule::Tiles, ProjectionSchedule::Dots] {
            let got = case.run(&small, Some(schedule)).unwrap();
            case.assert_within(&got, &format!("{schedule:?} on {:?}", small.limits().max_storage_buffer_binding_size));
        }
    }
    let tiny = gpu_with(|limits| limits.max_storage_buffer_binding_size = 128);
    expect_refused(case.run(&tiny, None), ErrorKind::Limit, "max_storage_buffer_binding_size");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let zeros = |shape| gpu().zeros(ElementType::F32, shape).unwrap();
    let (x, weight, y) = (zeros([2, 3, 2, 8]), zeros([1, 12, 1, 16]), zeros([2, 3, 4, 3]));
    let refused = |projection: Projection| match projection.prepare(gpu()) {
        Err(error) if error.kind() == ErrorKind::Overlap => format!("{} meets {}", error.argument(), error.was()),
        Err(error) if matches!(error.kind(), ErrorKind::Tensor | ErrorKind::Usage | ErrorKind::Limit) => {
            error.argument().to_owned()
        }
        other => panic!("should have been refused: {other:?}"),
    };
    assert!(Projection::new(&x, &weight, &y).prepare(gpu()).is_ok());
    assert_eq!(refused(Projection::new(&zeros([2, 3, 2, 9]), &weight, &y)), "weight");
    assert_eq!(refused(Projection::new(&x, &weight, &zeros([2, 3, 4, 4]))), "output");
    assert_eq!(refused(Projection::new(&x, &weight, &zeros([2, 4, 4, 3]))), "output");
    assert_eq!(refused(Projection::new(&x, &weight, &y).bias(&zeros([1, 12, 1, 1]))), "bias");
    let error = Projection::new(&x, &weight, &y).bias(&zeros([1, 1, 1, 5])).prepare(gpu()).unwrap_err();
    assert_eq!(error.to_string(), "bias: was [1, 1, 1, 5], may be [1, 1, 1, 12]");
    let integers = gpu().upload_positions(&[0; 12 * 16], [12, 16]).unwrap();
    let integers = View::new(integers.buffer(), ElementType::I32, weight.layout()).unwrap();
    assert_eq!(refused(Projection::new(&x, &integers, &y)), "weight");
    let repeated = View::new(y.buffer(), ElementType::F32, Layout::strided([2, 3, 4, 3], [0; 4], 0).unwrap()).unwrap();
    assert_eq!(refused(Projection::new(&x, &weight, &repeated)), "output");
    let inside = View::new(x.buffer(), ElementType::F32, of([2, 3, 4, 3])).unwrap();
    assert_eq!(refused(Projection::new(&x, &weight, &inside)), "output meets x");
    let usage = wgpu::BufferUsages::COPY_SRC;
    let descriptor = wgpu::BufferDescriptor { label: None, size: 4 * 12 * 16, usage, mapped_at_creation: false };
    let unusable = gpu().device().create_buffer(&descriptor);
    let unusable = View::new(&unusable, ElementType::F32, weight.layout()).unwrap();
    assert_eq!(refused(Projection::new(&x, &unusable, &y)), "weight");
    let long = |inputs| Projection::new(&zeros([1, 2, 1, inputs]), &zeros([1, 1, 1, inputs]), &zeros([1, 2, 1, 1]));
    assert_eq!(refused(long((1 << 20) + 1)), "x");
    assert_eq!(refused(long((1 << 15) + 1).schedule(ProjectionSchedule::Tiles)), "x");
    // Extents whose product is no number, of which there are none.
    let none = View::new(x.buffer(), ElementType::F32, Layout::strided([0, 1, 1 << 40, 1 << 40], [0; 4], 0).unwrap());
    assert_eq!(refused(Projection::new(&none.unwrap(), &weight, &y)), "weight");
    let (no_tokens, nowhere) = (zeros([2, 0, 2, 8]), zeros([2, 0, 4, 3]));
    assert_eq!(Projection::new(&no_tokens, &weight, &nowhere).prepare(gpu()).unwrap().dispatches(), 0);
}

/// A device without subgroups has the other schedules.
#[test]
fn rows_need_subgroups() {
    let mut random = Random::new(25);
    let case = Case::random(&mut random, [1, 40, 12, 9], true);
    let plain = gpu_with(|_| {});
    let refused = case.run(&plain, Some(ProjectionSchedule::Rows));
    expect_refused(refused, ErrorKind::Limit, "subgroup_min_size");
    case.assert_within(&case.run(&plain, None).unwrap(), "no subgroups");
}
