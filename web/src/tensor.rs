//! Tensors that stay on the device.

use crate::device::Device;
use crate::error::{Result, refused};
use crate::options;
use js_sys::{Float32Array, Promise};
use phasor::{ElementType, Layout, View};
use std::ops::Range;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// Element types, in the order of their names.
pub const ELEMENTS: [ElementType; 4] = [ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::I32];

/// A buffer of ours. A browser frees a buffer when its garbage collector comes by, which does not know how large it is:
/// this one is freed with the last tensor or step that uses it.
#[derive(Debug)]
pub struct Owned(wgpu::Buffer);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.destroy();
    }
}

/// A tensor `[batch, tokens, heads, channels]` on the device. It stays there between calls: what one operation writes
/// another one reads, and only `read` brings it to JavaScript.
///
/// `free()`, or the end of a `using` block, gives up this handle; the memory is freed with the last handle, slice or step
/// that uses it.
#[wasm_bindgen]
#[derive(Debug, Clone)]
pub struct Tensor {
    device: Device,
    view: View,
    owned: Option<Rc<Owned>>,
}

impl Tensor {
    /// A tensor in a buffer that nobody else has.
    pub fn owning(device: &Device, view: View) -> Self {
        let owned = Some(Rc::new(Owned(view.buffer().clone())));
        Self { device: device.clone(), view, owned }
    }

    /// A tensor in a buffer that is the page's.
    pub fn borrowing(device: &Device, view: View) -> Self {
        Self { device: device.clone(), view, owned: None }
    }

    /// Zeros.
    pub fn zeros(device: &Device, element: ElementType, shape: [usize; 4]) -> Result<Self> {
        Ok(Self::owning(device, device.gpu().zeros(element, shape)?))
    }

    pub fn view(&self) -> &View {
        &self.view
    }

    /// What must live as long as something works on this.
    pub fn owned(&self) -> Option<Rc<Owned>> {
        self.owned.clone()
    }

    fn part(&self, view: phasor::Result<View>) -> Result<Self> {
        Ok(Self { view: view?, ..self.clone() })
    }

    /// A buffer's bytes from its first element on, if its elements follow each other without gaps.
    fn expect_contiguous(&self) -> Result<u64> {
        let layout = self.view.layout();
        if layout != Layout::contiguous(layout.shape())?.offset_by(layout.offset())? {
            let may_be = "one whose elements follow each other without gaps";
            return Err(refused("tensor", format!("one of strides {:?}", layout.strides()), may_be));
        }
        Ok((layout.offset() * self.view.element().bytes()) as u64)
    }

    fn overwrite(&self, values: &JsValue) -> Result<()> {
        let first = self.expect_contiguous()?;
        let gpu = self.device.gpu();
        let shape = self.view.shape();
        let new = match self.view.element() {
            ElementType::I32 => {
                let integers = options::read("integers", values, "values")?.integers();
                let [b, t, h, c] = shape;
                gpu.upload_positions(&integers, [b * t * h * c, 1])?
            }
            floats => gpu.upload_as(floats, &options::read("values", values, "values")?.floats(), shape)?,
        };
        let bytes = (new.layout().elements() * new.element().bytes()) as u64;
        if !(first.is_multiple_of(4) && bytes.is_multiple_of(4)) {
            return Err(refused("tensor", format!("{bytes} bytes from byte {first} on"), "whole words of four bytes"));
        }
        let mut encoder =
            gpu.device().create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("phasor") });
        encoder.copy_buffer_to_buffer(new.buffer(), 0, self.view.buffer(), first, bytes);
        gpu.queue().submit([encoder.finish()]);
        new.buffer().destroy();
        Ok(())
    }
}

#[wasm_bindgen]
impl Tensor {
    /// `[batch, tokens, heads, channels]`.
    #[wasm_bindgen(getter, unchecked_return_type = "Shape")]
    pub fn shape(&self) -> Vec<u32> {
        self.view.shape().map(|extent| extent as u32).to_vec()
    }

    /// How an element is stored.
    #[wasm_bindgen(getter, unchecked_return_type = "ElementType")]
    pub fn element(&self) -> String {
        self.view.element().name().into()
    }

    /// The buffer that it lies in, for pipelines of the page's own. It has the usages `STORAGE`, `COPY_SRC` and `COPY_DST`.
    #[wasm_bindgen(getter, unchecked_return_type = "GPUBuffer")]
    pub fn buffer(&self) -> JsValue {
        self.view.buffer().as_webgpu().map_or(JsValue::UNDEFINED, |buffer| buffer.clone().into())
    }

    /// Where in the buffer its first element lies, counted in elements.
    #[wasm_bindgen(getter)]
    pub fn offset(&self) -> u32 {
        self.view.layout().offset() as u32
    }

    /// Its numbers, in the order `[batch, tokens, heads, channels]`. Waits for all work that was begun before. Not for
    /// `"i32"`.
    #[wasm_bindgen(unchecked_return_type = "Promise<Float32Array>")]
    pub fn read(&self) -> Promise {
        let this = self.clone();
        let work = async move {
            let values = this.device.gpu().read(&this.view).await?;
            Ok(Float32Array::from(values.as_slice()).into())
        };
        self.device.promise_later("reading a tensor", 0, Box::pin(work))
    }

    /// Overwrites it with as many numbers: a `Float32Array`, or an `Int32Array` where it holds `"i32"`. Its elements must
    /// follow each other without gaps.
    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn write(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Float32Array | Int32Array")] values: &JsValue,
    ) -> Promise {
        self.device.promise("writing a tensor", 0, || self.overwrite(values).map(|()| JsValue::UNDEFINED))
    }

    /// The heads from `start` to before `end`, in the same memory.
    pub fn heads(
        &self,
        #[wasm_bindgen(unchecked_param_type = "number")] start: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "number")] end: &JsValue,
    ) -> Result<Tensor> {
        self.part(self.view.heads(range(start, end)?))
    }

    /// The tokens from `start` to before `end`, in the same memory.
    pub fn tokens(
        &self,
        #[wasm_bindgen(unchecked_param_type = "number")] start: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "number")] end: &JsValue,
    ) -> Result<Tensor> {
        self.part(self.view.tokens(range(start, end)?))
    }

    /// The rows of the batch from `start` to before `end`, in the same memory.
    pub fn batch(
        &self,
        #[wasm_bindgen(unchecked_param_type = "number")] start: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "number")] end: &JsValue,
    ) -> Result<Tensor> {
        self.part(self.view.batch(range(start, end)?))
    }

    /// Another handle to the same tensor.
    #[wasm_bindgen(js_name = __Tensor, skip_typescript)]
    pub fn share(&self) -> Tensor {
        self.clone()
    }
}

/// What lies from `start` to before `end`.
fn range(start: &JsValue, end: &JsValue) -> Result<Range<usize>> {
    Ok(options::count(start, "start")? as usize..options::count(end, "end")? as usize)
}
