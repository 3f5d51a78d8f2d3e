//! The device, and how tensors come to it.

use crate::adopt;
use crate::device::{Device, promised, rejected};
use crate::error::{Result, refused};
use crate::options::{self, Answer};
use crate::step::Step;
use crate::tensor::{ELEMENTS, Tensor};
use js_sys::{Promise, Reflect};
use phasor::{ElementType, Layout, View};
use wasm_bindgen::prelude::*;

/// A device, and everything that lives on it.
///
/// Calls take effect in their order, whether their promises are awaited or not. A promise is fulfilled once the device
/// has taken the work, not when it is done; `tensor.read()` waits for that.
#[wasm_bindgen]
#[derive(Debug, Clone)]
pub struct Gpu {
    device: Device,
}

impl Gpu {
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Bytes of a tensor without gaps.
    fn bytes(shape: [usize; 4], element: ElementType) -> u64 {
        shape.iter().fold(element.bytes() as u64, |bytes, &extent| bytes.saturating_mul(extent as u64))
    }
}

fn shape_and_element(shape: &JsValue, element: &JsValue) -> Result<([usize; 4], ElementType)> {
    let shape = options::read("shape", shape, "shape")?.shape();
    Ok((shape, options::read("element", element, "element")?.word(&ELEMENTS).unwrap_or(ElementType::F32)))
}

#[wasm_bindgen]
impl Gpu {
    /// Makes a device on the best adapter that the browser offers.
    ///
    /// Fails with code `"NoAdapter"` where there is none: the page can compute with `reference` then.
    #[wasm_bindgen(unchecked_return_type = "Promise<Gpu>")]
    pub fn request() -> Promise {
        promised(Box::pin(async {
            // wgpu panics where there is neither a window nor a worker.
            if !adopt::offers_webgpu() {
                let reason = "there is no navigator.gpu here: a browser with WebGPU turned on has it, for pages from https \
                              or localhost";
                return Err(phasor::Error::new(phasor::ErrorKind::NoAdapter, "", reason, "").into());
            }
            Ok(Gpu { device: Device::new(phasor::Gpu::request().await?) }.into())
        }))
    }

    /// Uses a device that the page has made. Both may use it at the same time, and tensors lie in its buffers.
    #[wasm_bindgen(unchecked_return_type = "Promise<Gpu>")]
    pub fn adopt(#[wasm_bindgen(unchecked_param_type = "GPUDevice")] device: &JsValue) -> Promise {
        if !adopt::has_method(device, "createBuffer") {
            return rejected(refused("device", "no GPUDevice", "a GPUDevice"));
        }
        let device = device.clone();
        promised(Box::pin(async move { Ok(Gpu { device: Device::new(adopt::device(&device).await?) }.into()) }))
    }

    /// The browser's device.
    #[wasm_bindgen(getter, js_name = device, unchecked_return_type = "GPUDevice")]
    pub fn js_device(&self) -> JsValue {
        self.device.js().clone()
    }

    /// Whether the device is the CPU in disguise.
    #[wasm_bindgen(getter, js_name = isSoftware)]
    pub fn is_software(&self) -> bool {
        self.device.gpu().is_software()
    }

    /// A tensor of these numbers, rounded where `element` is `"f16"` or `"bf16"` (`"f32"` if left out). There must be as
    /// many as the shape `[batch, tokens, heads, channels]` says.
    #[wasm_bindgen(unchecked_return_type = "Promise<Tensor>")]
    pub fn tensor(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Float32Array")] values: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "Shape")] shape: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "FloatType")] element: &JsValue,
    ) -> Promise {
        let (shape, element) = match shape_and_element(shape, element) {
            Ok(read) => read,
            Err(error) => return rejected(error),
        };
        let device = &self.device;
        device.promise("a tensor's buffer", Self::bytes(shape, element), || {
            Ok(Tensor::owning(
                device,
                device.gpu().upload_as(element, &options::read("values", values, "values")?.floats(), shape)?,
            ))
        })
    }

    /// A tensor of zeros.
    #[wasm_bindgen(unchecked_return_type = "Promise<Tensor>")]
    pub fn zeros(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Shape")] shape: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "ElementType")] element: &JsValue,
    ) -> Promise {
        let (shape, element) = match shape_and_element(shape, element) {
            Ok(read) => read,
            Err(error) => return rejected(error),
        };
        let device = &self.device;
        device.promise("a tensor's buffer", Self::bytes(shape, element), || Tensor::zeros(device, element, shape))
    }

    /// A tensor of whole numbers: positions, lengths, masks.
    #[wasm_bindgen(unchecked_return_type = "Promise<Tensor>")]
    pub fn integers(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Int32Array")] values: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "Shape")] shape: &JsValue,
    ) -> Promise {
        let shape = match options::read("shape", shape, "shape") {
            Ok(shape) => shape.shape(),
            Err(error) => return rejected(error),
        };
        let device = &self.device;
        device.promise("a tensor's buffer", Self::bytes(shape, ElementType::I32), || {
            let values = options::read("integers", values, "values")?.integers();
            let elements = Layout::contiguous(shape)?.elements();
            if elements != values.len() {
                let was = format!("{shape:?}, {elements} elements");
                return Err(refused("shape", was, format!("one of {} elements", values.len())));
            }
            // The same bytes, by another shape.
            let view = device.gpu().upload_positions(&values, [elements, 1])?;
            Ok(Tensor::owning(device, View::new(view.buffer(), ElementType::I32, Layout::contiguous(shape)?)?))
        })
    }

    /// A tensor in a buffer that the page has made on this device, and frees itself. Without `strides` its elements
    /// follow each other from `offset` on; strides and offset count elements.
    #[wasm_bindgen(unchecked_return_type = "Tensor")]
    pub fn wrap(
        &self,
        #[wasm_bindgen(unchecked_param_type = "GPUBuffer")] buffer: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "Shape")] shape: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "WrapOptions")] options: &JsValue,
    ) -> Result<Tensor> {
        let mut options = options::read("wrap", options, "options")?.all();
        let number = |property: &str| Reflect::get(buffer, &property.into()).ok().and_then(|number| number.as_f64());
        let (Some(size), Some(usage)) = (number("size"), number("usage")) else {
            return Err(refused("buffer", "no GPUBuffer", "a GPUBuffer"));
        };
        let element = options.next().word(&ELEMENTS).unwrap_or(ElementType::F32);
        let offset = options.next().count().unwrap_or(0);
        let shape = options::read("shape", shape, "shape")?.shape();
        let strides = options.next();
        let layout = match strides.is_given() {
            true => Layout::strided(shape, strides.shape(), offset)?,
            false => Layout::contiguous(shape)?.offset_by(offset)?,
        };
        let buffer = adopt::buffer(self.device.gpu(), self.device.js(), buffer, size as u64, usage as u32)?;
        Ok(Tensor::borrowing(&self.device, View::new(&buffer, element, layout)?))
    }

    /// Runs prepared steps, one after the other, without waiting for them to end.
    #[wasm_bindgen(variadic, unchecked_return_type = "Promise<void>")]
    pub fn run(&self, #[wasm_bindgen(unchecked_param_type = "Step[]")] steps: Vec<JsValue>) -> Promise {
        let device = &self.device;
        device.promise("a submission", 0, || {
            let steps: Vec<_> = steps.iter().map(|step| options::read("step", step, "steps")).collect::<Result<_>>()?;
            let steps: Vec<Step> = steps.into_iter().filter_map(Answer::handle).collect();
            device.gpu().submit(|pass| steps.iter().for_each(|step| step.record(pass)))?;
            Ok(JsValue::UNDEFINED)
        })
    }
}
