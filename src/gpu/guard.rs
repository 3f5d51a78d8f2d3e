//! wgpu's errors as phasor's: what a driver or wgpu itself refuses must never reach the user uncaught.

use super::Gpu;
use crate::{Error, Result};

impl Gpu {
    /// Makes something on the device and hands back the first error that wgpu raised meanwhile.
    ///
    /// `argument` says what is being made, `bytes` how large it is. In a browser errors arrive later than this call
    /// returns, so that there they go to the device's `uncapturederror` event.
    pub(crate) fn guarded<T>(&self, argument: &str, bytes: u64, make: impl FnOnce(&wgpu::Device) -> T) -> Result<T> {
        #[cfg(not(target_family = "wasm"))]
        {
            use wgpu::ErrorFilter::{Internal, OutOfMemory, Validation};
            let device = self.device();
            let scopes = [OutOfMemory, Validation, Internal].map(|filter| device.push_error_scope(filter));
            let made = make(device);
            // Scopes nest: the last one pushed goes first. All are popped, whatever the first ones say.
            let errors: Vec<_> = scopes.into_iter().rev().filter_map(|scope| pollster::block_on(scope.pop())).collect();
            match errors.into_iter().next() {
                None => Ok(made),
                Some(error) => Err(translate(argument, bytes, &error)),
            }
        }
        #[cfg(target_family = "wasm")]
        {
            let _ = (argument, bytes);
            Ok(make(self.device()))
        }
    }
}

/// Says in phasor's words what wgpu said.
#[cfg(not(target_family = "wasm"))]
fn translate(argument: &str, bytes: u64, error: &wgpu::Error) -> Error {
    match error {
        wgpu::Error::OutOfMemory { .. } => Error::OutOfMemory { argument: argument.into(), bytes },
        other => {
            let reason = other.to_string();
            // wgpu has no error of its own for this; its message is "Parent device is lost".
            if reason.contains("device is lost") {
                Error::DeviceLost { reason }
            } else {
                Error::Device { argument: argument.into(), reason }
            }
        }
    }
}
