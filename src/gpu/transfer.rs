//! A thin layer for demos, tests and first steps: upload, run, read back. Engines have their own.

use super::{Gpu, View};
use crate::{ElementType, Error, ErrorKind, Layout, Result};

/// What a buffer that phasor makes for a tensor can be used for.
const TENSOR: wgpu::BufferUsages =
    wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_SRC).union(wgpu::BufferUsages::COPY_DST);

impl Gpu {
    /// A new buffer, filled with zeros, for a tensor `[batch, tokens, heads, channels]` without gaps.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit) if the device allows no buffer of that size,
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory) if it has no room.
    pub fn zeros(&self, element: ElementType, shape: [usize; 4]) -> Result<View> {
        let layout = Layout::contiguous(shape)?;
        let buffer = self.tensor_buffer((layout.elements() as u64).saturating_mul(element.bytes() as u64), false)?;
        View::new(&buffer, element, layout)
    }

    /// A new buffer with these numbers as a tensor `[batch, tokens, heads, channels]` without gaps.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) if the shape has another number of elements; else as [`Gpu::zeros`].
    pub fn upload(&self, values: &[f32], shape: [usize; 4]) -> Result<View> {
        self.upload_bytes(ElementType::F32, bytemuck::cast_slice(values), shape)
    }

    /// A new buffer with these numbers, rounded to an element type of floats.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) if the type is not one of floats; else as [`Gpu::upload`].
    pub fn upload_as(&self, element: ElementType, values: &[f32], shape: [usize; 4]) -> Result<View> {
        match element {
            ElementType::F32 => self.upload(values, shape),
            ElementType::F16 => {
                let halves: Vec<u16> = values.iter().map(|&x| half::f16::from_f32(x).to_bits()).collect();
                self.upload_bytes(element, bytemuck::cast_slice(&halves), shape)
            }
            ElementType::BF16 => {
                let halves: Vec<u16> = values.iter().map(|&x| half::bf16::from_f32(x).to_bits()).collect();
                self.upload_bytes(element, bytemuck::cast_slice(&halves), shape)
            }
            ElementType::I32 => Err(not_floats("element", element)),
        }
    }

    /// A new buffer with positions, one for each row and token: a view `[batch, tokens, 1, 1]`.
    ///
    /// # Errors
    /// As [`Gpu::upload`].
    pub fn upload_positions(&self, positions: &[i32], [batch, tokens]: [usize; 2]) -> Result<View> {
        self.upload_bytes(ElementType::I32, bytemuck::cast_slice(positions), [batch, tokens, 1, 1])
    }

    fn upload_bytes(&self, element: ElementType, bytes: &[u8], shape: [usize; 4]) -> Result<View> {
        let layout = Layout::contiguous(shape)?;
        let elements = bytes.len() / element.bytes();
        if layout.elements() != elements {
            return Err(Error::tensor(
                "shape",
                format!("{shape:?}, {} elements", layout.elements()),
                format!("one of {elements} elements, as many as there are values"),
            ));
        }
        View::new(&self.filled_buffer(bytes)?, element, layout)
    }

    /// A new buffer that starts with these bytes.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn filled_buffer(&self, bytes: &[u8]) -> Result<wgpu::Buffer> {
        let buffer = self.tensor_buffer(bytes.len() as u64, true)?;
        // A lost device maps nothing, and has been reported by now.
        if let Ok(mut mapped) = buffer.slice(..).get_mapped_range_mut() {
            mapped.slice(..bytes.len()).copy_from_slice(bytes);
        }
        buffer.unmap();
        Ok(buffer)
    }

    /// A new buffer that starts with these bytes. Where a browser has no room to map one it throws, past all error scopes.
    #[cfg(target_family = "wasm")]
    pub(crate) fn filled_buffer(&self, bytes: &[u8]) -> Result<wgpu::Buffer> {
        let buffer = self.tensor_buffer(bytes.len() as u64, false)?;
        let (words, rest) = bytes.split_at(bytes.len() / 4 * 4);
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        self.queue().write_buffer(&buffer, 0, words);
        if !rest.is_empty() {
            self.queue().write_buffer(&buffer, words.len() as u64, &last);
        }
        Ok(buffer)
    }

    /// A buffer for at least this many bytes: never empty, and in whole words, as bindings and copies want it.
    pub(crate) fn tensor_buffer(&self, bytes: u64, mapped_at_creation: bool) -> Result<wgpu::Buffer> {
        let limit = self.limits().max_buffer_size;
        let Some(size) = bytes.max(4).checked_next_multiple_of(4).filter(|&size| size <= limit) else {
            return Err(Error::new(
                ErrorKind::Limit,
                "max_buffer_size",
                format!("{bytes} bytes"),
                format!("up to {limit} bytes on this device"),
            ));
        };
        self.guarded("a tensor's buffer", size, |device| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("phasor tensor"),
                size,
                usage: TENSOR,
                mapped_at_creation,
            })
        })
    }

    /// Records into a compute pass of its own and submits it, without waiting.
    ///
    /// # Errors
    /// [`Device`](crate::ErrorKind::Device) if wgpu refuses the recording, [`DeviceLost`](crate::ErrorKind::DeviceLost) if
    /// the device is gone.
    pub fn submit(&self, record: impl FnOnce(&mut wgpu::ComputePass<'_>)) -> Result<()> {
        self.guarded("a submission", 0, |device| {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("phasor") });
            record(&mut encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default()));
            self.queue().submit([encoder.finish()]);
        })
    }

    /// Reads a tensor of floats back, in the order `[batch, tokens, heads, channels]` whatever its strides. Waits for
    /// all work that was submitted before.
    ///
    /// # Errors
    /// [`Tensor`](crate::ErrorKind::Tensor) if its elements are not floats; [`Usage`](crate::ErrorKind::Usage) if its
    /// buffer lacks `COPY_SRC`; [`DeviceLost`](crate::ErrorKind::DeviceLost) and [`Device`](crate::ErrorKind::Device) if
    /// the device fails.
    pub async fn read(&self, view: &View) -> Result<Vec<f32>> {
        if !view.element().is_float() {
            return Err(not_floats("view", view.element()));
        }
        view.expect_usage("view", wgpu::BufferUsages::COPY_SRC)?;
        let (layout, size) = (view.layout(), view.element().bytes());
        let span = layout.span();
        // Copies go by words of four bytes.
        let start = (span.start * size / 4 * 4) as u64;
        let bytes =
            self.read_bytes(view.buffer(), start, ((span.end * size) as u64).next_multiple_of(4) - start).await?;
        let values: Vec<f32> = match view.element() {
            ElementType::F16 => floats(&bytes, |bits| half::f16::from_bits(bits).to_f32()),
            ElementType::BF16 => floats(&bytes, |bits| half::bf16::from_bits(bits).to_f32()),
            ElementType::F32 | ElementType::I32 => bytemuck::pod_collect_to_vec(&bytes),
        };
        let first = start as usize / size;
        Ok(layout.places().filter_map(|place| values.get(place - first).copied()).collect())
    }

    /// [`Gpu::read`], waiting for the answer.
    ///
    /// # Errors
    /// As [`Gpu::read`].
    #[cfg(not(target_family = "wasm"))]
    pub fn read_blocking(&self, view: &View) -> Result<Vec<f32>> {
        pollster::block_on(self.read(view))
    }

    /// Copies a range of a buffer to the host. Offset and size are multiples of four.
    async fn read_bytes(&self, buffer: &wgpu::Buffer, offset: u64, size: u64) -> Result<Vec<u8>> {
        if size == 0 {
            return Ok(Vec::new());
        }
        let staging = self.guarded("a buffer to read back through", size, |device| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("phasor read back"),
                size,
                usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
                mapped_at_creation: false,
            })
        })?;
        self.guarded("reading back", size, |device| {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("phasor") });
            encoder.copy_buffer_to_buffer(buffer, offset, &staging, 0, size);
            self.queue().submit([encoder.finish()]);
        })?;
        self.map(&staging).await?;
        let bytes = staging.slice(..).get_mapped_range().map_err(|e| lost("reading back", &e))?.to_vec();
        // A browser frees a buffer when its garbage collector comes by, which does not know how large it is.
        staging.destroy();
        Ok(bytes)
    }

    /// Waits until a buffer is mapped for reading.
    async fn map(&self, staging: &wgpu::Buffer) -> Result<()> {
        let (send, receive) = futures_channel::oneshot::channel();
        staging.slice(..).map_async(wgpu::MapMode::Read, move |result| {
            // Fails if the future that waits for it was dropped: then nobody wants to know.
            let _ = send.send(result);
        });
        // Natively somebody must poll; in a browser the event loop does.
        #[cfg(not(target_family = "wasm"))]
        self.device().poll(wgpu::PollType::wait_indefinitely()).map_err(|e| lost("waiting for the device", &e))?;
        receive.await.map_err(|e| lost("reading back", &e))?.map_err(|e| lost("reading back", &e))
    }

    /// Waits until all work that was submitted is done. On a device that was destroyed there is none.
    ///
    /// # Errors
    /// [`DeviceLost`](crate::ErrorKind::DeviceLost) if the driver cannot wait, as on a device that it has lost.
    #[cfg(not(target_family = "wasm"))]
    pub fn wait(&self) -> Result<()> {
        self.device()
            .poll(wgpu::PollType::wait_indefinitely())
            .map(|_| ())
            .map_err(|e| lost("waiting for the device", &e))
    }
}

/// 16-bit floats, widened.
fn floats(bytes: &[u8], widen: impl Fn(u16) -> f32) -> Vec<f32> {
    bytes.chunks_exact(2).map(|pair| widen(u16::from_le_bytes([pair[0], pair[1]]))).collect()
}

fn not_floats(argument: &str, was: ElementType) -> Error {
    Error::tensor(argument, was.to_string(), "f32, f16 or bf16")
}

/// Mapping and polling fail when the device is gone.
fn lost(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::DeviceLost, "", format!("{what}: {error}"), "")
}
