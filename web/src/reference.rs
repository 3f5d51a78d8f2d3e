//! The operations in plain f64 loops: what the kernels are checked against, and for pages without a device.

use crate::error::{Result, refused};
use crate::options::{self, Answer, DIRECTIONS, Properties};
use js_sys::{Float64Array, Object, Reflect};
use phasor::attention::{Attention, ContextualPe, Standing};
use phasor::frequencies::Frequencies;
use phasor::reference::{self, Tensor};
use phasor::{Direction, Layout};
use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
import type { Direction, Pairing, Shape } from "./phasor.js";

/** What an object of class `Frequencies` says of itself. */
export interface HostFrequencies { readonly inverse: Float64Array | number[]; readonly attentionFactor?: number }

/** A tensor in JavaScript's memory, without gaps. */
export interface HostTensor { values: Float64Array | Float32Array | number[]; shape: Shape }

export interface ReferenceRotateOptions {
  pairing: Pairing;
  firstChannel?: number;
  direction?: Direction;
  /** The first token's position (0 if left out), or one for each row and token. */
  positions?: number | Int32Array;
}

/** As `AttentionOptions`, of tensors in JavaScript's memory. */
export interface ReferenceAttentionOptions {
  q: HostTensor;
  k: HostTensor;
  v: HostTensor;
  scale?: number;
  causal?: boolean;
  window?: number;
  standing?: number;
  keep?: HostTensor;
  bias?: HostTensor;
  cope?: { positionEmbeddings: HostTensor; query?: HostTensor; biasScale?: number };
}

/** `output` `[batch, tokens, heads, value channels]`, `lse` `[batch, tokens, heads]`, `gateSum` `[batch, tokens, heads, 2]`. */
export interface ReferenceAttended { output: Float64Array; lse: Float64Array; gateSum: Float64Array }
"#;

/// As many as a tensor may have here, and a result: half a gigabyte. More might be more than the module's memory, whose end
/// is a trap. Tensors without elements count as their other extents do, by which results are made.
const MOST_ELEMENTS: usize = 1 << 26;

/// Numbers and their shape, as a page hands them over: `{values, shape}`.
struct Array {
    values: Vec<f64>,
    layout: Layout,
}

impl Array {
    fn of(mut host: Properties) -> Result<Self> {
        let values = host.next().doubles();
        let layout = Layout::contiguous(host.next().shape())?;
        let elements = layout.elements();
        let extents = layout.shape().into_iter().filter(|&extent| extent != 0);
        let worth = extents.fold(1, usize::saturating_mul);
        if worth > MOST_ELEMENTS {
            let may_be = format!("one whose extents, but for those of 0, multiply to {MOST_ELEMENTS} at most");
            return Err(refused("shape", format!("{:?}", layout.shape()), may_be));
        }
        if values.len() == elements {
            return Ok(Self { values, layout });
        }
        let may_be = format!("one of {} elements, as many as there are values", values.len());
        Err(refused("shape", format!("{:?}, {elements} elements", layout.shape()), may_be))
    }

    fn argument(value: &JsValue, name: &str) -> Result<Self> {
        Self::of(options::read("host", value, name)?.all())
    }

    fn optional(host: Answer) -> Result<Option<Self>> {
        host.properties().map(Self::of).transpose()
    }

    fn tensor(&self) -> Result<Tensor<'_>> {
        Ok(Tensor::new(&self.values, self.layout)?)
    }
}

fn object(fields: &[(&str, &[f64])]) -> Object {
    let object = Object::new();
    for (name, numbers) in fields {
        // An object that was just made takes any property.
        let _ = Reflect::set(&object, &(*name).into(), &Float64Array::from(*numbers));
    }
    object
}

/// What a page's frequencies say of themselves: they may be another module's.
fn of_page(frequencies: &JsValue) -> Result<Frequencies> {
    let mut frequencies = options::read("frequencies", frequencies, "frequencies")?.all();
    let inverse = frequencies.next().doubles();
    Ok(Frequencies::new(inverse, frequencies.next().number().unwrap_or(1.0))?)
}

/// Cosines and sines of positions, times the attention factor: two arrays `[positions, pairs]`, in f64.
#[wasm_bindgen(js_name = referenceTable, unchecked_return_type = "{ cos: Float64Array; sin: Float64Array }")]
pub fn table(
    #[wasm_bindgen(unchecked_param_type = "HostFrequencies")] frequencies: &JsValue,
    #[wasm_bindgen(unchecked_param_type = "Int32Array")] positions: &JsValue,
) -> Result<Object> {
    let positions = options::read("integers", positions, "positions")?.integers();
    let frequencies = of_page(frequencies)?;
    let rows = MOST_ELEMENTS / frequencies.inv_freq().len();
    if positions.len() > rows {
        let may_be = format!("up to {rows} for {} pairs", frequencies.inv_freq().len());
        return Err(refused("positions", format!("{}", positions.len()), may_be));
    }
    let (cos, sin) = reference::rope_table(&frequencies, positions);
    Ok(object(&[("cos", &cos), ("sin", &sin)]))
}

/// The rotation of a tensor, in f64: as many numbers, in the same order.
#[wasm_bindgen(js_name = referenceRotate)]
pub fn rotate(
    #[wasm_bindgen(unchecked_param_type = "HostFrequencies")] frequencies: &JsValue,
    #[wasm_bindgen(unchecked_param_type = "HostTensor")] x: &JsValue,
    #[wasm_bindgen(unchecked_param_type = "ReferenceRotateOptions")] options: &JsValue,
) -> Result<Vec<f64>> {
    let Array { mut values, layout } = Array::argument(x, "x")?;
    let mut options = options::read("hostRotate", options, "options")?.all();
    let pairing = options.next().pairing();
    let first = options.next().count().unwrap_or(0);
    let direction = options.next().word(&DIRECTIONS).unwrap_or(Direction::Forward);
    let [batch, tokens, ..] = layout.shape();
    let positions = options.next();
    let start = positions.whole();
    let listed = (positions.is_given() && start.is_none()).then(|| positions.integers());
    if let Some(listed) = listed.as_ref().filter(|listed| listed.len() != batch * tokens) {
        let may_be = format!("a number, or an Int32Array of {}", batch * tokens);
        return Err(refused("options.positions", format!("one of {}", listed.len()), may_be));
    }
    let start = start.unwrap_or(0);
    if listed.is_none() && i64::from(start) + tokens as i64 > i64::from(i32::MAX) + 1 {
        let may_be = format!("at most {} for {tokens} tokens", i64::from(i32::MAX) + 1 - tokens as i64);
        let argument = "options.positions";
        return Err(phasor::Error::new(phasor::ErrorKind::Position, argument, start.to_string(), may_be).into());
    }
    let position = |b: usize, t: usize| match &listed {
        Some(listed) => listed.get(b * tokens + t).copied().unwrap_or_default(),
        None => start.wrapping_add(t as i32),
    };
    reference::rope_rotate(&mut values, layout, &of_page(frequencies)?, pairing, first, direction, position)?;
    Ok(values)
}

/// The contextual bias, in f64.
#[wasm_bindgen(js_name = referenceContextualBias)]
pub fn contextual_bias(
    #[wasm_bindgen(unchecked_param_type = "HostTensor")] query: &JsValue,
    #[wasm_bindgen(unchecked_param_type = "HostTensor")] logits: &JsValue,
    #[wasm_bindgen(js_name = positionEmbeddings, unchecked_param_type = "HostTensor")] embeddings: &JsValue,
) -> Result<Vec<f64>> {
    let query = Array::argument(query, "query")?;
    let logits = Array::argument(logits, "logits")?;
    let embeddings = Array::argument(embeddings, "positionEmbeddings")?;
    Ok(reference::cope(&query.tensor()?, &logits.tensor()?, &embeddings.tensor()?)?)
}

/// Where each key stands as its query counts: the sum of the gates from it rightward, but `positions - 1` at most.
#[wasm_bindgen(js_name = referencePositions)]
pub fn positions(
    #[wasm_bindgen(unchecked_param_type = "Float64Array | number[]")] gates: &JsValue,
    #[wasm_bindgen(unchecked_param_type = "number")] positions: &JsValue,
) -> Result<Vec<f64>> {
    let gates = options::read("doubles", gates, "gates")?.doubles();
    Ok(reference::cope_positions(&gates, 0.0, options::count(positions, "positions")? as usize))
}

/// How much a key counts in contextual position encoding: the sigmoid of its logit, and 0 for a masked one.
#[wasm_bindgen(js_name = referenceGate)]
pub fn gate(#[wasm_bindgen(unchecked_param_type = "number")] logit: &JsValue) -> Result<f64> {
    Ok(reference::cope_gate(options::number("real", logit, "logit")?))
}

/// Attention over all pairs of a query and a key, in f64.
#[wasm_bindgen(js_name = referenceAttention, unchecked_return_type = "ReferenceAttended")]
pub fn attention(
    #[wasm_bindgen(unchecked_param_type = "ReferenceAttentionOptions")] options: &JsValue,
) -> Result<Object> {
    let mut options = options::read("hostAttention", options, "options")?.all();
    let [q, k, v] = [(); 3].map(|()| Array::of(options.next().all()));
    let (q, k, v) = (q?, k?, v?);
    let mut attention = Attention::new(&q.tensor()?, &k.tensor()?, &v.tensor()?);
    if let Some(scale) = options.next().number() {
        attention = attention.scale(scale);
    }
    if options.next().flag() == Some(true) {
        attention = attention.causal();
    }
    if let Some(window) = options.next().count() {
        attention = attention.window(window);
    }
    if let Some(standing) = options.next().whole() {
        attention = attention.standing(Standing::From(standing.into()));
    }
    let [keep, bias] = [(); 2].map(|()| Array::optional(options.next()));
    let (keep, bias) = (keep?, bias?);
    let ([batch, tokens, heads, _], [.., channels]) = (q.layout.shape(), v.layout.shape());
    let results = [batch, tokens, heads, channels].into_iter().fold(1, usize::saturating_mul);
    if results > MOST_ELEMENTS {
        let was = format!("{:?} with v {:?}", q.layout.shape(), v.layout.shape());
        return Err(refused("q", was, format!("one of at most {MOST_ELEMENTS} results")));
    }
    if let Some(keep) = &keep {
        attention = attention.keep(&keep.tensor()?);
    }
    if let Some(bias) = &bias {
        attention = attention.bias(&bias.tensor()?);
    }
    let mut cope = options.next().properties();
    let embeddings = cope.as_mut().map(|cope| Array::of(cope.next().all())).transpose()?;
    let query = cope.as_mut().map(|cope| Array::optional(cope.next())).transpose()?.flatten();
    if let Some(embeddings) = &embeddings {
        let mut encoding = ContextualPe::new(&embeddings.tensor()?);
        if let Some(query) = &query {
            encoding = encoding.query(&query.tensor()?);
        }
        if let Some(scale) = cope.and_then(|mut cope| cope.next().number()) {
            encoding = encoding.bias_scale(scale);
        }
        attention = attention.cope(encoding);
    }
    let attended = reference::attention(&attention)?;
    Ok(object(&[("output", &attended.out), ("lse", &attended.lse), ("gateSum", &attended.gate_sum)]))
}
