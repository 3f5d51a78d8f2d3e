//! How long it takes to prepare what a model uses, on one thread and on several: most of it goes into compiling pipelines.
//!
//! Minima of five rounds. Each time on a new device, so that nothing is compiled yet; a driver's own cache is best turned off
//! (`MESA_SHADER_CACHE_DISABLE=true` for Mesa, `__GL_SHADER_DISK_CACHE=0` for NVIDIA). Some drivers compile no earlier than
//! in the first dispatch, which is why that is timed, too.

use phasor::attention::{Attention, ContextualPe, Fused, Projection, Rotation};
use phasor::frequencies::Plain;
use phasor::{ElementType, Gpu, Pairing, Prepared, Result, Rope, Rotate};
use std::time::{Duration, Instant};

/// How to prepare one operation.
type Prepare = Box<dyn Fn(&Gpu) -> Result<Prepared> + Sync>;

/// Operations of a layer, for a prompt and for a token, each with a pipeline of its own or several.
fn operations() -> Vec<Prepare> {
    let mut all: Vec<Prepare> = Vec::new();
    for tokens in [64, 1] {
        for pairing in [Pairing::HalfSplit, Pairing::Interleaved] {
            all.push(Box::new(move |gpu| {
                let rope = Rope::new(gpu, &Plain::new(1e4).frequencies(64)?, pairing)?;
                let q = gpu.zeros(ElementType::F32, [1, tokens, 8, 64])?;
                rope.prepare(&Rotate::in_place(&q))
            }));
            all.push(Box::new(move |gpu| attention(gpu, tokens, Some(pairing), false)));
        }
        all.push(Box::new(move |gpu| attention(gpu, tokens, None, false)));
        all.push(Box::new(move |gpu| attention(gpu, tokens, None, true)));
        all.push(Box::new(move |gpu| {
            let tensor = |tokens, channels| gpu.zeros(ElementType::F32, [1, tokens, 1, channels]);
            Projection::new(&tensor(tokens, 64)?, &tensor(128, 64)?, &tensor(tokens, 128)?).prepare(gpu)
        }));
    }
    all
}

fn attention(gpu: &Gpu, tokens: usize, pairing: Option<Pairing>, cope: bool) -> Result<Prepared> {
    let tensor = |tokens| gpu.zeros(ElementType::F32, [1, tokens, 8, 64]);
    let (q, k, v, out) = (tensor(tokens)?, tensor(64)?, tensor(64)?, tensor(tokens)?);
    let mut request = Attention::new(&q, &k, &v).causal();
    if let Some(pairing) = pairing {
        request = request.rotate(Rotation::new(&Plain::new(1e4).frequencies(64)?, pairing));
    }
    if cope {
        request = request.cope(ContextualPe::new(&gpu.zeros(ElementType::F32, [1, 64, 1, 64])?));
    }
    Fused::new(&request, &out).prepare(gpu)
}

/// Prepares all of them on so many threads, and then dispatches each once.
fn prepare(threads: usize) -> (Duration, Duration) {
    let (gpu, operations) = (Gpu::request_blocking().expect("a device"), operations());
    let begin = Instant::now();
    let prepared: Vec<Prepared> = std::thread::scope(|scope| {
        let share = |first: usize| {
            let (gpu, mine) = (&gpu, operations.iter().skip(first).step_by(threads));
            move || mine.map(|prepare| prepare(gpu).expect("what goes together")).collect::<Vec<_>>()
        };
        let workers: Vec<_> = (0..threads).map(|first| scope.spawn(share(first))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no thread gives up")).collect()
    });
    let took = begin.elapsed();
    let begin = Instant::now();
    gpu.submit(|pass| prepared.iter().for_each(|one| one.record(pass))).expect("a submission");
    gpu.wait().expect("the device answers");
    (took, begin.elapsed())
}

fn main() {
    // Cargo says `--bench` to time, and nothing to see that it works.
    let rounds = if std::env::args().any(|argument| argument == "--bench") { 5 } else { 1 };
    let threads = [1, std::thread::available_parallelism().map_or(1, usize::from)];
    let mut least = [(Duration::MAX, Duration::MAX); 2];
    for _ in 0..rounds {
        for (threads, least) in threads.into_iter().zip(&mut least) {
            let (prepared, dispatched) = prepare(threads);
            *least = (least.0.min(prepared), least.1.min(dispatched));
        }
    }
    for (threads, (prepared, dispatched)) in threads.into_iter().zip(least) {
        let n = operations().len();
        println!("{n} operations on {threads} thread(s): prepared in {prepared:?}, first dispatches {dispatched:?}");
    }
}
