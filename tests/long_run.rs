//! A hundred thousand decode steps: nothing grows. In a process of its own, since it counts what the process holds.

#[path = "common/mod.rs"]
mod common;

use common::Random;
use phasor::attention::{Attention, Fused, Schedule, Standing};
use phasor::frequencies::Plain;
use phasor::{CacheRows, ElementType, Gpu, Pairing, Positions, Prepared, Result, Rope, Rotate, View};
use std::sync::Arc;

/// Tokens in all, and tokens to an encoder.
const STEPS: usize = 100_000;
const STEPS_AT_ONCE: usize = 10;
/// Encoders from one look at what is held to the next. By then work is done that was submitted.
const ENCODERS_A_LOOK: usize = 1000;

const HEADS: usize = 2;
const CHANNELS: usize = 8;
const KEYS: usize = 16;

/// Bytes that the process may have more at the last look than at the third: pages that its allocator happens to touch late.
/// Eight bytes to a step, or eighty to an encoder, would be more.
const SLACK: usize = 1 << 19;

/// A decode step: a token's query and key are rotated, the key goes to a cache, and the query attends to what is there.
struct Step {
    cache: View,
    filled: View,
    out: View,
    rotation: Prepared,
    attention: Prepared,
}

impl Step {
    fn new(gpu: &Gpu) -> Result<Self> {
        let mut random = Random::new(1);
        let mut upload = |shape: [usize; 4]| gpu.upload(&random.values(shape.iter().product()), shape);
        let (q, k) = (upload([1, 1, HEADS, CHANNELS])?, upload([1, 1, 1, CHANNELS])?);
        let (cache, values) = (upload([1, KEYS, 1, CHANNELS])?, upload([1, KEYS, 1, CHANNELS])?);
        let zeros = |shape| gpu.zeros(ElementType::F32, shape);
        let (turned, out) = (zeros([1, 1, HEADS, CHANNELS])?, zeros([1, 1, HEADS, CHANNELS])?);
        let (position, filled) = (gpu.upload_positions(&[7], [1, 1])?, gpu.upload_positions(&[8], [1, 1])?);
        let rope = Rope::new(gpu, &Plain::new(1e4).frequencies(CHANNELS as u32)?, Pairing::HalfSplit)?;
        let rotate = Rotate::into(&q, &turned).and_into_cache(&k, &cache, CacheRows::StartPerRow(position.clone()));
        let attention = Attention::new(&turned, &cache, &values).key_ranges(&filled).standing(Standing::RowLast);
        Ok(Self {
            rotation: rope.prepare(&rotate.positions(Positions::StartPerRow(position)))?,
            // One dispatch: what a step holds matters here, not how fast it is.
            attention: Fused::new(&attention, &out).schedule(Schedule::Rows).prepare(gpu)?,
            cache,
            filled,
            out,
        })
    }

    fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        self.rotation.record(pass);
        self.attention.record(pass);
    }
}

/// What a process and its devices hold.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    /// Of wgpu, by kind.
    objects: Option<String>,
    /// Allocations on the device and their bytes, where its backend tells.
    device: Option<(usize, u64)>,
    /// Of the process, where the system tells.
    files: Option<usize>,
    threads: Option<usize>,
    /// Bytes in memory.
    resident: Option<usize>,
}

impl Held {
    fn now(instance: &wgpu::Instance, gpu: &Gpu) -> Self {
        let entries = |folder| std::fs::read_dir(folder).ok().map(Iterator::count);
        let pages = std::fs::read_to_string("/proc/self/statm").ok();
        Self {
            objects: instance.generate_report().map(|report| format!("{report:?}")),
            device: gpu
                .device()
                .generate_allocator_report()
                .map(|report| (report.allocations.len(), report.total_allocated_bytes)),
            files: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            resident: pages.and_then(|pages| Some(4096 * pages.split(' ').nth(1)?.parse::<usize>().ok()?)),
        }
    }

    #[track_caller]
    fn assert_no_more_than(&self, before: &Self) {
        let counted = |held: &Self| Self { resident: None, objects: held.objects.clone(), ..*held };
        assert_eq!(counted(self), counted(before));
        if let (Some(now), Some(then)) = (self.resident, before.resident) {
            println!("{now} bytes in memory, {then} before");
            assert!(now <= then + SLACK, "{now} bytes in memory, {then} before");
        }
    }
}

#[test]
fn decoding_for_long_holds_nothing_back() -> Result<()> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle_from_env());
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))
        .expect("these tests need an adapter");
    let gpu = Gpu::on_blocking(&adapter)?;
    gpu.device().on_uncaptured_error(Arc::new(|error: wgpu::Error| panic!("reached the application: {error}")));
    let step = Step::new(&gpu)?;
    let mut looks = Vec::new();
    let mut outputs = Vec::new();
    for encoder in 1..=STEPS / STEPS_AT_ONCE {
        // An engine writes where its next token stands.
        gpu.queue().write_buffer(step.filled.buffer(), 0, bytemuck::bytes_of(&(8 - encoder as i32 % 2)));
        gpu.submit(|pass| (0..STEPS_AT_ONCE).for_each(|_| step.record(pass)))?;
        if encoder % 100 == 0 {
            // As each new sequence is; and what was submitted is done.
            let again = Step::new(&gpu)?;
            gpu.submit(|pass| again.record(pass))?;
            gpu.wait()?;
        }
        if encoder % ENCODERS_A_LOOK == 0 {
            outputs.push((gpu.read_blocking(&step.out)?, gpu.read_blocking(&step.cache)?));
            looks.push(Held::now(&instance, &gpu));
        }
    }
    assert!(outputs.iter().all(|output| *output == outputs[0]), "the same step gives the same");
    let [_, _, early, .., last] = &looks[..] else { panic!("{} looks are too few", looks.len()) };
    last.assert_no_more_than(early);
    Ok(())
}
