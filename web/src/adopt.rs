//! A page's own device and buffers.
//!
//! wgpu makes its devices and buffers itself and takes none that are there already. But it asks the browser's objects for
//! them, by `navigator.gpu` and by `device.createBuffer`: for the length of that one question, another answers.

use crate::error::{JsError, Result};
use js_sys::{Function, Object, Promise, Reflect};
use phasor::Gpu;
use wasm_bindgen::prelude::*;

/// The library's handle on a device that the page has made.
pub async fn device(device: &JsValue) -> Result<Gpu> {
    let adapter = Object::new();
    // What an adapter is asked for beside a device, a device has, too.
    for property in ["features", "limits"] {
        set(&adapter, property, &Reflect::get(device, &property.into()).unwrap_or_default())?;
    }
    set(&adapter, "info", &Reflect::get(device, &"adapterInfo".into()).unwrap_or_default())?;
    set(&adapter, "requestDevice", &answering(Promise::resolve(device).into()))?;
    let gpu = Object::new();
    set(&gpu, "requestAdapter", &answering(Promise::resolve(&adapter).into()))?;

    let navigator =
        Reflect::get(&js_sys::global(), &"navigator".into()).map_err(|e| JsError::other("navigator", &e))?;
    let instance = while_it_is(&navigator, "gpu", &gpu, || {
        wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle())
    })?;
    let refused = |reason: String| phasor::Error::new(phasor::ErrorKind::Device, "device", reason, "");
    let adapter = instance.request_adapter(&wgpu::RequestAdapterOptions::default()).await;
    let adapter = adapter.map_err(|e| refused(e.to_string()))?;
    let made = adapter.request_device(&wgpu::DeviceDescriptor::default()).await;
    let (device, queue) = made.map_err(|e| refused(e.to_string()))?;
    Ok(Gpu::adopt(&device, &queue))
}

/// Whether there is a `navigator.gpu` to ask.
pub fn offers_webgpu() -> bool {
    let navigator = Reflect::get(&js_sys::global(), &"navigator".into()).unwrap_or_default();
    Reflect::get(&navigator, &"gpu".into()).is_ok_and(|gpu| gpu.is_object())
}

/// The library's handle on a buffer that the page has made on this device.
pub fn buffer(gpu: &Gpu, device: &JsValue, buffer: &JsValue, size: u64, usage: u32) -> Result<wgpu::Buffer> {
    let descriptor = wgpu::BufferDescriptor {
        label: None,
        size,
        usage: wgpu::BufferUsages::from_bits_truncate(usage),
        mapped_at_creation: false,
    };
    while_it_is(device, "createBuffer", &answering(buffer.clone()), || gpu.device().create_buffer(&descriptor))
}

/// A function that gives the same answer to whatever it is asked.
fn answering(answer: JsValue) -> JsValue {
    Closure::once_into_js(move || answer)
}

/// Does something while a property of an object is another one. What the object inherits is there again afterwards.
fn while_it_is<T>(object: &JsValue, property: &str, value: &JsValue, work: impl FnOnce() -> T) -> Result<T> {
    let object: &Object = object.unchecked_ref();
    let descriptor = Object::new();
    set(&descriptor, "value", value)?;
    set(&descriptor, "configurable", &true.into())?;
    Reflect::define_property(object, &property.into(), &descriptor).map_err(|e| JsError::other(property, &e))?;
    let done = work();
    Reflect::delete_property(object, &property.into()).map_err(|e| JsError::other(property, &e))?;
    Ok(done)
}

fn set(object: &Object, property: &str, value: &JsValue) -> Result<()> {
    Reflect::set(object, &property.into(), value).map(|_| ()).map_err(|e| JsError::other(property, &e))
}

/// Whether a value has a method, as what it should be has.
pub fn has_method(value: &JsValue, method: &str) -> bool {
    Reflect::get(value, &method.into()).is_ok_and(|found| found.is_instance_of::<Function>())
}
