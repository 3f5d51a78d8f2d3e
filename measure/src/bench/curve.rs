//! What each operation costs as sequences grow, and the powers of their length that time and memory grow by.

use super::attention::Tensors;
use super::clock::Clock;
use super::{
    AttentionSizes, MAKING, Operation, Timing, evaluate, expect_buffers, expect_even_heads, expect_sizes, noise,
    rounds, setting,
};
use crate::{Device, Progress, Step};
use phasor::frequencies::Plain;
use phasor::{ErrorKind, Gpu, Pairing, Result, Rope, Rotate};
use serde::Serialize;
use web_time::Duration;

/// Heads, the lengths to go through, and how long that may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CurveSizes {
    /// The shortest sequence; the next ones are twice as long each.
    pub from: u32,
    /// The longest.
    pub to: u32,
    /// Query heads.
    pub heads: u32,
    /// Key heads, a divisor of `heads`.
    pub kv_heads: u32,
    /// Channels of a head, an even number.
    pub head_dim: u32,
    /// Contextual positions.
    pub positions: u32,
    /// How often each operation is timed at each length.
    pub rounds: u32,
    /// Seconds: no length begins whose operations would take longer than this, once each, as far as shorter ones tell.
    pub budget: u32,
}

impl Default for CurveSizes {
    /// The sizes of [`AttentionSizes::prompt`], of 128 to 65,536 tokens.
    fn default() -> Self {
        let AttentionSizes { heads, kv_heads, head_dim, positions, .. } = AttentionSizes::prompt(1);
        Self { from: 128, to: 65_536, heads, kv_heads, head_dim, positions, rounds: 5, budget: 10 }
    }
}

impl CurveSizes {
    fn attention(&self, tokens: u32, keys: u32) -> AttentionSizes {
        let Self { heads, kv_heads, head_dim, positions, rounds, .. } = *self;
        AttentionSizes { tokens, keys, heads, kv_heads, head_dim, positions, rounds, unfused: false }
    }

    fn check(&self) -> Result<()> {
        let Self { from, to, head_dim, rounds, budget, .. } = *self;
        expect_sizes([("from", from), ("to", to), ("rounds", rounds), ("budget", budget)], 1 << 20)?;
        expect_even_heads(head_dim)?;
        if from > to { setting("from", from, format!("at most to, {to}")) } else { Ok(()) }
    }

    /// Shorter lengths, which double up to the shortest one asked for: what they take says whether that is within the
    /// budget.
    fn trials(&self) -> impl Iterator<Item = u32> {
        /// What no device takes long for.
        const SHORT: u32 = 128;
        let halved = std::iter::successors(Some(self.from), |&n| (n > SHORT).then_some(n / 2));
        halved.skip(1).collect::<Vec<_>>().into_iter().rev()
    }

    /// From the shortest on, each twice the one before.
    fn lengths(&self) -> impl Iterator<Item = u32> {
        let to = self.to;
        std::iter::successors(Some(self.from), |n| n.checked_mul(2)).take_while(move |&n| n <= to)
    }
}

/// All curves of one device.
#[derive(Debug, Clone, Serialize)]
pub struct Curves {
    /// The device.
    pub device: Device,
    /// What was asked for.
    pub sizes: CurveSizes,
    /// As of a [`Measurement`](super::Measurement).
    pub clock: &'static str,
    /// Each operation.
    pub curves: Vec<Curve>,
}

/// One operation over lengths.
#[derive(Debug, Clone, Serialize)]
pub struct Curve {
    /// `rotation`, `attention` or `decode`; of the latter the cache grows.
    pub subject: &'static str,
    /// The operation, as a measurement names it.
    pub name: &'static str,
    /// From short to long.
    pub points: Vec<Point>,
    /// The power that time grows by, where there are lengths enough.
    pub time_exponent: Option<Exponent>,
    /// The power that memory grows by.
    pub memory_exponent: Option<Exponent>,
    /// Why there is no longer one; `None` if all are there.
    pub stopped: Option<Stop>,
}

/// An operation at one length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Tokens of a sequence, or keys in a cache.
    pub tokens: u32,
    /// The shortest time by the curves' clock, in seconds.
    pub seconds: f64,
    /// Bytes of tensors and scratch memory.
    pub memory: u64,
    /// Dispatches: more than the shortest sequence takes where a limit of the device has split the work.
    pub dispatches: usize,
}

/// The slope of a straight line through logarithms, by least squares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Exponent {
    /// The power of the length.
    pub value: f64,
    /// The shortest length that it is fitted to: an eighth of the longest.
    pub from: u32,
    /// The longest.
    pub to: u32,
}

/// Where a curve ends before it was to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stop {
    /// The length that was not measured.
    pub tokens: u32,
    /// Why not.
    pub reason: String,
}

/// How the operations of one subject are made for a length.
type Make = fn(&Gpu, &CurveSizes, u32) -> Result<Vec<Operation>>;

const SUBJECTS: [(&str, Make); 3] = [("rotation", rotation), ("attention", attention), ("decode", decode)];

fn rotation(gpu: &Gpu, sizes: &CurveSizes, tokens: u32) -> Result<Vec<Operation>> {
    let CurveSizes { heads, kv_heads, head_dim, .. } = *sizes;
    expect_buffers(gpu, [[tokens, heads, head_dim], [tokens, kv_heads, head_dim]])?;
    let tensor = |heads: u32| noise(gpu, [1, tokens as usize, heads as usize, head_dim as usize]);
    let (q, k) = (tensor(heads)?, tensor(kv_heads)?);
    let rope = Rope::new(gpu, &Plain::new(10_000.0).frequencies(head_dim)?, Pairing::HalfSplit)?;
    let prepared = rope.prepare(&Rotate::in_place(&q).and_in_place(&k))?;
    let tensors = 4 * (q.layout().elements() + k.layout().elements()) as u64;
    let operation = Operation::prepared("rotation, half-split, no table", 2 * tensors, prepared);
    Ok(vec![Operation { memory: Some(tensors), ..operation }])
}

fn attention(gpu: &Gpu, sizes: &CurveSizes, tokens: u32) -> Result<Vec<Operation>> {
    both(gpu, &sizes.attention(tokens, tokens))
}

fn decode(gpu: &Gpu, sizes: &CurveSizes, keys: u32) -> Result<Vec<Operation>> {
    both(gpu, &sizes.attention(1, keys))
}

/// Without contextual encoding and with it.
fn both(gpu: &Gpu, sizes: &AttentionSizes) -> Result<Vec<Operation>> {
    Ok(Tensors::new(gpu, sizes)?.fused_as_chosen()?.into())
}

/// Times rotation, attention and decode steps over sequences that double, each as far as the device and the budget go.
///
/// # Errors
/// [`Setting`](phasor::ErrorKind::Setting) for impossible sizes, and what goes wrong on the device. What the device has no
/// room for ends a curve that has begun and is no error.
pub async fn curves(gpu: &Gpu, sizes: CurveSizes, progress: Progress<'_>) -> Result<Curves> {
    sizes.check()?;
    let (mut curves, mut clock) = (Vec::new(), "wall");
    for (subject, make) in SUBJECTS {
        let lines = lines(gpu, &sizes, make, progress).await?;
        clock = lines.clock;
        curves.extend(lines.curves(subject));
    }
    Ok(Curves { device: Device::from(gpu.info()), sizes, clock, curves })
}

/// What is known of a subject's operations so far.
struct Lines {
    clock: &'static str,
    /// Of shorter lengths than those asked for, too.
    lengths: Vec<(u32, Vec<Timing>)>,
    /// The shortest length asked for.
    from: u32,
    stopped: Option<Stop>,
}

async fn lines(gpu: &Gpu, sizes: &CurveSizes, make: Make, progress: Progress<'_>) -> Result<Lines> {
    let budget = Duration::from_secs(sizes.budget.into());
    let mut lines = Lines { clock: "wall", lengths: Vec::new(), from: sizes.from, stopped: None };
    let trials = sizes.trials().map(|tokens| (tokens, 1));
    let lengths: Vec<_> = trials.chain(sizes.lengths().map(|tokens| (tokens, sizes.rounds))).collect();
    let total = lengths.len() as u64;
    for (done, (tokens, most)) in (0..).zip(lengths) {
        let tell = &mut |step: Step<'_>| {
            progress(Step { done, total, name: &format!("{tokens} tokens, {}", step.name) });
        };
        if let Some(seconds) = lines.expected(tokens).filter(|&seconds| seconds > budget.as_secs_f64()) {
            // Rounded up: no less than a tenth above the budget.
            let seconds = (10.0 * seconds).ceil() / 10.0;
            let of = if tokens < sizes.from { format!("of {tokens} ") } else { String::new() };
            let reason = format!("once through {of}would take about {seconds:.1} s, more than {} s", budget.as_secs());
            lines.stopped = Some(Stop { tokens: tokens.max(sizes.from), reason });
            break;
        }
        tell(MAKING);
        let operations = match make(gpu, sizes, tokens) {
            Err(error) if lines.has_begun() && matches!(error.kind(), ErrorKind::Limit | ErrorKind::OutOfMemory) => {
                lines.stopped = Some(Stop { tokens, reason: error.to_string() });
                break;
            }
            operations => operations?,
        };
        let laps = rounds(&Clock::new(gpu), &operations, most, Some(budget), tell).await?;
        let (clock, timings) = evaluate(gpu, &operations, &laps);
        lines.clock = clock;
        lines.lengths.push((tokens, timings));
    }
    Ok(lines)
}

impl Lines {
    /// How long all operations would take once at a length, as they have grown by now: as their lengths at the least.
    fn expected(&self, tokens: u32) -> Option<f64> {
        let walls = |timings: &[Timing]| timings.iter().map(|timing| timing.wall.minimum).sum::<f64>();
        let (last, timings) = self.lengths.last()?;
        let before = self.lengths.iter().rev().nth(1).map(|(_, timings)| walls(timings));
        let longer = f64::from(tokens) / f64::from(*last);
        let grown = before.map_or(longer, |before| walls(timings) / before);
        Some(walls(timings) * grown.max(longer))
    }

    /// Whether a length that was asked for is done.
    fn has_begun(&self) -> bool {
        self.lengths.last().is_some_and(|(tokens, _)| *tokens >= self.from)
    }

    fn curves(self, subject: &'static str) -> impl Iterator<Item = Curve> {
        let names: Vec<_> =
            self.lengths.first().map_or(&[][..], |(_, timings)| timings).iter().map(|t| t.name).collect();
        names.into_iter().map(move |name| {
            let asked = self.lengths.iter().filter(|(tokens, _)| *tokens >= self.from);
            let points: Vec<_> = asked.filter_map(|(tokens, timings)| point(*tokens, name, timings)).collect();
            Curve {
                subject,
                name,
                time_exponent: Exponent::fit(points.iter().map(|point| (point.tokens, point.seconds))),
                memory_exponent: Exponent::fit(points.iter().map(|point| (point.tokens, point.memory as f64))),
                points,
                stopped: self.stopped.clone(),
            }
        })
    }
}

fn point(tokens: u32, name: &str, timings: &[Timing]) -> Option<Point> {
    let timing = timings.iter().find(|timing| timing.name == name)?;
    Some(Point {
        tokens,
        seconds: timing.time.minimum,
        memory: timing.memory.unwrap_or(timing.bytes),
        dispatches: timing.dispatches.unwrap_or(1),
    })
}

impl Exponent {
    /// Through the lengths from an eighth of the longest on, which are four where they double: what is the same for every
    /// length has less weight there. `None` for fewer than three.
    fn fit(points: impl Iterator<Item = (u32, f64)>) -> Option<Self> {
        let all: Vec<_> = points.collect();
        let to = all.last()?.0;
        let upper: Vec<_> = all.into_iter().filter(|&(tokens, _)| tokens >= to / 8).collect();
        if upper.len() < 3 {
            return None;
        }
        let logarithms = || upper.iter().map(|&(tokens, cost)| (f64::from(tokens).ln(), cost.ln()));
        let n = upper.len() as f64;
        let (sum_x, sum_y) = logarithms().fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
        let (x0, y0) = (sum_x / n, sum_y / n);
        let (xy, xx) = logarithms().fold((0.0, 0.0), |(a, b), (x, y)| (a + (x - x0) * (y - y0), b + (x - x0).powi(2)));
        Some(Self { value: xy / xx, from: upper.first()?.0, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exponent_is_that_of_the_upper_part() {
        let doubling = || (0..8).map(|i| 128u32 << i);
        // A power of 1.5, above a floor that hides it where sequences are short.
        let cost = |n: u32| if n < 2048 { 7.0 } else { 3e-9 * f64::from(n).powf(1.5) };
        let fitted = Exponent::fit(doubling().map(|n| (n, cost(n)))).unwrap();
        assert!((fitted.value - 1.5).abs() < 1e-12, "{fitted:?}");
        assert_eq!((fitted.from, fitted.to), (2048, 16_384));
        assert_eq!(Exponent::fit([(1, 1.0), (2, 2.0)].into_iter()), None);
    }

    /// Devices whose bindings hold neither the queries nor a head's keys, or that start few groups at once.
    #[test]
    fn where_a_limit_cuts_in_work_is_split_and_the_curve_goes_on() -> Result<()> {
        let adapter = pollster::block_on(phasor::gpu::best_adapter())?;
        let device = |change: fn(&mut wgpu::Limits)| {
            let mut required_limits = adapter.limits();
            change(&mut required_limits);
            let descriptor = wgpu::DeviceDescriptor {
                required_features: adapter.features() & phasor::gpu::useful_features(),
                required_limits,
                ..wgpu::DeviceDescriptor::default()
            };
            let (device, queue) =
                pollster::block_on(adapter.request_device(&descriptor)).expect("the adapter takes less");
            Gpu::adopt(&device, &queue)
        };
        let sizes = CurveSizes {
            from: 32,
            to: 512,
            heads: 4,
            kv_heads: 1,
            head_dim: 32,
            rounds: 1,
            budget: 1000,
            ..CurveSizes::default()
        };
        let curves = |gpu: &Gpu| pollster::block_on(curves(gpu, sizes, &mut |_| {}));
        let dispatches = |curves: &Curves| -> Vec<Vec<usize>> {
            curves.curves.iter().map(|curve| curve.points.iter().map(|point| point.dispatches).collect()).collect()
        };
        let roomy = dispatches(&curves(&device(|_| {}))?);
        // 512 keys of 32 channels are 64 KiB, and as many queries of 4 heads 256 KiB.
        let cut: [fn(&mut wgpu::Limits); 2] = [
            |limits| limits.max_storage_buffer_binding_size = 32 << 10,
            |limits| limits.max_compute_workgroups_per_dimension = 2,
        ];
        for cut in cut {
            let got = curves(&device(cut))?;
            assert!(got.curves.iter().all(|curve| curve.stopped.is_none() && curve.points.len() == 5), "{got:?}");
            for (curve, (split, whole)) in got.curves.iter().zip(dispatches(&got).into_iter().zip(&roomy)) {
                // A decode step starts few groups, however long its cache.
                let may_be_whole = curve.subject == "decode";
                assert!(may_be_whole || split.last() > whole.last(), "{}: {split:?} of {whole:?}", curve.name);
            }
        }
        // What no buffer holds ends a curve with the limit's name and number.
        let got = curves(&device(|limits| limits.max_buffer_size = 64 << 10))?;
        for curve in &got.curves[..3] {
            let stop = curve.stopped.as_ref().expect("queries of 128 KiB do not fit");
            assert_eq!(stop.tokens, 32 << curve.points.len(), "{curve:?}");
            assert!(stop.reason.contains("max_buffer_size") && stop.reason.contains("65536"), "{curve:?}");
        }
        // A curve that cannot begin is not left out without a word.
        let refused = curves(&device(|limits| limits.max_buffer_size = 8 << 10));
        assert!(
            matches!(&refused, Err(error) if error.kind() == ErrorKind::Limit && error.argument() == "max_buffer_size"),
            "{refused:?}"
        );
        Ok(())
    }

    #[test]
    fn lengths_double_up_to_the_longest() {
        let lengths = |from, to| CurveSizes { from, to, ..CurveSizes::default() }.lengths().collect::<Vec<_>>();
        assert_eq!(lengths(128, 1024), [128, 256, 512, 1024]);
        assert_eq!(lengths(100, 399), [100, 200]);
        assert_eq!(CurveSizes::default().lengths().last(), Some(65_536));
        let trials = |from| CurveSizes { from, ..CurveSizes::default() }.trials().collect::<Vec<_>>();
        assert_eq!(trials(8192), [128, 256, 512, 1024, 2048, 4096]);
        assert_eq!(trials(300), [75, 150]);
        assert_eq!(trials(128), [0; 0]);
    }
}
