//! The largest error of each variant.

use phasor::gpu::Shader;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One variant's result.
#[derive(Debug, Clone, Serialize)]
pub struct VariantCheck {
    /// The shader's name.
    pub shader: String,
    /// How many different tasks it was given.
    pub cases: u64,
    /// How many numbers were compared.
    pub values: u64,
    /// The largest difference from the f64 reference.
    pub largest_error: f64,
    /// The number that came nearest to its bound, or went farthest beyond: its difference.
    pub worst_error: f64,
    /// The bound of that number. It depends on the number's size; 0 where nothing may change.
    pub worst_bound: f64,
    /// The task of that number, in words.
    pub worst_case: String,
    /// Whether every number was within its bound.
    pub passed: bool,
}

impl VariantCheck {
    /// The worst number's difference as a share of its bound: at most 1 if all is well.
    #[must_use]
    pub fn share(&self) -> f64 {
        share(self.worst_error, self.worst_bound)
    }
}

/// A number that is not within its bound is beyond it, also where it is no number at all.
fn share(error: f64, bound: f64) -> f64 {
    match error / bound {
        _ if error == 0.0 => 0.0,
        share if share.is_nan() => f64::INFINITY,
        share => share,
    }
}

/// Results of all variants, by name.
#[derive(Debug, Default)]
pub(super) struct Tally {
    variants: BTreeMap<String, VariantCheck>,
    /// How many numbers were compared, each counted once.
    pub values: u64,
    /// Tasks that the device's limits do not allow.
    pub refused: Vec<String>,
}

/// One number: what the device made of it, what it should be, and how far the two may be apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compared {
    pub got: f32,
    pub expected: f64,
    pub bound: f64,
}

impl Tally {
    /// Adds a task's numbers to the variants that made them, one after the other.
    pub fn add<'a>(&mut self, shaders: impl IntoIterator<Item = &'a Shader>, case: &str, numbers: &[Compared]) {
        self.values += numbers.len() as u64;
        let names: BTreeSet<_> = shaders.into_iter().map(|shader| shader.name.as_str()).collect();
        names.into_iter().for_each(|name| self.add_to(name, case, numbers));
    }

    fn add_to(&mut self, shader: &str, case: &str, numbers: &[Compared]) {
        let variant = self.variants.entry(shader.to_owned()).or_insert_with(|| VariantCheck {
            shader: shader.to_owned(),
            cases: 0,
            values: 0,
            largest_error: 0.0,
            worst_error: 0.0,
            worst_bound: 0.0,
            worst_case: String::new(),
            passed: true,
        });
        variant.cases += 1;
        for &Compared { got, expected, bound } in numbers {
            let error = (f64::from(got) - expected).abs();
            variant.values += 1;
            variant.largest_error = variant.largest_error.max(error);
            variant.passed &= error <= bound;
            if share(error, bound) > variant.share() || variant.worst_case.is_empty() {
                (variant.worst_error, variant.worst_bound) = (error, bound);
                variant.worst_case = format!("{case}: {got} instead of {expected}");
            }
        }
    }

    pub fn into_variants(self) -> Vec<VariantCheck> {
        self.variants.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(got: f32, expected: f64, bound: f64) -> VariantCheck {
        let mut tally = Tally::default();
        tally.add_to(
            "kernel",
            "case",
            &[Compared { got: 1.0, expected: 1.0, bound: 0.0 }, Compared { got, expected, bound }],
        );
        tally.into_variants().remove(0)
    }

    #[test]
    fn what_is_beyond_its_bound_does_not_pass() {
        assert!(one(1.0, 1.0 + 1e-7, 2e-7).passed);
        assert!(!one(1.0, 1.0 + 3e-7, 2e-7).passed);
        assert!(!one(1.0, 1.0 + 1e-9, 0.0).passed, "outside of the view nothing may change");
        assert!(!one(f32::NAN, 1.0, 2e-7).passed);
        assert!(!one(f32::INFINITY, 1.0, 2e-7).passed);
    }

    #[test]
    fn the_worst_is_the_one_nearest_to_its_own_bound() {
        let mut tally = Tally::default();
        let large = Compared { got: 1000.0, expected: 1000.001, bound: 0.01 };
        let small = Compared { got: 1.0, expected: 1.0 + 1e-7, bound: 2e-7 };
        tally.add_to("kernel", "case", &[large, small]);
        let check = tally.into_variants().remove(0);
        assert!((check.share() - 0.5).abs() < 1e-6);
        assert!(check.largest_error > 9e-4);
    }
}
