//! Tensors that are on the host and on the device at once, and how near the two must come. Each binary uses
//! some of it.

#![allow(dead_code)]

use crate::common::{Golden, Random, gpu};
use phasor::reference::Tensor;
use phasor::{ElementType, Gpu, Layout, View};

/// An f32 tensor and the same numbers in f64.
#[derive(Clone)]
pub struct Both {
    pub values: Vec<f32>,
    pub wide: Vec<f64>,
    pub layout: Layout,
    pub element: ElementType,
}

impl Both {
    pub fn new(values: Vec<f32>, layout: Layout) -> Self {
        Self { wide: wide(&values), values, layout, element: ElementType::F32 }
    }

    pub fn random(random: &mut Random, shape: [usize; 4], scale: f32) -> Self {
        let layout = Layout::contiguous(shape).unwrap();
        Self::new(random.values(layout.elements()).into_iter().map(|x| x * scale).collect(), layout)
    }

    /// Whole numbers from 0 to below `end`.
    pub fn whole(random: &mut Random, shape: [usize; 4], end: usize) -> Self {
        let all = Self::random(random, shape, 1.0);
        // Random values lie between -2 and 2.
        Self::new(
            all.values.iter().map(|x| ((x + 2.0) / 4.0 * end as f32).floor().min((end - 1) as f32)).collect(),
            all.layout,
        )
    }

    pub fn filled(shape: [usize; 4], value: f32) -> Self {
        let layout = Layout::contiguous(shape).unwrap();
        Self::new(vec![value; layout.elements()], layout)
    }

    /// `[batch, heads, tokens, channels]` in memory.
    pub fn heads_first(golden: &Golden, name: &str) -> Self {
        let (shape, values) = golden.tensor(name);
        Self::new(values, Layout::heads_first([shape[0], shape[2], shape[1], shape[3]]).unwrap())
    }

    /// A matrix `[rows, columns]` (extents of 1 before them do not count) as `[1, rows, 1, columns]`.
    pub fn matrix(golden: &Golden, name: &str) -> Self {
        let (shape, values) = golden.tensor(name);
        let columns = shape[shape.len() - 1];
        let rows = values.len() / columns;
        Self::new(values, Layout::contiguous([1, rows, 1, columns]).unwrap())
    }

    pub fn shaped(golden: &Golden, name: &str, shape: [usize; 4]) -> Self {
        Self::new(golden.tensor(name).1, Layout::contiguous(shape).unwrap())
    }

    pub fn tensor(&self) -> Tensor<'_> {
        Tensor::new(&self.wide, self.layout).unwrap()
    }

    pub fn view(&self) -> View {
        self.view_on(gpu())
    }

    pub fn view_on(&self, gpu: &Gpu) -> View {
        let buffer = gpu.upload_as(self.element, &self.values, [1, 1, 1, self.values.len()]).unwrap();
        View::new(buffer.buffer(), self.element, self.layout).unwrap()
    }

    /// The same numbers, rounded to what this element type holds.
    pub fn stored(&self, element: ElementType) -> Self {
        let view = gpu().upload_as(element, &self.values, [1, 1, 1, self.values.len()]).unwrap();
        Self { element, ..Self::new(gpu().read_blocking(&view).unwrap(), self.layout) }
    }

    /// The same numbers as i32 on the device, as masks and lengths are.
    pub fn i32_view(&self) -> View {
        self.i32_view_on(gpu())
    }

    pub fn i32_view_on(&self, gpu: &Gpu) -> View {
        let numbers: Vec<_> = self.values.iter().map(|&x| x as i32).collect();
        let buffer = gpu.upload_positions(&numbers, [1, numbers.len()]).unwrap();
        View::new(buffer.buffer(), ElementType::I32, self.layout).unwrap()
    }

    /// In the order of the axes.
    pub fn in_order(&self) -> Vec<f64> {
        self.layout.places().map(|place| self.wide[place]).collect()
    }
}

/// Each number within `absolute` of the other.
#[track_caller]
pub fn assert_near(what: &str, got: &[f64], expected: &[f64], absolute: f64) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let worst = got
        .iter()
        .zip(expected)
        .enumerate()
        .map(|(i, (a, b))| ((a - b).abs(), i))
        .fold((0.0f64, 0), |worst, next| if next.0 > worst.0 || next.0.is_nan() { next } else { worst });
    let (difference, at) = worst;
    assert!(
        difference <= absolute,
        "{what}: {} instead of {} at {at}, off by {difference:e}, may be {absolute:e}",
        got[at],
        expected[at]
    );
}

pub fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&x| f64::from(x)).collect()
}
