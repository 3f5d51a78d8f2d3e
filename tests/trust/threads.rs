//! One context, many threads.

use crate::common::{gpu, gpu_with};
use crate::operations::{self, Operation};
use phasor::attention::{
    Attention, ContextualPe, Fused, Linear, Merge, Module, Projection, Rotation, SelfAttention, SelfAttentionWeights,
    Unfused,
};
use phasor::frequencies::{Axes, Frequencies};
use phasor::gpu::Shader;
use phasor::reference::Tensor;
use phasor::{ContextualBias, Error, Gpu, Layout, Positions, Prepared, Result, Rope, RopeTable, Rotary, Rotate, View};
use std::sync::Barrier;

/// Whatever is handed out may go to another thread, and be used by several.
#[allow(dead_code)]
const fn all_are_send_and_sync() {
    const fn is<T: Send + Sync + 'static>() {}
    is::<Gpu>();
    is::<View>();
    is::<Prepared>();
    is::<Shader>();
    is::<Error>();
    is::<Layout>();
    is::<Rotary>();
    is::<Frequencies>();
    is::<Axes>();
    is::<Rope>();
    is::<RopeTable>();
    is::<Rotate>();
    is::<Positions>();
    is::<ContextualBias>();
    is::<Attention<View>>();
    is::<Attention<Tensor<'static>>>();
    is::<ContextualPe<View>>();
    is::<Rotation>();
    is::<Fused>();
    is::<Unfused>();
    is::<Merge>();
    is::<Projection>();
    is::<Linear<View>>();
    is::<SelfAttentionWeights<View>>();
    is::<SelfAttention<View>>();
    is::<Module>();
}

const THREADS: usize = 8;
const ROUNDS: usize = 4;

/// Each thread prepares, records and reads back every operation, each in an order of its own, on a device that has built
/// no pipeline: some thread is the first at each, and others wait for it or build another one.
#[test]
fn a_context_under_load_gives_what_it_gives_alone() -> Result<()> {
    let shared = gpu_with(|_| {});
    let operations = operations::all(&shared);
    let start = Barrier::new(THREADS);
    let together = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (operations, shared, start) = (&operations, &shared, &start);
                scope.spawn(move || {
                    start.wait();
                    let order = (0..ROUNDS * operations.len()).map(|i| {
                        // From elsewhere, half of them backwards.
                        let at = (i + 3 * thread) % operations.len();
                        if thread % 2 == 0 { at } else { operations.len() - 1 - at }
                    });
                    order.map(|at| Ok((at, operations[at].run(shared)?))).collect::<Result<Vec<_>>>()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Result<Vec<_>>>()
    })?;
    let alone: Vec<_> = operations.iter().map(|operation| operation.run(&shared)).collect::<Result<_>>()?;
    for (at, results) in together.into_iter().flatten() {
        assert_eq!(results, alone[at], "{}", operations[at].name);
    }
    Ok(())
}

/// What one thread has prepared is recorded by all of them, each into encoders of its own, and submitted through the one
/// queue. Each recording of an operation gives the same, so that it does not matter whose was the last.
#[test]
fn one_preparation_serves_all_threads() -> Result<()> {
    let gpu = gpu();
    // What works in place gives something else each time.
    let repeatable = |operation: &Operation| !["rotation", "merge"].contains(&operation.name.as_str());
    for operation in operations::all(gpu).into_iter().filter(repeatable) {
        let expected = operation.run(gpu)?;
        let views = operation.upload(gpu)?;
        let recording = operation.prepare(gpu, &views)?;
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        gpu.submit(|pass| recording.record(pass)).unwrap();
                        gpu.wait().unwrap();
                    }
                });
            }
        });
        assert_eq!(operation.results(gpu, &views)?, expected, "{}", operation.name);
    }
    Ok(())
}
