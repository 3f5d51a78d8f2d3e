//! The operations of `phasor bench`, timed by criterion: copy, rotation with and without a table, and the table.
//!
//! Criterion measures one operation after the other. For ratios on a machine that does other things too, `phasor bench`
//! interleaves them.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use phasor::Gpu;
use phasor_measure::Sizes;
use phasor_measure::bench::operations;
use std::time::{Duration, Instant};

/// Dispatches in one submission: enough to hide what a submission costs, few enough for a driver's watchdog.
const AT_ONCE: u64 = 16;

fn rotation(criterion: &mut Criterion) {
    let gpu = Gpu::request_blocking().expect("an adapter");
    let sizes = if gpu.is_software() { Sizes { tokens: 256, ..Sizes::default() } } else { Sizes::default() };
    let mut group = criterion.benchmark_group(format!("{} tokens on {}", sizes.tokens, gpu.info().name));
    group.sample_size(20).measurement_time(Duration::from_secs(3));
    for operation in operations(&gpu, &sizes).expect("sizes that the device holds") {
        group.throughput(Throughput::Bytes(operation.bytes));
        group.bench_function(operation.name, |bencher| {
            bencher.iter_custom(|iterations| {
                let begin = Instant::now();
                let mut left = iterations;
                while left > 0 {
                    let now = left.min(AT_ONCE);
                    gpu.submit(|pass| (0..now).for_each(|_| operation.record(pass))).expect("a submission");
                    left -= now;
                }
                gpu.wait().expect("the device answers");
                begin.elapsed()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, rotation);
criterion_main!(benches);
