//! Rotary encoding on the device.

use crate::device::Device;
use crate::error::{Result, refused};
use crate::frequencies::Frequencies;
use crate::gpu::Gpu;
use crate::options::{self, DIRECTIONS, Properties};
use crate::step::Step;
use crate::tensor::Tensor;
use js_sys::Promise;
use phasor::frequencies::Axes;
use phasor::{CacheRows, Positions, Rotate};
use wasm_bindgen::prelude::*;

/// A rotary encoding on a device: frequencies, pairing, and which channels of a head turn.
#[wasm_bindgen]
#[derive(Debug, Clone)]
pub struct Rope {
    device: Device,
    rope: phasor::Rope,
}

/// Cosines and sines on the device, for rotations that read them instead of making them.
#[wasm_bindgen]
#[derive(Debug, Clone)]
pub struct RopeTable {
    table: phasor::RopeTable,
    view: Tensor,
    /// The buffer of positions, if they come from one.
    positions: Option<Tensor>,
}

#[wasm_bindgen]
impl Rope {
    /// Puts frequencies on the device.
    #[wasm_bindgen(unchecked_return_type = "Promise<Rope>")]
    pub fn create(
        gpu: &Gpu,
        frequencies: &Frequencies,
        #[wasm_bindgen(unchecked_param_type = "RopeOptions")] options: &JsValue,
    ) -> Promise {
        let device = gpu.device();
        device.promise("a rope's frequencies", 0, || {
            let mut options = options::read("rope", options, "options")?.all();
            let pairing = options.next().pairing();
            let first = options.next().count().unwrap_or(0);
            let axes = options.next();
            let mut rope = phasor::Rope::new(device.gpu(), frequencies.inner(), pairing)?;
            if axes.is_given() {
                rope = rope.with_axes(&axes_of_pairs(&axes.doubles())?)?;
            }
            Ok(Rope { device: device.clone(), rope: rope.from_channel(first) })
        })
    }

    /// The encoding of one layer of a model, for sequences of `seqLen` tokens in all. Fulfilled with `undefined` for a
    /// layer that does not rotate.
    #[wasm_bindgen(js_name = forLayer, unchecked_return_type = "Promise<Rope | undefined>")]
    pub fn for_layer(
        gpu: &Gpu,
        layer: &crate::config::LayerRope,
        #[wasm_bindgen(js_name = seqLen, unchecked_optional_param_type = "number")] seq_len: &JsValue,
    ) -> Promise {
        let device = gpu.device();
        device.promise("a rope's frequencies", 0, || {
            let seq_len = options::count_or_0(seq_len, "seqLen")?;
            let rope = phasor::Rope::for_layer(device.gpu(), layer.inner(), seq_len)?;
            Ok(rope.map_or(JsValue::UNDEFINED, |rope| Rope { device: device.clone(), rope }.into()))
        })
    }

    /// An encoding for keys that were rotated by the frequencies `from` and are to stand as if rotated by `to`.
    #[wasm_bindgen(unchecked_return_type = "Promise<Rope>")]
    pub fn between(
        gpu: &Gpu,
        from: &Frequencies,
        to: &Frequencies,
        #[wasm_bindgen(unchecked_param_type = "Pairing")] pairing: &JsValue,
    ) -> Promise {
        let device = gpu.device();
        device.promise("a rope's frequencies", 0, || {
            let pairing = options::read("pairing", pairing, "pairing")?.pairing();
            let rope = phasor::Rope::between(device.gpu(), from.inner(), to.inner(), pairing)?;
            Ok(Rope { device: device.clone(), rope })
        })
    }

    /// The same encoding without its attention factor: for keys that were rotated before and are to move.
    #[wasm_bindgen(js_name = withoutAttentionFactor)]
    pub fn without_attention_factor(&self) -> Rope {
        Self { rope: self.rope.clone().without_attention_factor(), ..self.clone() }
    }

    /// The frequencies.
    #[wasm_bindgen(getter)]
    pub fn frequencies(&self) -> Frequencies {
        self.rope.frequencies().clone().into()
    }

    /// Checks a rotation once and prepares it, to be run by `gpu.run` any number of times.
    #[wasm_bindgen(unchecked_return_type = "Promise<Step>")]
    pub fn prepare(&self, #[wasm_bindgen(unchecked_param_type = "RotateOptions")] options: &JsValue) -> Promise {
        self.device.promise("a rotation", 0, || self.step(options))
    }

    /// Rotates once.
    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn rotate(&self, #[wasm_bindgen(unchecked_param_type = "RotateOptions")] options: &JsValue) -> Promise {
        self.device.promise("a rotation", 0, || {
            let step = self.step(options)?;
            self.device.gpu().submit(|pass| step.record(pass))?;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// A table of cosines and sines for `tokens` positions from `start` on, computed at once.
    #[wasm_bindgen(unchecked_return_type = "Promise<RopeTable>")]
    pub fn table(
        &self,
        #[wasm_bindgen(unchecked_param_type = "number")] start: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "number")] tokens: &JsValue,
    ) -> Promise {
        let tokens = options::count(tokens, "tokens");
        let rows = tokens.as_ref().map_or(0, |&tokens| u64::from(tokens));
        let bytes = rows * self.rope.frequencies().rotary_dim() as u64 * 4;
        self.device.promise("a table", bytes, || {
            self.filled(self.rope.table(options::whole(start, "start")?, tokens? as usize)?, None)
        })
    }

    /// A table with a row for each token, whose positions an i32 tensor `[batch, tokens, axes, 1]` holds: computed at
    /// once, and again whenever its `step` is run.
    #[wasm_bindgen(js_name = tableFor, unchecked_return_type = "Promise<RopeTable>")]
    pub fn table_for(&self, positions: &Tensor) -> Promise {
        let table = || self.filled(self.rope.table_for(positions.view())?, Some(positions.clone()));
        self.device.promise("a table", 0, table)
    }

    fn filled(&self, table: phasor::RopeTable, positions: Option<Tensor>) -> Result<RopeTable> {
        self.device.gpu().submit(|pass| table.record(pass))?;
        Ok(RopeTable { view: Tensor::owning(&self.device, table.view().clone()), table, positions })
    }

    fn step(&self, options: &JsValue) -> Result<Step> {
        let mut options = options::read("rotate", options, "options")?.all();
        let mut uses = Vec::new();
        let mut view = |tensor: Tensor| {
            let view = tensor.view().clone();
            uses.push(tensor);
            view
        };
        let [q, q_out, k, k_out, k_cache] = [(); 5].map(|()| options.tensor().map(&mut view));
        let rows = options
            .next()
            .properties()
            .map(|rows| of_numbers(rows, CacheRows::StartPerRow, CacheRows::PerToken, &mut view));
        let rows = || match &rows {
            Some(rows) => Ok(rows.clone()),
            None => Err(refused("options.rows", "left out", "a tensor, or {perToken: tensor}, beside kCache")),
        };
        let mut rotate = match (&q, &k, &k_cache) {
            (Some(q), _, _) => Rotate::into(q, q_out.as_ref().unwrap_or(q)),
            (None, Some(k), Some(cache)) => Rotate::into_cache(k, cache, rows()?),
            (None, Some(k), None) => Rotate::into(k, k_out.as_ref().unwrap_or(k)),
            (None, None, _) => return Err(refused("options.q", "left out", "a Tensor, or left out beside k")),
        };
        if let (Some(_), Some(k)) = (&q, &k) {
            rotate = match &k_cache {
                Some(cache) => rotate.and_into_cache(k, cache, rows()?),
                None => rotate.and_into(k, k_out.as_ref().unwrap_or(k)),
            };
        }
        let positions = options.next();
        let positions = match (options.next().whole(), positions.whole()) {
            (Some(same), _) => Some(Positions::Same(same)),
            (None, Some(start)) => Some(Positions::Start(start)),
            (None, None) => {
                let numbers = positions.properties();
                numbers.map(|numbers| of_numbers(numbers, Positions::StartPerRow, Positions::PerToken, &mut view))
            }
        };
        if let Some(positions) = positions {
            rotate = rotate.positions(positions);
        }
        if let Some(direction) = options.next().word(&DIRECTIONS) {
            rotate = rotate.direction(direction);
        }
        if let Some(table) = options.next().handle::<RopeTable>() {
            rotate = rotate.from_table(&table.table);
            uses.push(table.view);
        }
        Ok(Step::new(self.rope.prepare(&rotate)?, &uses))
    }
}

/// `{startPerRow: tensor}` or `{perToken: tensor}`, of which `options.js` leaves one.
fn of_numbers<T>(
    mut numbers: Properties,
    start_per_row: fn(phasor::View) -> T,
    per_token: fn(phasor::View) -> T,
    view: &mut dyn FnMut(Tensor) -> phasor::View,
) -> T {
    match numbers.tensor() {
        Some(start) => start_per_row(view(start)),
        None => per_token(view(numbers.needed())),
    }
}

/// An axis for each pair.
fn axes_of_pairs(numbers: &[f64]) -> Result<Axes> {
    let small: Option<Vec<u8>> =
        numbers.iter().map(|&n| (f64::from(n as u8) == n && n < 255.0).then_some(n as u8)).collect();
    let small = small.ok_or_else(|| refused("options.axes", "an array", "an array of whole numbers from 0 to 254"))?;
    let count = small.iter().max().map_or(1, |largest| largest + 1);
    Ok(Axes::new(small, count)?)
}

#[wasm_bindgen]
impl RopeTable {
    /// The numbers: a tensor `[rows, 2, 1, pairs]`, in each row the cosines at index 0 of the second axis, the sines at 1.
    #[wasm_bindgen(getter)]
    pub fn tensor(&self) -> Tensor {
        self.view.clone()
    }

    /// Computes the table again, as is needed once the positions in its buffer have changed.
    #[wasm_bindgen(getter)]
    pub fn step(&self) -> Step {
        Step::table(self.table.clone(), [&self.view].into_iter().chain(&self.positions))
    }

    /// Another handle to the same table.
    #[wasm_bindgen(js_name = __RopeTable, skip_typescript)]
    pub fn share(&self) -> RopeTable {
        self.clone()
    }
}
