//! Rotary encoding on the device.

use crate::device::Device;
use crate::error::Result;
use crate::frequencies::Frequencies;
use crate::gpu::Gpu;
use crate::handles::Shared;
use crate::options::{DIRECTIONS, PAIRINGS, Value};
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

impl Shared for RopeTable {
    const CLASS: &'static str = "RopeTable";
}

/// What a rotation reads and writes.
const TENSORS: [&str; 5] = ["q", "qOut", "k", "kOut", "kCache"];

/// What else can be said of a rotation.
const SETTINGS: [&str; 5] = ["rows", "positions", "samePosition", "direction", "table"];

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
            let options = Value::options("options", options, &["pairing", "firstChannel", "axes"])?;
            let pairing = options.property("pairing").word(&PAIRINGS)?;
            let mut rope = phasor::Rope::new(device.gpu(), frequencies.inner(), pairing)?;
            if let Some(axes) = options.get("axes", axes_of_pairs)? {
                rope = rope.with_axes(&axes)?;
            }
            let first = options.get("firstChannel", Value::count)?.unwrap_or(0);
            Ok(Rope { device: device.clone(), rope: rope.from_channel(first) })
        })
    }

    /// The encoding of one layer of a model, for sequences of `seqLen` tokens in all. Fulfilled with `undefined` for a
    /// layer that does not rotate.
    #[wasm_bindgen(js_name = forLayer, unchecked_return_type = "Promise<Rope | undefined>")]
    pub fn for_layer(
        gpu: &Gpu,
        layer: &crate::config::LayerRope,
        #[wasm_bindgen(js_name = seqLen)] seq_len: Option<u32>,
    ) -> Promise {
        let device = gpu.device();
        device.promise("a rope's frequencies", 0, || {
            let rope = phasor::Rope::for_layer(device.gpu(), layer.inner(), seq_len.unwrap_or(0))?;
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
        let pairing = Value::argument("pairing", pairing).word(&PAIRINGS);
        device.promise("a rope's frequencies", 0, || {
            let rope = phasor::Rope::between(device.gpu(), from.inner(), to.inner(), pairing?)?;
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
    pub fn table(&self, start: i32, tokens: u32) -> Promise {
        let bytes = u64::from(tokens) * self.rope.frequencies().rotary_dim() as u64 * 4;
        self.device.promise("a table", bytes, || self.filled(self.rope.table(start, tokens as usize)?, None))
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
        let known = [&TENSORS[..], &SETTINGS[..]].concat();
        let options = Value::options("options", options, &known)?;
        let mut uses = Vec::new();
        let mut tensor = |name: &str| -> Result<Option<phasor::View>> {
            let tensor = options.get(name, Value::tensor)?;
            Ok(tensor.map(|tensor| {
                let view = tensor.view().clone();
                uses.push(tensor);
                view
            }))
        };
        let [q, q_out, k, k_out, k_cache] = TENSORS.map(&mut tensor);
        let (q, q_out, k, k_out, k_cache) = (q?, q_out?, k?, k_out?, k_cache?);
        let rows = options.get("rows", start_or_per_token)?;
        let rows_needed = || options.property("rows").refuse("a tensor, or {perToken: tensor}, beside kCache");
        let mut rotate = match (&q, &k, &k_cache) {
            (Some(q), _, _) => Rotate::into(q, q_out.as_ref().unwrap_or(q)),
            (None, Some(k), Some(cache)) => Rotate::into_cache(k, cache, rows.clone().ok_or_else(rows_needed)?.rows()),
            (None, Some(k), None) => Rotate::into(k, k_out.as_ref().unwrap_or(k)),
            (None, None, _) => return Err(options.property("q").refuse("a Tensor, or left out beside k")),
        };
        if let (Some(_), Some(k)) = (&q, &k) {
            rotate = match &k_cache {
                Some(cache) => rotate.and_into_cache(k, cache, rows.clone().ok_or_else(rows_needed)?.rows()),
                None => rotate.and_into(k, k_out.as_ref().unwrap_or(k)),
            };
        }
        uses.extend(rows.map(Numbers::tensor));
        if let Some(same) = options.get("samePosition", Value::whole)? {
            rotate = rotate.positions(Positions::Same(same));
        } else if let Some(positions) = options.property("positions").given() {
            rotate = rotate.positions(match positions.js().as_f64() {
                Some(_) => Positions::Start(positions.whole()?),
                None => {
                    let numbers = start_or_per_token(&positions)?;
                    let positions = numbers.positions();
                    uses.push(numbers.tensor());
                    positions
                }
            });
        }
        if let Some(direction) = options.get("direction", |direction| direction.word(&DIRECTIONS))? {
            rotate = rotate.direction(direction);
        }
        if let Some(table) = options.get("table", Value::shared::<RopeTable>)? {
            rotate = rotate.from_table(&table.table);
            uses.push(table.view);
        }
        Ok(Step::new(self.rope.prepare(&rotate)?, &uses))
    }
}

/// Numbers from a tensor: one to a row from which its tokens count on, or one to a token.
#[derive(Clone)]
enum Numbers {
    StartPerRow(Tensor),
    PerToken(Tensor),
}

impl Numbers {
    fn tensor(self) -> Tensor {
        match self {
            Self::StartPerRow(tensor) | Self::PerToken(tensor) => tensor,
        }
    }

    fn positions(&self) -> Positions {
        match self {
            Self::StartPerRow(tensor) => Positions::StartPerRow(tensor.view().clone()),
            Self::PerToken(tensor) => Positions::PerToken(tensor.view().clone()),
        }
    }

    fn rows(&self) -> CacheRows {
        match self {
            Self::StartPerRow(tensor) => CacheRows::StartPerRow(tensor.view().clone()),
            Self::PerToken(tensor) => CacheRows::PerToken(tensor.view().clone()),
        }
    }
}

/// `{startPerRow: tensor}` or `{perToken: tensor}`.
fn start_or_per_token(value: &Value) -> Result<Numbers> {
    value.expect_known(&["startPerRow", "perToken"])?;
    match (value.get("startPerRow", Value::tensor)?, value.get("perToken", Value::tensor)?) {
        (Some(start), None) => Ok(Numbers::StartPerRow(start)),
        (None, Some(each)) => Ok(Numbers::PerToken(each)),
        _ => Err(value.refuse("{startPerRow: tensor} or {perToken: tensor}")),
    }
}

/// An axis for each pair.
fn axes_of_pairs(axes: &Value) -> Result<Axes> {
    let numbers = axes.doubles()?;
    let small: Option<Vec<u8>> =
        numbers.iter().map(|&n| (f64::from(n as u8) == n && n < 255.0).then_some(n as u8)).collect();
    let small = small.ok_or_else(|| axes.refuse("an array of whole numbers from 0 to 254"))?;
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
    #[wasm_bindgen(js_name = __share, skip_typescript)]
    pub fn share(&self) -> RopeTable {
        self.clone()
    }
}
