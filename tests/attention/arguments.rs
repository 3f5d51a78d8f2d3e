//! Attention, its parts and linear layers on arguments drawn at random.

use crate::common::Recording;
use crate::drawn::{Access, Argument, Expected, Host, Named, Near, Numbers, Operation, draw_floats, try_all};
use crate::projection::schedules;
use crate::request::{TOLERANCE, gate_error};
use phasor::attention::{
    Attention, ContextualPe, Fused, Gates, Merge, Projection, ProjectionSchedule, Rotation, Schedule, Standing, Unfused,
};
use phasor::frequencies::Plain;
use phasor::reference::{Attended, attention, attention_merge, cope, projection};
use phasor::{ContextualBias, ElementType, Gpu, Pairing, Result, View};
use proptest::prelude::*;

/// The relative error of one f32 operation.
const U: f64 = 1.0 / (1u32 << 24) as f64;

/// What position embeddings are up to.
const EMBEDDINGS: f32 = 0.3;

fn argument(name: &'static str, shape: [usize; 4], element: ElementType, numbers: Numbers) -> Argument {
    Argument { name, shape, element, access: Access::Reads, numbers }
}

fn floats(name: &'static str, shape: [usize; 4], element: ElementType) -> Argument {
    argument(name, shape, element, Numbers::Floats(1.0))
}

fn written(name: &'static str, shape: [usize; 4], element: ElementType) -> Argument {
    Argument { access: Access::Writes, ..floats(name, shape, element) }
}

/// How far the product of a query and position embeddings may be off where the position is: neighbours of up to
/// `2 * 2 * EMBEDDINGS` for each channel differ by no more than twice that.
fn contextual_error(channels: usize, keys: usize) -> f64 {
    channels as f64 * 2.0 * 2.0 * 2.0 * f64::from(EMBEDDINGS) * gate_error(keys)
}

fn each(values: Vec<f64>, tolerance: f64, element: ElementType) -> Expected {
    Expected::Each(values.into_iter().map(|value| Some(Near(value, tolerance).stored(element))).collect())
}

/// How attention is computed.
#[derive(Debug, Clone, Copy)]
enum Way {
    Unfused,
    Fused(Option<Schedule>),
}

/// An attention, but for its tensors.
#[derive(Debug, Clone)]
struct Attend {
    batch: usize,
    tokens: usize,
    keys: usize,
    kv_heads: usize,
    group: usize,
    channels: usize,
    value_channels: usize,
    way: Way,
    element: ElementType,
    lse: bool,
    mask: Masks,
    rotation: Option<Rotation>,
    cope: Option<Contextual>,
}

#[derive(Debug, Clone)]
struct Masks {
    causal: bool,
    window: Option<usize>,
    standing: Standing,
    scale: Option<f64>,
    /// Along which of batch, tokens and heads it differs.
    keep: Option<[bool; 3]>,
    bias: Option<[bool; 3]>,
    /// Lengths, or first keys too.
    ranges: Option<usize>,
}

#[derive(Debug, Clone)]
struct Contextual {
    positions: usize,
    per_head: bool,
    query: bool,
    gates: Gated,
    gates_see_bias: bool,
    sum: bool,
    sum_out: bool,
    scale: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gated {
    Logits,
    Keys,
    Values,
}

impl Attend {
    fn heads(&self) -> usize {
        self.kv_heads * self.group
    }

    fn broadcast(&self, differs: [bool; 3]) -> [usize; 4] {
        let [b, t, h] = [self.batch, self.tokens, self.heads()];
        let extent = |differs, all| if differs { all } else { 1 };
        [extent(differs[0], b), extent(differs[1], t), extent(differs[2], h), self.keys]
    }

    fn request<T: Clone>(&self, of: impl Fn(&'static str) -> T) -> Attention<T> {
        let Masks { causal, window, standing, scale, keep, bias, ranges } = &self.mask;
        let mut request = Attention::new(&of("q"), &of("k"), &of("v")).standing(*standing);
        if *causal {
            request = request.causal();
        }
        request = window.iter().fold(request, |request, &keys| request.window(keys));
        request = scale.iter().fold(request, |request, &scale| request.scale(scale));
        request = keep.iter().fold(request, |request, _| request.keep(&of("keep")));
        request = bias.iter().fold(request, |request, _| request.bias(&of("bias")));
        request = ranges.iter().fold(request, |request, _| request.key_ranges(&of("key_ranges")));
        request = self.rotation.iter().fold(request, |request, rotation| request.rotate(rotation.clone()));
        let Some(cope) = &self.cope else { return request };
        let mut contextual =
            ContextualPe::new(&of("embeddings")).bias_scale(cope.scale).gates_see_bias(cope.gates_see_bias);
        if cope.query {
            contextual = contextual.query(&of("cope.query"));
        }
        if cope.sum {
            contextual = contextual.gate_sum(&of("cope.gate_sum"));
        }
        request.cope(contextual.gates(match cope.gates {
            Gated::Logits => Gates::Logits,
            Gated::Keys => Gates::Keys(of("cope.gates")),
            Gated::Values => Gates::Values,
        }))
    }

    /// As the tests of attention and of rotated attention derive it.
    fn tolerance(&self, channels: usize, keys: usize) -> f64 {
        let turning =
            if self.rotation.is_some() { 4.0 * 2.0 * 3e-7 * 8.0 * (channels as f64).sqrt() / 2.0 } else { 0.0 };
        let contextual = if self.cope.is_some() { 4.0 * contextual_error(channels, keys) } else { 0.0 };
        TOLERANCE + turning + contextual
    }
}

impl Operation for Attend {
    fn arguments(&self) -> Vec<Argument> {
        let (element, heads) = (self.element, self.heads());
        let rows = |channels| [self.batch, self.tokens, heads, channels];
        let keys = |channels| [self.batch, self.keys, self.kv_heads, channels];
        let mut all = vec![
            floats("q", rows(self.channels), element),
            floats("k", keys(self.channels), element),
            floats("v", keys(self.value_channels), element),
        ];
        let mask = &self.mask;
        all.extend(mask.keep.map(|of| argument("keep", self.broadcast(of), ElementType::I32, Numbers::Whole(0, 3))));
        all.extend(mask.bias.map(|of| argument("bias", self.broadcast(of), element, Numbers::Bias)));
        all.extend(mask.ranges.map(|n| {
            let ends = Numbers::Whole(-2, self.keys as i32 + 3);
            argument("key_ranges", [self.batch, 1, 1, n], ElementType::I32, ends)
        }));
        if let Some(cope) = &self.cope {
            let shape = [1, self.channels, if cope.per_head { heads } else { 1 }, cope.positions];
            all.push(argument("embeddings", shape, element, Numbers::Floats(EMBEDDINGS)));
            if cope.query {
                all.push(floats("cope.query", rows(self.channels), element));
            }
            if cope.gates == Gated::Keys {
                all.push(floats("cope.gates", keys(self.channels), element));
            }
            if cope.sum {
                all.push(argument("cope.gate_sum", rows(2), ElementType::F32, Numbers::GateSums));
            }
        }
        all.push(written("output", rows(self.value_channels), element));
        if self.lse {
            all.push(written("lse", rows(1), ElementType::F32));
        }
        if self.cope.as_ref().is_some_and(|cope| cope.sum_out) {
            all.push(written("gate_sum", rows(2), ElementType::F32));
        }
        all
    }

    fn prepare(&self, gpu: &Gpu, views: &Named<'_, View>) -> Result<Recording> {
        let request = self.request(|name| views.get(name).clone());
        let output = views.get("output");
        let sum_out = self.cope.as_ref().is_some_and(|cope| cope.sum_out);
        Ok(match self.way {
            Way::Unfused => {
                let mut unfused = Unfused::new(&request, output);
                if self.lse {
                    unfused = unfused.lse(views.get("lse"));
                }
                if sum_out {
                    unfused = unfused.gate_sum(views.get("gate_sum"));
                }
                unfused.prepare(gpu)?
            }
            Way::Fused(schedule) => {
                let mut fused = schedule.into_iter().fold(Fused::new(&request, output), Fused::schedule);
                if self.lse {
                    fused = fused.lse(views.get("lse"));
                }
                if sum_out {
                    fused = fused.gate_sum(views.get("gate_sum"));
                }
                fused.prepare(gpu)?
            }
        }
        .into())
    }

    fn reference(&self, tensors: &Named<'_, Host>) -> Result<Option<Vec<Expected>>> {
        let request = self.request(|name| tensors.get(name).tensor().expect("as long as its buffer"));
        let Attended { out, lse, gate_sum } = attention(&request)?;
        let [.., channels] = tensors.get("q").layout.shape();
        let [_, keys, ..] = tensors.get("k").layout.shape();
        let tolerance = self.tolerance(channels, keys);
        let mut expected = vec![each(out, tolerance, tensors.get("output").element)];
        if self.lse {
            expected.push(each(lse, tolerance, ElementType::F32));
        }
        if self.cope.as_ref().is_some_and(|cope| cope.sum_out) {
            // A sum that is handed in is up to 3.
            let near = |pair: &[f64]| Near(pair.iter().sum(), gate_error(keys + 4));
            expected.push(Expected::Sums(gate_sum.chunks(2).map(near).collect()));
        }
        Ok(Some(expected))
    }
}

fn masks() -> impl Strategy<Value = Masks> {
    let standing =
        prop_oneof![2 => Just(Standing::Last), 2 => Just(Standing::RowLast), 1 => (-9i64..90).prop_map(Standing::From)];
    let window = prop::option::weighted(0.3, prop_oneof![6 => 0usize..40, 1 => Just(usize::MAX)]);
    let scale = prop::sample::select(vec![None, None, Some(0.3), Some(-0.3), Some(0.0)]);
    let differs = || prop::option::weighted(0.3, any::<[bool; 3]>());
    let ranges = prop::option::weighted(0.4, 1usize..3);
    (any::<bool>(), window, standing, scale, differs(), differs(), ranges).prop_map(
        |(causal, window, standing, scale, keep, bias, ranges)| Masks {
            causal,
            window,
            standing,
            scale,
            keep,
            bias,
            ranges,
        },
    )
}

fn contextual() -> impl Strategy<Value = Contextual> {
    let gates = prop::sample::select(vec![Gated::Logits, Gated::Logits, Gated::Keys, Gated::Values]);
    let scale = prop::sample::select(vec![1.0, 0.35]);
    let flags = any::<[bool; 4]>();
    (1usize..40, any::<bool>(), gates, flags, scale).prop_map(
        |(positions, per_head, gates, [query, gates_see_bias, sum, sum_out], scale)| Contextual {
            positions,
            per_head,
            query,
            gates,
            gates_see_bias,
            sum,
            sum_out,
            scale,
        },
    )
}

fn rotation(channels: usize) -> impl Strategy<Value = Rotation> {
    let pairing = prop::sample::select(vec![Pairing::Interleaved, Pairing::HalfSplit]);
    let index = any::<prop::sample::Index>;
    (pairing, index(), index(), -100i32..1000).prop_map(move |(pairing, pairs, first, first_key)| {
        let dim = 2 * (1 + pairs.index(channels / 2));
        let frequencies = Plain { base: 100.0 }.frequencies(dim as u32).expect("an even number of channels");
        Rotation::new(&frequencies, pairing).from_channel(first.index(channels - dim + 1)).first_key(first_key)
    })
}

fn attends() -> impl Strategy<Value = Attend> {
    let ways = [Some(Schedule::Rows), Some(Schedule::Tiles), Some(Schedule::Split), None].map(Way::Fused);
    let way = prop_oneof![1 => Just(Way::Unfused), 4 => prop::sample::select(ways.to_vec())];
    let channels = prop::sample::select(vec![8usize, 8, 5, 4]);
    let (tokens, keys) = (prop_oneof![Just(1), 1usize..9], prop_oneof![7 => 0usize..70, 1 => 70usize..1500]);
    let sizes = (1usize..3, tokens, keys, 1usize..3, 1usize..4);
    (sizes, channels, way, draw_floats(), any::<bool>(), masks()).prop_flat_map(
        |((batch, tokens, keys, kv_heads, group), channels, way, element, lse, mask)| {
            let values = prop::sample::select(vec![channels, channels, channels + 4]);
            let rotation = prop::option::weighted(0.25, rotation(channels));
            (values, rotation, prop::option::of(contextual())).prop_map(move |(value_channels, rotation, cope)| {
                let mut mask = mask.clone();
                if rotation.is_some() && mask.ranges.is_some() && mask.standing == Standing::Last {
                    mask.standing = Standing::RowLast;
                }
                let by_values = cope.as_ref().is_some_and(|cope| cope.gates == Gated::Values);
                let value_channels = if by_values { channels } else { value_channels };
                Attend {
                    batch,
                    tokens,
                    keys,
                    kv_heads,
                    group,
                    channels,
                    value_channels,
                    way,
                    element,
                    lse,
                    mask,
                    rotation,
                    cope,
                }
            })
        },
    )
}

#[test]
fn any_attention() {
    try_all("tests/regressions/attention.txt", 12, attends());
}

/// The bias of contextual encoding, in place of the logits or not.
#[derive(Debug, Clone)]
struct Bias {
    rows: [usize; 3],
    channels: usize,
    keys: usize,
    positions: usize,
    per_head: bool,
    in_place: bool,
    element: ElementType,
    scale: f64,
}

impl Operation for Bias {
    fn arguments(&self) -> Vec<Argument> {
        let [b, t, h] = self.rows;
        let heads = if self.per_head { h } else { 1 };
        let logits = argument("logits", [b, t, h, self.keys], self.element, Numbers::Bias);
        let access = if self.in_place { Access::Updates } else { Access::Reads };
        let mut all = vec![
            floats("query", [b, t, h, self.channels], self.element),
            argument(
                "embeddings",
                [1, self.channels, heads, self.positions],
                self.element,
                Numbers::Floats(EMBEDDINGS),
            ),
            Argument { access, ..logits.clone() },
        ];
        if !self.in_place {
            all.push(written("output", logits.shape, self.element));
        }
        all
    }

    fn prepare(&self, gpu: &Gpu, views: &Named<'_, View>) -> Result<Recording> {
        let output = views.get(if self.in_place { "logits" } else { "output" });
        let bias = ContextualBias::new(views.get("query"), views.get("logits"), views.get("embeddings"), output);
        Ok(bias.scale(self.scale).prepare(gpu)?.into())
    }

    fn reference(&self, tensors: &Named<'_, Host>) -> Result<Option<Vec<Expected>>> {
        let [query, logits, embeddings] = ["query", "logits", "embeddings"].map(|name| tensors.get(name));
        let bias = cope(&query.tensor()?, &logits.tensor()?, &embeddings.tensor()?)?;
        let [.., channels] = query.layout.shape();
        let [.., keys] = logits.layout.shape();
        let output = tensors.get(if self.in_place { "logits" } else { "output" });
        let tolerance = TOLERANCE + contextual_error(channels, keys);
        Ok(Some(vec![each(bias.into_iter().map(|x| x * self.scale).collect(), tolerance, output.element)]))
    }
}

#[test]
fn any_contextual_bias() {
    let rows = [1usize..3, 1usize..5, 1usize..4];
    let sizes = (rows, 1usize..9, 0usize..70, 1usize..40);
    let scale = prop::sample::select(vec![1.0, -0.35]);
    let biases = (sizes, any::<bool>(), any::<bool>(), draw_floats(), scale).prop_map(
        |((rows, channels, keys, positions), per_head, in_place, element, scale)| Bias {
            rows,
            channels,
            keys,
            positions,
            per_head,
            in_place,
            element,
            scale,
        },
    );
    try_all("tests/regressions/contextual_bias.txt", 20, biases);
}

/// What parts of the keys gave, merged.
#[derive(Debug, Clone)]
struct Parts {
    rows: [usize; 3],
    channels: usize,
    elements: [ElementType; 2],
}

impl Operation for Parts {
    fn arguments(&self) -> Vec<Argument> {
        let [b, t, h] = self.rows;
        let lse = |name| argument(name, [b, t, h, 1], ElementType::F32, Numbers::LogSumExps);
        let [own, other] = self.elements;
        let output = floats("output", [b, t, h, self.channels], own);
        vec![
            Argument { access: Access::Updates, ..output },
            Argument { access: Access::Updates, ..lse("lse") },
            floats("part", [b, t, h, self.channels], other),
            lse("part_lse"),
        ]
    }

    fn prepare(&self, gpu: &Gpu, views: &Named<'_, View>) -> Result<Recording> {
        let [output, lse, part, part_lse] = ["output", "lse", "part", "part_lse"].map(|name| views.get(name));
        Ok(Merge::new(output, lse, part, part_lse).prepare(gpu)?.into())
    }

    fn reference(&self, tensors: &Named<'_, Host>) -> Result<Option<Vec<Expected>>> {
        let [output, lse, part, part_lse] = ["output", "lse", "part", "part_lse"].map(|name| tensors.get(name));
        let attended =
            |out: &Host, lse: &Host| Attended { out: out.in_order(), lse: lse.in_order(), gate_sum: Vec::new() };
        let merged = attention_merge(&[attended(output, lse), attended(part, part_lse)])?;
        // WGSL's exp(x) is good to 3 + 2 |x| units in the last place, at most 5 * 2^-24 for what it then comes to.
        let out = each(merged.out, 3e-6, output.element);
        Ok(Some(vec![out, each(merged.lse, 3e-6, ElementType::F32)]))
    }
}

#[test]
fn any_merge() {
    let parts = ([1usize..3, 1usize..5, 1usize..4], 0usize..40, draw_floats(), draw_floats())
        .prop_map(|(rows, channels, own, other)| Parts { rows, channels, elements: [own, other] });
    try_all("tests/regressions/merge.txt", 20, parts);
}

/// A linear layer.
#[derive(Debug, Clone)]
struct Layer {
    rows: [usize; 2],
    inputs: [usize; 2],
    outputs: [usize; 2],
    bias: bool,
    /// Of inputs, weights and outputs.
    elements: [ElementType; 3],
    schedule: Option<ProjectionSchedule>,
}

impl Operation for Layer {
    fn arguments(&self) -> Vec<Argument> {
        let ([batch, tokens], [heads, channels], [to_heads, to_channels]) = (self.rows, self.inputs, self.outputs);
        let [x, weight, output] = self.elements;
        let outputs = to_heads * to_channels;
        let mut all = vec![
            floats("x", [batch, tokens, heads, channels], x),
            floats("weight", [1, outputs, 1, heads * channels], weight),
        ];
        if self.bias {
            all.push(floats("bias", [1, 1, 1, outputs], weight));
        }
        all.push(written("output", [batch, tokens, to_heads, to_channels], output));
        all
    }

    fn prepare(&self, gpu: &Gpu, views: &Named<'_, View>) -> Result<Recording> {
        let mut layer = Projection::new(views.get("x"), views.get("weight"), views.get("output"));
        if self.bias {
            layer = layer.bias(views.get("bias"));
        }
        Ok(self.schedule.into_iter().fold(layer, Projection::schedule).prepare(gpu)?.into())
    }

    fn reference(&self, tensors: &Named<'_, Host>) -> Result<Option<Vec<Expected>>> {
        let names: &[_] = if self.bias { &["x", "weight", "bias"] } else { &["x", "weight"] };
        let computed = |of: &dyn Fn(f64) -> f64| {
            let hosts = names.iter().map(|name| {
                let host = tensors.get(name);
                Host { values: host.values.iter().map(|&x| of(x)).collect(), ..host.clone() }
            });
            let hosts = hosts.collect::<Vec<_>>();
            let all = hosts.iter().map(Host::tensor).collect::<Result<Vec<_>>>()?;
            projection(&all[0], &all[1], all.get(2))
        };
        let (y, magnitudes) = (computed(&|x| x)?, computed(&f64::abs)?);
        // As many products, their sums and the bias are rounded, each by `U` of no more than the sum of all magnitudes.
        let [_, _, heads, channels] = tensors.get("x").layout.shape();
        let bound = |all: f64| (heads * channels + 2) as f64 * U * all;
        let element = tensors.get("output").element;
        let near = |(y, all)| Some(Near(y, bound(all)).stored(element));
        Ok(Some(vec![Expected::Each(y.into_iter().zip(magnitudes).map(near).collect())]))
    }
}

#[test]
fn any_linear_layer() {
    let schedule = prop::option::of(prop::sample::select(schedules().collect::<Vec<_>>()));
    let tokens = prop_oneof![Just(1usize), 1usize..40];
    let width = || (1usize..4, 1usize..20).prop_map(|(heads, channels)| [heads, channels]);
    let elements = prop_oneof![Just([ElementType::F32; 3]), [draw_floats(), draw_floats(), draw_floats()]];
    let layers = ((1usize..3, tokens), width(), width(), any::<bool>(), elements, schedule).prop_map(
        |((batch, tokens), inputs, outputs, bias, elements, schedule)| Layer {
            rows: [batch, tokens],
            inputs,
            outputs,
            bias,
            elements,
            schedule,
        },
    );
    try_all("tests/regressions/linear_layer.txt", 20, layers);
}
