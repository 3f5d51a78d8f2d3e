//! The contextual bias alone, on the device.

use crate::device::Device;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::options;
use crate::step::Step;
use crate::tensor::Tensor;
use js_sys::Promise;
use phasor::{ContextualBias, ElementType};
use wasm_bindgen::prelude::*;

fn prepare(device: &Device, options: &JsValue) -> Result<(Step, Tensor)> {
    let mut options = options::read("bias", options, "options")?.all();
    let [query, logits, embeddings] = [options.needed(), options.needed(), options.needed()];
    let output = match options.tensor() {
        Some(output) => output,
        None => Tensor::zeros(device, ElementType::F32, logits.view().shape())?,
    };
    let mut bias = ContextualBias::new(query.view(), logits.view(), embeddings.view(), output.view());
    if let Some(scale) = options.next().number() {
        bias = bias.scale(scale);
    }
    let mut uses = vec![query.clone(), logits.clone(), embeddings.clone(), output.clone()];
    let elements = bias.scratch_elements(device.gpu())?;
    if elements > 0 {
        let memory = Tensor::zeros(device, ElementType::F32, [1, 1, 1, elements])?;
        bias = bias.scratch(memory.view());
        uses.push(memory);
    }
    Ok((Step::new(bias.prepare(device.gpu())?, &uses), output))
}

#[wasm_bindgen]
impl Gpu {
    /// Prepares the bias that contextual position encoding (Golovneva et al., 2024) adds to attention's logits, to be run
    /// by `run`.
    #[wasm_bindgen(js_name = prepareContextualBias, unchecked_return_type = "Promise<Step>")]
    pub fn prepare_contextual_bias(
        &self,
        #[wasm_bindgen(unchecked_param_type = "ContextualBiasOptions & { output: Tensor }")] options: &JsValue,
    ) -> Promise {
        let device = self.device();
        device.promise("a contextual bias", 0, || {
            crate::attention::expect_output(options)?;
            Ok(prepare(device, options)?.0)
        })
    }

    /// Computes that bias once: to `output`, or to a new f32 tensor if that is left out; fulfilled with that tensor.
    #[wasm_bindgen(js_name = contextualBias, unchecked_return_type = "Promise<Tensor>")]
    pub fn contextual_bias(
        &self,
        #[wasm_bindgen(unchecked_param_type = "ContextualBiasOptions")] options: &JsValue,
    ) -> Promise {
        let device = self.device();
        device.promise("a contextual bias", 0, || {
            let (step, output) = prepare(device, options)?;
            device.gpu().submit(|pass| step.record(pass))?;
            Ok(output)
        })
    }
}
