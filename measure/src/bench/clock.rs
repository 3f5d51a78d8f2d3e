//! Three clocks: the wall's, the device's own, where it has one, and the processor's, which counts a software device's
//! work whatever else the machine does.

use phasor::{Error, ErrorKind, Gpu, Result};
use web_time::Instant;

/// Times one compute pass after the other.
pub(super) struct Clock<'a> {
    gpu: &'a Gpu,
    device: Option<DeviceClock>,
}

/// The timestamps at a pass's begin and end.
struct DeviceClock {
    queries: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    staging: wgpu::Buffer,
    seconds_per_tick: f64,
}

/// How long a pass took, in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lap {
    /// From submission until the host knew that all was done.
    pub wall: f64,
    /// By the device's own clock.
    pub device: Option<f64>,
    /// The time of all of this process's threads on a processor.
    pub processor: Option<f64>,
}

/// What all of this process's threads have used of the processor so far, in seconds; not told in a browser.
#[must_use]
pub fn processor_time() -> Option<f64> {
    #[cfg(not(target_family = "wasm"))]
    return cpu_time::ProcessTime::try_now().ok().map(|time| time.as_duration().as_secs_f64());
    #[cfg(target_family = "wasm")]
    return None;
}

/// Two timestamps of 64 bits.
const BYTES: u64 = 16;

impl<'a> Clock<'a> {
    pub fn new(gpu: &'a Gpu) -> Self {
        let has_clock = gpu.device().features().contains(wgpu::Features::TIMESTAMP_QUERY);
        Self { gpu, device: has_clock.then(|| DeviceClock::new(gpu)) }
    }

    /// Runs one pass and waits for it.
    pub async fn time(&self, record: &dyn Fn(&mut wgpu::ComputePass<'_>)) -> Result<Lap> {
        let mut encoder = self.gpu.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let timestamp_writes = self.device.as_ref().map(|clock| wgpu::ComputePassTimestampWrites {
            query_set: &clock.queries,
            beginning_of_pass_write_index: Some(0),
            end_of_pass_write_index: Some(1),
        });
        record(&mut encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes }));
        let commands = encoder.finish();
        let used = processor_time();
        let begin = Instant::now();
        self.gpu.queue().submit([commands]);
        self.finished().await?;
        let wall = begin.elapsed().as_secs_f64();
        let processor = processor_time().zip(used).map(|(now, before)| now - before);
        let device = match &self.device {
            Some(clock) => self.read(clock).await?,
            None => None,
        };
        Ok(Lap { wall, device, processor })
    }

    /// Waits until all that was submitted is done.
    async fn finished(&self) -> Result<()> {
        let (send, receive) = futures_channel::oneshot::channel();
        self.gpu.queue().on_submitted_work_done(move || {
            // Fails if nobody waits any more.
            let _ = send.send(());
        });
        self.poll()?;
        receive.await.map_err(|e| lost(&e))
    }

    /// Natively somebody must poll; in a browser the event loop does.
    fn poll(&self) -> Result<()> {
        #[cfg(not(target_family = "wasm"))]
        self.gpu.device().poll(wgpu::PollType::wait_indefinitely()).map_err(|e| lost(&e))?;
        Ok(())
    }

    /// The device's time of the last pass. Some drivers answer with zeros, which is no answer.
    async fn read(&self, clock: &DeviceClock) -> Result<Option<f64>> {
        let mut encoder = self.gpu.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.resolve_query_set(&clock.queries, 0..2, &clock.resolved, 0);
        encoder.copy_buffer_to_buffer(&clock.resolved, 0, &clock.staging, 0, BYTES);
        self.gpu.queue().submit([encoder.finish()]);
        let (send, receive) = futures_channel::oneshot::channel();
        clock.staging.slice(..).map_async(wgpu::MapMode::Read, move |result| {
            let _ = send.send(result);
        });
        self.poll()?;
        receive.await.map_err(|e| lost(&e))?.map_err(|e| lost(&e))?;
        let ticks: Vec<u64> = {
            let mapped = clock.staging.slice(..).get_mapped_range().map_err(|e| lost(&e))?;
            bytemuck::pod_collect_to_vec(&mapped)
        };
        clock.staging.unmap();
        Ok(match ticks.as_slice() {
            &[begin, end] if end > begin => Some((end - begin) as f64 * clock.seconds_per_tick),
            _ => None,
        })
    }
}

impl DeviceClock {
    fn new(gpu: &Gpu) -> Self {
        let buffer = |usage| {
            gpu.device().create_buffer(&wgpu::BufferDescriptor {
                label: Some("timestamps"),
                size: BYTES,
                usage,
                mapped_at_creation: false,
            })
        };
        Self {
            queries: gpu.device().create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("begin and end"),
                ty: wgpu::QueryType::Timestamp,
                count: 2,
            }),
            resolved: buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC),
            staging: buffer(wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ),
            seconds_per_tick: f64::from(gpu.queue().get_timestamp_period()) * 1e-9,
        }
    }
}

fn lost(error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::DeviceLost, "", format!("measuring: {error}"), "")
}
