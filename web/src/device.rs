//! The device as a browser gives it: its errors come later than the calls that made them.

use crate::error::{JsError, Result};
use js_sys::{Promise, Reflect};
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, future_to_promise};

#[wasm_bindgen]
extern "C" {
    /// The part of a browser's device that wgpu does not pass on: it panics at internal errors.
    #[derive(Clone)]
    type GPUDevice;
    #[wasm_bindgen(method, js_name = pushErrorScope)]
    fn push_error_scope(this: &GPUDevice, filter: &str);
    #[wasm_bindgen(method, js_name = popErrorScope)]
    fn pop_error_scope(this: &GPUDevice) -> Promise;
    #[wasm_bindgen(method, getter)]
    fn lost(this: &GPUDevice) -> Promise;
}

/// What an error scope catches, by WebGPU's names. Where there is no room, what is made of it is invalid, too: the cause
/// comes before its consequences.
const FILTERS: [&str; 3] = ["out-of-memory", "validation", "internal"];

/// A device, and whether it is gone. Cheap to clone: everything that lives on it holds one.
#[derive(Debug, Clone)]
pub struct Device(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    gpu: phasor::Gpu,
    js: JsValue,
    /// What was said when it went.
    lost: RefCell<Option<String>>,
}

impl Device {
    pub fn new(gpu: phasor::Gpu) -> Self {
        let js: JsValue = gpu.device().as_webgpu().map_or(JsValue::UNDEFINED, |device| device.clone().into());
        let when_lost = JsFuture::from(js.unchecked_ref::<GPUDevice>().lost());
        let inner = Rc::new(Inner { gpu, js, lost: RefCell::new(None) });
        let told = Rc::downgrade(&inner);
        wasm_bindgen_futures::spawn_local(async move {
            let message =
                when_lost.await.ok().and_then(|info| Reflect::get(&info, &"message".into()).ok()?.as_string());
            if let Some(device) = told.upgrade() {
                device.lost.replace(Some(message.unwrap_or_default()));
            }
        });
        Self(inner)
    }

    /// The library's handle.
    pub fn gpu(&self) -> &phasor::Gpu {
        &self.0.gpu
    }

    /// The browser's own object.
    pub fn js(&self) -> &JsValue {
        &self.0.js
    }

    /// Does something now and promises its outcome, which waits for what the device says of it.
    ///
    /// `what` and `bytes` say what is being done and how large it is.
    pub fn promise<T: Into<JsValue>>(
        &self,
        what: &'static str,
        bytes: u64,
        work: impl FnOnce() -> Result<T>,
    ) -> Promise {
        self.watch();
        let done = work().map(Into::into);
        self.outcome(what, bytes, Box::pin(std::future::ready(done)))
    }

    /// As [`Device::promise`], for what the device does later. All calls to it up to the work's first pause are watched.
    pub fn promise_later(&self, what: &'static str, bytes: u64, mut work: Work) -> Promise {
        self.watch();
        match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => self.outcome(what, bytes, Box::pin(std::future::ready(done))),
            Poll::Pending => self.outcome(what, bytes, work),
        }
    }

    /// From here on the device's errors are caught.
    fn watch(&self) {
        let device: &GPUDevice = self.0.js.unchecked_ref();
        FILTERS.iter().for_each(|filter| device.push_error_scope(filter));
    }

    /// Catches no more errors, and promises what work comes to if there was none.
    fn outcome(&self, what: &'static str, bytes: u64, work: Work) -> Promise {
        let device: &GPUDevice = self.0.js.unchecked_ref();
        // Scopes nest: the last one pushed goes first.
        let scopes = FILTERS.map(|_| JsFuture::from(device.pop_error_scope()));
        let this = self.clone();
        promised(Box::pin(async move {
            let mut error = None;
            for (scope, filter) in scopes.into_iter().zip(FILTERS.iter().rev()) {
                // Refused where the device is gone, which is known otherwise.
                match scope.await {
                    Ok(value) if !value.is_null() && !value.is_undefined() => error = Some((*filter, value)),
                    _ => {}
                }
            }
            this.expect_there(what)?;
            match error {
                Some((filter, value)) => Err(device_error(what, bytes, filter, &value)),
                None => work.await,
            }
        }))
    }

    fn expect_there(&self, what: &str) -> Result<()> {
        match &*self.0.lost.borrow() {
            None => Ok(()),
            Some(message) => {
                Err(phasor::Error::new(phasor::ErrorKind::DeviceLost, "", format!("{what}: {message}"), "").into())
            }
        }
    }
}

/// Work of one type, whatever it is: each type of its own would be machinery of its own in the download.
pub type Work = Pin<Box<dyn Future<Output = Result<JsValue>>>>;

/// Work as a promise.
pub fn promised(work: Work) -> Promise {
    future_to_promise(async { Ok(work.await?) })
}

/// A promise that is refused.
pub fn rejected(error: JsError) -> Promise {
    Promise::reject(&error.into())
}

fn device_error(what: &str, bytes: u64, filter: &str, value: &JsValue) -> JsError {
    if filter == FILTERS[0] {
        return phasor::Error::new(phasor::ErrorKind::OutOfMemory, what, format!("{bytes} bytes"), "").into();
    }
    let message = Reflect::get(value, &"message".into()).ok().and_then(|message| message.as_string());
    phasor::Error::new(phasor::ErrorKind::Device, what, message.unwrap_or_default(), "").into()
}
