//! The device, and how tensors come to it.

use crate::adopt;
use crate::device::{Device, promised, rejected};
use crate::error::{Result, refused};
use crate::handles::Shared;
use crate::options::Value;
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

impl Shared for Gpu {
    const CLASS: &'static str = "Gpu";
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

fn element_or_f32(value: &JsValue) -> Result<ElementType> {
    Value::argument("element", value).given().map_or(Ok(ElementType::F32), |value| value.word(&ELEMENTS))
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
                return Err(phasor::Error::NoAdapter { reason: reason.into() }.into());
            }
            Ok(Gpu { device: Device::new(phasor::Gpu::request().await?) }.into())
        }))
    }

    /// Uses a device that the page has made. Both may use it at the same time, and tensors lie in its buffers.
    #[wasm_bindgen(unchecked_return_type = "Promise<Gpu>")]
    pub fn adopt(#[wasm_bindgen(unchecked_param_type = "GPUDevice")] device: &JsValue) -> Promise {
        if !adopt::has_method(device, "createBuffer") {
            return rejected(Value::argument("device", device).refuse("a GPUDevice"));
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
        let read = || Ok((Value::argument("shape", shape).counts()?, element_or_f32(element)?));
        let (shape, element) = match read() {
            Ok(read) => read,
            Err(error) => return rejected(error),
        };
        let (device, values) = (&self.device, Value::argument("values", values));
        device.promise("a tensor's buffer", Self::bytes(shape, element), || {
            Ok(Tensor::owning(device, device.gpu().upload_as(element, &values.floats()?, shape)?))
        })
    }

    /// A tensor of zeros.
    #[wasm_bindgen(unchecked_return_type = "Promise<Tensor>")]
    pub fn zeros(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Shape")] shape: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "ElementType")] element: &JsValue,
    ) -> Promise {
        let read = || Ok((Value::argument("shape", shape).counts()?, element_or_f32(element)?));
        let (shape, element) = match read() {
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
        let shape = match Value::argument("shape", shape).counts() {
            Ok(shape) => shape,
            Err(error) => return rejected(error),
        };
        let (device, values) = (&self.device, Value::argument("values", values));
        device.promise("a tensor's buffer", Self::bytes(shape, ElementType::I32), || {
            let values = values.integers()?;
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
        let options = Value::options("options", options, &["element", "offset", "strides"])?;
        let number = |property: &str| Reflect::get(buffer, &property.into()).ok().and_then(|number| number.as_f64());
        let (Some(size), Some(usage)) = (number("size"), number("usage")) else {
            return Err(Value::argument("buffer", buffer).refuse("a GPUBuffer"));
        };
        let element = options.get("element", |value| value.word(&ELEMENTS))?.unwrap_or(ElementType::F32);
        let offset = options.get("offset", Value::count)?.unwrap_or(0);
        let shape = Value::argument("shape", shape).counts()?;
        let layout = match options.get("strides", Value::counts)? {
            Some(strides) => Layout::strided(shape, strides, offset)?,
            None => Layout::contiguous(shape)?.offset_by(offset)?,
        };
        let buffer = adopt::buffer(self.device.gpu(), self.device.js(), buffer, size as u64, usage as u32)?;
        Ok(Tensor::borrowing(&self.device, View::new(&buffer, element, layout)?))
    }

    /// Runs prepared steps, one after the other, without waiting for them to end.
    #[wasm_bindgen(variadic, unchecked_return_type = "Promise<void>")]
    pub fn run(&self, #[wasm_bindgen(unchecked_param_type = "Step[]")] steps: Vec<JsValue>) -> Promise {
        let device = &self.device;
        device.promise("a submission", 0, || {
            let steps: Vec<Step> =
                steps.iter().map(|step| Value::argument("steps", step).shared()).collect::<Result<_>>()?;
            device.gpu().submit(|pass| steps.iter().for_each(|step| step.record(pass)))?;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Another handle to the same device.
    #[wasm_bindgen(js_name = __share, skip_typescript)]
    pub fn share(&self) -> Gpu {
        self.clone()
    }
}
