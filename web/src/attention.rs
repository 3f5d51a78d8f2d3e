//! Attention on the device.

use crate::device::Device;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::options::{self, Answer, Properties};
use crate::step::Step;
use crate::tensor::Tensor;
use js_sys::{Promise, Reflect};
use phasor::attention::{Attention, ContextualPe, Fused, Gates, Schedule, Standing};
use phasor::{ElementType, View};
use wasm_bindgen::prelude::*;

/// Schedules, in the order of their names.
const SCHEDULES: [Schedule; 3] = [Schedule::Tiles, Schedule::Rows, Schedule::Split];

/// A prepared attention and where its output goes.
struct Ready {
    step: Step,
    output: Tensor,
}

/// Tensors that a step works on, each kept for as long as it lives.
#[derive(Default)]
struct Tensors(Vec<Tensor>);

impl Tensors {
    fn view(&mut self, tensor: Tensor) -> View {
        let view = tensor.view().clone();
        self.0.push(tensor);
        view
    }

    /// The next option.
    fn needed(&mut self, options: &mut Properties) -> View {
        self.view(options.needed())
    }

    /// The next option, if it is given.
    fn optional(&mut self, options: &mut Properties) -> Option<View> {
        options.tensor().map(|tensor| self.view(tensor))
    }
}

fn prepare(device: &Device, options: &JsValue) -> Result<Ready> {
    let mut options = options::read("attention", options, "options")?.all();
    let mut tensors = Tensors::default();
    let [q, k, v] = [(); 3].map(|()| tensors.needed(&mut options));
    let output = options.tensor();
    let [lse, gate_sum] = [(); 2].map(|()| tensors.optional(&mut options));
    let attention = attention(Attention::new(&q, &k, &v), &mut tensors, &mut options);
    let output = match output {
        Some(output) => output,
        None => {
            let ([batch, tokens, heads, _], [.., channels]) = (q.shape(), v.shape());
            Tensor::zeros(device, ElementType::F32, [batch, tokens, heads, channels])?
        }
    };
    tensors.0.push(output.clone());
    let mut fused = Fused::new(&attention, output.view());
    if let Some(schedule) = options.next().word(&SCHEDULES) {
        fused = fused.schedule(schedule);
    }
    if let Some(lse) = lse {
        fused = fused.lse(&lse);
    }
    if let Some(sum) = gate_sum {
        fused = fused.gate_sum(&sum);
    }
    // Scratch memory is ours, so that it is freed with the step and not when the garbage collector comes by.
    let scratch = fused.scratch_elements(device.gpu())?;
    if scratch > 0 {
        let memory = Tensor::zeros(device, ElementType::F32, [1, 1, 1, scratch])?;
        fused = fused.scratch(memory.view());
        tensors.0.push(memory);
    }
    let prepared = fused.prepare(device.gpu())?;
    Ok(Ready { step: Step::new(prepared, &tensors.0), output })
}

/// An attention with the options that say what it is, from `scale` on.
fn attention(mut attention: Attention<View>, tensors: &mut Tensors, options: &mut Properties) -> Attention<View> {
    if let Some(scale) = options.next().number() {
        attention = attention.scale(scale);
    }
    if options.next().flag() == Some(true) {
        attention = attention.causal();
    }
    if let Some(window) = options.next().count() {
        attention = attention.window(window);
    }
    if let Some(standing) = standing(&options.next()) {
        attention = attention.standing(standing);
    }
    if let Some(ranges) = tensors.optional(options) {
        attention = attention.key_ranges(&ranges);
    }
    if let Some(keep) = tensors.optional(options) {
        attention = attention.keep(&keep);
    }
    if let Some(bias) = tensors.optional(options) {
        attention = attention.bias(&bias);
    }
    if let Some(cope) = options.next().properties() {
        attention = attention.cope(contextual(tensors, cope));
    }
    attention
}

/// Where queries stand among the keys: a word, or a number alone in a list.
fn standing(answer: &Answer) -> Option<Standing> {
    match answer.properties() {
        Some(mut number) => number.next().whole().map(|from| Standing::From(from.into())),
        None => answer.word(&[Standing::Last, Standing::RowLast]),
    }
}

fn contextual(tensors: &mut Tensors, mut cope: Properties) -> ContextualPe<View> {
    let mut encoding = ContextualPe::new(&tensors.needed(&mut cope));
    if let Some(query) = tensors.optional(&mut cope) {
        encoding = encoding.query(&query);
    }
    // A word's place, or keys.
    let gates = cope.next();
    match gates.count() {
        Some(0) => encoding = encoding.gates(Gates::Logits),
        Some(_) => encoding = encoding.gates(Gates::Values),
        None => {
            if let Some(keys) = gates.handle() {
                encoding = encoding.gates(Gates::Keys(tensors.view(keys)));
            }
        }
    }
    if let Some(see) = cope.next().flag() {
        encoding = encoding.gates_see_bias(see);
    }
    if let Some(sum) = tensors.optional(&mut cope) {
        encoding = encoding.gate_sum(&sum);
    }
    if let Some(scale) = cope.next().number() {
        encoding = encoding.bias_scale(scale);
    }
    encoding
}

/// What nobody has named, nobody could read.
pub fn expect_output(options: &JsValue) -> Result<()> {
    let output = Reflect::get(options, &"output".into()).unwrap_or_default();
    options::read("tensor", &output, "options.output").map(|_| ())
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
            expect_output(options)?;
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
