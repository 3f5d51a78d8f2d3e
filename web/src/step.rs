//! Prepared work.

use crate::tensor::{Owned, Tensor};
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// Work that was checked and prepared once, to be run any number of times by `gpu.run`.
///
/// It works on the tensors that it was prepared with, which live as long as it does.
#[wasm_bindgen]
#[derive(Debug, Clone)]
pub struct Step {
    work: Work,
    /// The memory that it works on.
    _uses: Rc<[Rc<Owned>]>,
}

/// What is recorded.
#[derive(Debug, Clone)]
enum Work {
    Prepared(phasor::Prepared),
    Table(phasor::RopeTable),
}

impl Step {
    pub fn new<'a>(prepared: phasor::Prepared, uses: impl IntoIterator<Item = &'a Tensor>) -> Self {
        Self { work: Work::Prepared(prepared), _uses: uses.into_iter().filter_map(Tensor::owned).collect() }
    }

    pub fn table<'a>(table: phasor::RopeTable, uses: impl IntoIterator<Item = &'a Tensor>) -> Self {
        Self { work: Work::Table(table), _uses: uses.into_iter().filter_map(Tensor::owned).collect() }
    }

    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        match &self.work {
            Work::Prepared(prepared) => prepared.record(pass),
            Work::Table(table) => table.record(pass),
        }
    }
}

#[wasm_bindgen]
impl Step {
    /// The kernels that it runs, in their order: the names by which `phasor shaders` lists their text.
    #[wasm_bindgen(getter)]
    pub fn shaders(&self) -> Vec<String> {
        match &self.work {
            Work::Prepared(prepared) => prepared.shaders().map(|shader| shader.name.clone()).collect(),
            Work::Table(table) => table.shader().into_iter().map(|shader| shader.name.clone()).collect(),
        }
    }

    /// Another handle to the same step.
    #[wasm_bindgen(js_name = __Step, skip_typescript)]
    pub fn share(&self) -> Step {
        self.clone()
    }
}
