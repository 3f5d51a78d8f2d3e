//! wgpu's errors as phasor's: what a driver or wgpu itself refuses must never reach the user uncaught.

use super::{Gpu, View};
#[cfg(not(target_family = "wasm"))]
use crate::ErrorKind;
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
            let lost = self.is_lost();
            // Scopes nest: the last one pushed goes first. All are popped, whatever the first ones say.
            let errors: Vec<_> = scopes.into_iter().rev().filter_map(|scope| pollster::block_on(scope.pop())).collect();
            // Where there is no room, what is made of it is invalid, too: the cause comes before its consequences.
            let out_of_memory = errors.iter().any(|error| matches!(error, wgpu::Error::OutOfMemory { .. }));
            match errors.into_iter().next() {
                _ if out_of_memory => Err(Error::new(ErrorKind::OutOfMemory, argument, format!("{bytes} bytes"), "")),
                _ if lost => {
                    Err(Error::new(ErrorKind::DeviceLost, "", format!("{argument} cannot be made any more"), ""))
                }
                Some(error) => Err(Error::new(ErrorKind::Device, argument, error.to_string(), "")),
                None => Ok(made),
            }
        }
        #[cfg(target_family = "wasm")]
        {
            let _ = (argument, bytes);
            Ok(make(self.device()))
        }
    }

    /// Says which of these arguments is to blame for what wgpu refused: the first one whose buffer this device cannot bind.
    ///
    /// wgpu does not tell whose a buffer is, nor whether it still exists. It is asked only once something has failed; in
    /// a browser, where errors arrive later, not at all.
    pub(crate) fn blame<'a>(&self, error: Error, arguments: impl IntoIterator<Item = (&'a str, &'a View)>) -> Error {
        #[cfg(not(target_family = "wasm"))]
        if error.kind() == ErrorKind::Device {
            let mut refused =
                arguments.into_iter().filter_map(|(argument, view)| self.bind_alone(argument, view).err());
            if let Some(refused) = refused.find(|error| error.kind() == ErrorKind::Device) {
                let reason = format!("its buffer is another device's, or was destroyed ({})", refused.was().trim());
                return Error::new(ErrorKind::Device, refused.argument(), reason, "");
            }
        }
        #[cfg(target_family = "wasm")]
        let _ = arguments;
        error
    }

    /// Binds the first word of an argument's buffer.
    #[cfg(not(target_family = "wasm"))]
    fn bind_alone(&self, argument: &str, view: &View) -> Result<wgpu::BindGroup> {
        let ty = wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only: true },
            has_dynamic_offset: false,
            min_binding_size: None,
        };
        let entry = wgpu::BindGroupLayoutEntry { binding: 0, visibility: wgpu::ShaderStages::COMPUTE, ty, count: None };
        self.guarded(argument, 0, |device| {
            let layout =
                device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &[entry] });
            let size = wgpu::BufferSize::new(wgpu::COPY_BUFFER_ALIGNMENT);
            let buffer = wgpu::BufferBinding { buffer: view.buffer(), offset: 0, size };
            device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &layout,
                entries: &[wgpu::BindGroupEntry { binding: 0, resource: wgpu::BindingResource::Buffer(buffer) }],
            })
        })
    }

    /// Whether the device is gone.
    ///
    /// wgpu keeps that from its error scopes and tells it to a callback, of which a device has one, the caller's. But
    /// what it makes on a lost device cannot be mapped.
    #[cfg(not(target_family = "wasm"))]
    fn is_lost(&self) -> bool {
        let probe = self.device().create_buffer(&wgpu::BufferDescriptor {
            label: Some("phasor probe"),
            size: wgpu::COPY_BUFFER_ALIGNMENT,
            usage: wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: true,
        });
        probe.slice(..).get_mapped_range_mut().is_err()
    }
}
