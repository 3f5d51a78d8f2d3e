//! Attention on the device.

use crate::device::Device;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::options::Value;
use crate::step::Step;
use crate::tensor::Tensor;
use js_sys::Promise;
use phasor::attention::{Attention, ContextualPe, Fused, Gates, Schedule, Standing};
use phasor::{ElementType, View};
use wasm_bindgen::prelude::*;

/// What attention reads and writes, what else can be said of it, and what of contextual position encoding.
const ATTENTION: [&str; 15] = [
    "q",
    "k",
    "v",
    "output",
    "lse",
    "gateSum",
    "scale",
    "causal",
    "window",
    "standing",
    "keyRanges",
    "keep",
    "bias",
    "cope",
    "schedule",
];
const COPE: [&str; 6] = ["positionEmbeddings", "query", "gates", "gatesSeeBias", "gateSum", "biasScale"];

/// The names of schedules.
const SCHEDULES: [(&str, Schedule); 3] =
    [("tiles", Schedule::Tiles), ("rows", Schedule::Rows), ("split", Schedule::Split)];

/// Tensors named in an options object, each kept for as long as the step lives.
struct Tensors {
    used: Vec<Tensor>,
}

impl Tensors {
    fn optional(&mut self, options: &Value, name: &str) -> Result<Option<View>> {
        Ok(options.get(name, Value::tensor)?.map(|tensor| self.used(tensor)))
    }

    fn required(&mut self, value: &Value) -> Result<View> {
        Ok(self.used(value.tensor()?))
    }

    fn used(&mut self, tensor: Tensor) -> View {
        let view = tensor.view().clone();
        self.used.push(tensor);
        view
    }
}

/// A prepared attention and where its output goes.
struct Ready {
    step: Step,
    output: Tensor,
}

fn prepare(device: &Device, options: &JsValue) -> Result<Ready> {
    let options = Value::options("options", options, &ATTENTION)?;
    let mut tensors = Tensors { used: Vec::new() };
    let [q, k, v] = ["q", "k", "v"].map(|name| tensors.required(&options.property(name)));
    let (q, k, v) = (q?, k?, v?);
    let mut attention = Attention::new(&q, &k, &v);
    if let Some(scale) = options.get("scale", Value::number)? {
        attention = attention.scale(scale);
    }
    if options.get("causal", Value::flag)?.unwrap_or(false) {
        attention = attention.causal();
    }
    if let Some(window) = options.get("window", Value::count)? {
        attention = attention.window(window);
    }
    if let Some(standing) = options.get("standing", standing)? {
        attention = attention.standing(standing);
    }
    if let Some(ranges) = tensors.optional(&options, "keyRanges")? {
        attention = attention.key_ranges(&ranges);
    }
    if let Some(keep) = tensors.optional(&options, "keep")? {
        attention = attention.keep(&keep);
    }
    if let Some(bias) = tensors.optional(&options, "bias")? {
        attention = attention.bias(&bias);
    }
    if let Some(cope) = options.property("cope").given() {
        attention = attention.cope(contextual(&mut tensors, &cope)?);
    }
    let output = match options.get("output", Value::tensor)? {
        Some(output) => output,
        None => {
            let ([batch, tokens, heads, _], [.., channels]) = (q.shape(), v.shape());
            Tensor::zeros(device, ElementType::F32, [batch, tokens, heads, channels])?
        }
    };
    tensors.used.push(output.clone());
    let mut fused = Fused::new(&attention, output.view());
    if let Some(schedule) = options.get("schedule", |schedule| schedule.word(&SCHEDULES))? {
        fused = fused.schedule(schedule);
    }
    if let Some(lse) = tensors.optional(&options, "lse")? {
        fused = fused.lse(&lse);
    }
    if let Some(sum) = tensors.optional(&options, "gateSum")? {
        fused = fused.gate_sum(&sum);
    }
    // Scratch memory is ours, so that it is freed with the step and not when the garbage collector comes by.
    let scratch = fused.scratch_elements(device.gpu())?;
    if scratch > 0 {
        let memory = Tensor::zeros(device, ElementType::F32, [1, 1, 1, scratch])?;
        fused = fused.scratch(memory.view());
        tensors.used.push(memory);
    }
    let prepared = fused.prepare(device.gpu())?;
    Ok(Ready { step: Step::new(prepared, &tensors.used), output })
}

/// Where queries stand among the keys.
fn standing(value: &Value) -> Result<Standing> {
    match value.js().as_f64() {
        Some(_) => Ok(Standing::From(value.whole()?.into())),
        None => value.word(&[("last", Standing::Last), ("row-last", Standing::RowLast)]),
    }
}

fn contextual(tensors: &mut Tensors, cope: &Value) -> Result<ContextualPe<View>> {
    cope.expect_known(&COPE)?;
    let mut encoding = ContextualPe::new(&tensors.required(&cope.property("positionEmbeddings"))?);
    if let Some(query) = tensors.optional(cope, "query")? {
        encoding = encoding.query(&query);
    }
    if let Some(gates) = cope.property("gates").given() {
        encoding = encoding.gates(match gates.js().as_string().as_deref() {
            Some("logits") => Gates::Logits,
            Some("values") => Gates::Values,
            Some(_) => return Err(gates.refuse("\"logits\", \"values\" or a Tensor of keys")),
            None => Gates::Keys(tensors.required(&gates)?),
        });
    }
    if let Some(see) = cope.get("gatesSeeBias", Value::flag)? {
        encoding = encoding.gates_see_bias(see);
    }
    if let Some(sum) = tensors.optional(cope, "gateSum")? {
        encoding = encoding.gate_sum(&sum);
    }
    if let Some(scale) = cope.get("biasScale", Value::number)? {
        encoding = encoding.bias_scale(scale);
    }
    Ok(encoding)
}

#[wasm_bindgen]
impl Gpu {
    /// Checks an attention once and prepares it, to be run by `run` any number of times: for each token of a decode, say.
    #[wasm_bindgen(js_name = prepareAttention, unchecked_return_type = "Promise<Step>")]
    pub fn prepare_attention(
        &self,
        #[wasm_bindgen(unchecked_param_type = "AttentionOptions & { output: Tensor }")] options: &JsValue,
    ) -> Promise {
        let device = self.device();
        device.promise("attention", 0, || {
            // What nobody has named, nobody could read.
            Value::argument("options", options).property("output").tensor()?;
            Ok(prepare(device, options)?.step)
        })
    }

    /// Attends once: to `output`, or to a new f32 tensor if that is left out; fulfilled with that tensor.
    #[wasm_bindgen(unchecked_return_type = "Promise<Tensor>")]
    pub fn attention(&self, #[wasm_bindgen(unchecked_param_type = "AttentionOptions")] options: &JsValue) -> Promise {
        let device = self.device();
        device.promise("attention", 0, || {
            let Ready { step, output } = prepare(device, options)?;
            device.gpu().submit(|pass| step.record(pass))?;
            Ok(output)
        })
    }
}
