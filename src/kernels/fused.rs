//! `shaders/shared/attention.wgsl`: what the kernels of fused attention share.

use super::grid::Limits;
use super::modules::{self, Lane, Module};
use super::step::{Operand, Step};
use super::{cope_logits, rotation, words};
use crate::attention::{Rotation, VisibleKeys};
use crate::gpu::{Access, Binding, Shader};
use crate::{ElementType, Error, Pairing, Result};
use bytemuck::{Pod, Zeroable};
use std::f64::consts::LOG2_E;
use std::ops::Range;

/// The numbers behind the places in the uniform, as the shader declares them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Numbers {
    tokens: u32,
    keys: u32,
    heads: u32,
    first_head: u32,
    group: u32,
    channels: u32,
    value_channels: u32,
    last_position: u32,
    visible_start: i32,
    visible_end: i32,
    from_row_end: i32,
    range_starts: u32,
    scale: f32,
    bias_scale: f32,
    splits: u32,
    run: u32,
    first_split: u32,
    counts: u32,
    _pad: [u32; 2],
}

/// Attention of a region of queries, told without buffers.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// `[batch, tokens, heads, channels]`; already rotated.
    pub q: Operand,
    /// `[batch, keys, kv heads, channels]`; rotated as they are loaded.
    pub k: Operand,
    /// `[batch, keys, kv heads, value channels]`.
    pub v: Operand,
    /// `[batch, tokens, heads, value channels]`.
    pub output: Operand,
    /// `[batch, tokens, heads, 1]`.
    pub lse: Option<Operand>,
    /// `[batch, tokens, heads, keys]`, with 1 in place of some of the first three extents.
    pub keep: Option<Operand>,
    /// As `keep`.
    pub bias: Option<Operand>,
    /// `[batch, 1, 1, 1 or 2]`.
    pub key_ranges: Option<Operand>,
    /// How many keys a row has, of which `k` and its like may be a window.
    pub keys: usize,
    /// The keys that the first of these tokens sees.
    pub visible: VisibleKeys,
    /// Of these query heads, counted from the first one of the first key head here.
    pub first_head: usize,
    /// Query heads to a key head.
    pub group: usize,
    pub scale: f64,
    /// Of keys, and of keys that gates are made from.
    pub rotation: Option<Rotation>,
    pub cope: Option<Cope>,
}

/// Contextual position encoding in such a job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cope {
    /// As `q`; `None` for `q` itself.
    pub query: Option<Operand>,
    /// `[1, channels, 1 or heads, positions]`.
    pub embeddings: Operand,
    pub gates: GateSource,
    pub gates_see_bias: bool,
    /// `[batch, tokens, heads, 2]`.
    pub gate_sum: Option<Operand>,
    /// As `gate_sum`.
    pub gate_sum_out: Option<Operand>,
    /// Scratch, `[batch, tokens, heads, positions]`.
    pub z: Operand,
    pub bias_scale: f64,
}

/// What gates are made from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GateSource {
    /// The logits.
    Logits,
    /// Keys of their own, as `k`.
    Keys(Operand),
    /// The values.
    Values,
}

/// The scratch tensors of a decode step.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Split {
    pub logits: Option<Operand>,
    /// Sums of gates, and the gates.
    pub gates: Option<Operand>,
    pub partials: Option<Operand>,
    /// Splits of the keys.
    pub splits: usize,
    /// Sums of gates, as many to each split.
    pub counts: usize,
    /// Keys to an invocation.
    pub run: usize,
    /// The first split of a dispatch.
    pub first: usize,
}

/// All bindings, in the order of the uniform's places.
const BINDINGS: [Binding; 17] = {
    use Access::{Read, ReadWrite};
    const fn binding(index: u32, name: &'static str, access: Access) -> Binding {
        Binding { index, name, access }
    }
    [
        binding(1, "q", Read),
        binding(8, "k", Read),
        binding(9, "v", Read),
        binding(10, "out", ReadWrite),
        binding(11, "query", Read),
        binding(12, "embeddings", Read),
        binding(13, "gate_keys", Read),
        binding(4, "keep", Read),
        binding(5, "bias", Read),
        binding(6, "key_ranges", Read),
        binding(3, "gate_sum", Read),
        binding(7, "gate_sum_out", ReadWrite),
        binding(2, "lse", ReadWrite),
        binding(14, "z", ReadWrite),
        binding(15, "logits", ReadWrite),
        binding(16, "stored_gates", ReadWrite),
        binding(18, "partials", ReadWrite),
    ]
};

/// The optional buffers of a job: a module for each, whether it is there or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Options {
    pub keep: bool,
    pub key_ranges: bool,
    pub lse: bool,
    pub gate_sum: bool,
    pub gate_sum_out: bool,
    /// How keys rotate, if they do.
    pub rotation: Option<Pairing>,
    pub elements: Elements,
}

/// How tensors are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Elements {
    q: ElementType,
    k: ElementType,
    v: ElementType,
    out: ElementType,
    query: Option<ElementType>,
    embeddings: Option<ElementType>,
    gate_keys: Option<ElementType>,
    bias: Option<ElementType>,
    /// Whether the channels of all heads lie in whole words of four.
    fours: bool,
}

impl Options {
    pub(crate) fn has_bias(self) -> bool {
        self.elements.bias.is_some()
    }

    /// Where keys are looked at.
    pub(crate) fn of_logits(self) -> [Module; 3] {
        [
            choose(self.keep, modules::KEEP_BUFFER, modules::KEEP_NONE),
            choose(self.has_bias(), modules::BIAS_BUFFER, modules::BIAS_NONE),
            choose(self.key_ranges, modules::KEY_RANGE_BUFFER, modules::KEY_RANGE_NONE),
        ]
    }

    /// Where gates are summed up.
    pub(crate) fn of_counts(self) -> [Module; 2] {
        [
            choose(self.gate_sum, modules::GATE_SUM_BUFFER, modules::GATE_SUM_NONE),
            choose(self.gate_sum_out, modules::GATE_SUM_OUT_BUFFER, modules::GATE_SUM_OUT_NONE),
        ]
    }

    pub(crate) fn of_lse(self) -> Module {
        choose(self.lse, modules::LSE_BUFFER, modules::LSE_NONE)
    }

    /// How keys rotate where they are loaded, and what stands for it in a variant's name.
    fn of_rotation(self) -> (&'static [Module], Option<&'static str>) {
        use modules::{PAIRS, PAIRS_HALF_SPLIT, PAIRS_INTERLEAVED, TURN};
        use modules::{ROTATION, ROTATION_CHANNELS, ROTATION_LANES, ROTATION_NONE, ROTATION_WORDS};
        match (self.rotation, self.elements.lane()) {
            (None, _) => (&[ROTATION_NONE], None),
            (Some(_), Lane::One) => (&[TURN, ROTATION, ROTATION_CHANNELS, ROTATION_WORDS], Some("rotated")),
            (Some(Pairing::HalfSplit), Lane::Four) => {
                (&[TURN, PAIRS, PAIRS_HALF_SPLIT, ROTATION, ROTATION_LANES], Some("rotated_half_split"))
            }
            (Some(Pairing::Interleaved), Lane::Four) => {
                (&[TURN, PAIRS, PAIRS_INTERLEAVED, ROTATION, ROTATION_LANES], Some("rotated_interleaved"))
            }
        }
    }

    /// What this is for a kernel that loads no keys.
    pub(crate) fn without_keys(self) -> Self {
        Self { rotation: None, ..self }
    }

    /// Whether the channels of all heads lie in whole words of four.
    pub(crate) fn fours(self) -> bool {
        self.elements.fours
    }
}

/// Of all texts those in which every branch is there and every kind of storage, without more buffers than every device
/// has: options, what gates are made from, and whether contextual queries are tensors of their own.
pub(crate) fn examples() -> impl Iterator<Item = (Options, Option<GateKind>, bool)> {
    let storages = [
        (ElementType::F32, true),
        (ElementType::F16, true),
        (ElementType::BF16, true),
        (ElementType::F32, false),
        (ElementType::F16, false),
    ];
    storages.into_iter().flat_map(|(element, fours)| {
        let options = |bias: bool, cope: bool, query: bool, keys: bool| Options {
            keep: bias,
            key_ranges: false,
            lse: false,
            gate_sum: false,
            gate_sum_out: false,
            rotation: None,
            elements: Elements {
                q: element,
                k: element,
                v: element,
                out: element,
                query: query.then_some(element),
                embeddings: cope.then_some(element),
                gate_keys: keys.then_some(element),
                bias: bias.then_some(element),
                fours,
            },
        };
        let sums = Options { gate_sum: true, gate_sum_out: true, ..options(false, true, false, false) };
        let ranges = |options| Options { key_ranges: true, lse: true, ..options };
        let rotated = |options, pairing| Options { rotation: Some(pairing), ..options };
        [
            (options(false, false, false, false), None, false),
            (ranges(options(true, false, false, false)), None, false),
            (options(false, true, false, false), Some(GateKind::Logits), false),
            (ranges(options(false, true, false, false)), Some(GateKind::Logits), false),
            (options(false, true, true, true), Some(GateKind::Keys), true),
            (sums, Some(GateKind::Values), false),
            (rotated(options(false, false, false, false), Pairing::HalfSplit), None, false),
            (rotated(options(false, true, true, true), Pairing::HalfSplit), Some(GateKind::Keys), true),
            (rotated(options(false, true, false, false), Pairing::Interleaved), Some(GateKind::Values), false),
        ]
    })
}

/// Refuses more keys and positions than a software driver's loops are good for.
pub(crate) fn expect_keys(job: &Job, most: usize, schedule: &str) -> Result<()> {
    let keys = job.keys;
    let positions = job.cope.map_or(0, |cope| cope.embeddings.layout.shape()[3]);
    if keys + positions <= most {
        return Ok(());
    }
    Err(Error::tensor(
        "k",
        format!("one of {keys} keys, with {positions} positions"),
        format!("up to {most} of both together, scheduled by {schedule}, or a split schedule"),
    ))
}

fn choose(on: bool, a: Module, b: Module) -> Module {
    if on { a } else { b }
}

/// A shader from its kernel, from modules that name its variant and text that is named otherwise. `names` says which of
/// the bindings it uses.
pub(crate) struct Composition<'a> {
    pub kernel: Module,
    pub options: Options,
    pub chosen: &'a [Module],
    pub written_out: Option<(String, String)>,
    pub names: &'a [(&'a str, bool)],
    pub constants: Vec<(&'static str, f64)>,
    pub workgroup: u32,
}

impl Composition<'_> {
    pub(crate) fn shader(self) -> Shader {
        let used = BINDINGS.into_iter().filter(|binding| self.names.contains(&(binding.name, true)));
        // Rotated queries lie in the scratch buffer, all of which is writable.
        let used = used.map(|binding| match (binding.name, self.options.rotation) {
            ("q", Some(_)) => Binding { access: Access::ReadWrite, ..binding },
            _ => binding,
        });
        let bindings: Vec<_> =
            [Binding { index: 0, name: "params", access: Access::Uniform }].into_iter().chain(used).collect();
        let (rotation, rotation_name) = self.options.of_rotation();
        let (data, data_name) = self.options.elements.text(&bindings, self.options.rotation.is_some());
        let shared = [modules::PLACE, modules::MASKED, modules::COUNT, modules::ATTENTION];
        let modules = shared.iter().chain(rotation).chain(self.chosen).chain([&self.kernel]);
        let mut texts: Vec<_> = modules.map(|m| m.wgsl).collect();
        texts.push(&data);
        let mut names = vec![self.kernel.name, &data_name];
        if let Some((name, text)) = &self.written_out {
            names.push(name);
            texts.push(text);
        }
        names.extend(rotation_name.into_iter().chain(self.chosen.iter().map(|module| module.name)));
        Shader {
            name: names.join("."),
            wgsl: Shader::compose(&texts),
            constants: [("WG_SIZE", self.workgroup.into())].into_iter().chain(self.constants).collect(),
            bindings,
            workgroup: [self.workgroup, 1, 1],
        }
    }
}

impl Elements {
    fn lane(self) -> Lane {
        if self.fours { Lane::Four } else { Lane::One }
    }

    /// Declares those tensors among the bindings that may be stored in several ways, and the functions that reach them:
    /// `NAME_word(ix, word)` and `store_out_word(ix, word, x)` for four channels of a head, `load_NAME(ix)` for numbers,
    /// and `NAME_two(ix, i, position)` for two words of keys. And what stands for this in a variant's name.
    fn text(self, bindings: &[Binding], rotated: bool) -> (String, String) {
        let lane = self.lane();
        let mut used = Vec::new();
        let mut text = String::from(lane.module().wgsl);
        if !self.fours {
            text.push_str(modules::WORDS_SCALAR.wgsl);
        }
        let mut declarations = String::new();
        for &binding in bindings {
            let (element, shape) = match binding.name {
                "q" => (Some(self.q), "(B, T, H, D)"),
                "k" => (Some(self.k), "(B, S, Hk, D)"),
                "v" => (Some(self.v), "(B, S, Hk, Dv)"),
                "out" => (Some(self.out), "(B, T, H, Dv)"),
                "query" => (self.query, "(B, T, H, D)"),
                "gate_keys" => (self.gate_keys, "(B, S, Hk, D)"),
                "embeddings" => (self.embeddings, "(D, 1 or H, N)"),
                "bias" => (self.bias, "(B or 1, T or 1, H or 1, S)"),
                _ => continue,
            };
            let Some(element) = element else { continue };
            used.push(element);
            declarations += &match binding.name {
                "embeddings" | "bias" => words::numbers(binding, element, lane, shape),
                "out" => {
                    words::declare(binding, element, lane, shape)
                        + &words::store("out", Some((binding, element)), lane)
                        + store_word(lane)
                }
                name => {
                    words::declare(binding, element, lane, shape)
                        + &words::load(name, Some((binding, element)), lane)
                        + &load_word(name, lane)
                        + &load_two(name, lane, rotated)
                }
            };
        }
        text.extend(words::halves(lane, used.iter().copied()).map(|halves| halves.wgsl));
        text.push_str(&declarations);
        let elements: Vec<_> = used.iter().map(|element| element.name()).collect();
        (text, format!("{}_{}", lane.module().name, elements.join("_")))
    }
}

/// `fn NAME_word(ix: u32, word: u32) -> vec4<f32>`: four channels of the head at `ix`. Values are finite numbers: where
/// nobody sees them they may be anything, and not even a weight of 0 makes 0 of that.
fn load_word(name: &str, lane: Lane) -> String {
    let channels = if name == "v" { "value_channels" } else { "channels" };
    let body = match lane {
        Lane::Four if name == "v" => "return finite(load_v(ix + word));".into(),
        Lane::Four => format!("return load_{name}(ix + word);"),
        Lane::One => {
            let loads = ["x", "y", "z", "w"].map(|i| format!("load_{name}(at.{i})")).join(", ");
            let four = match name {
                "q" | "query" => format!("within(word, vec4({loads}))"),
                "v" => format!("finite(vec4({loads}))"),
                _ => format!("vec4({loads})"),
            };
            format!("let at = places(ix, word, params.{channels}, params.{name}.channel);\n    return {four};")
        }
    };
    format!("fn {name}_word(ix: u32, word: u32) -> vec4<f32> {{\n    {body}\n}}\n")
}

/// `fn NAME_two(ix: u32, i: u32, position: i32) -> Two`: two words of the head at `ix`, whose token stands at a position,
/// which ones `words_of_two` says, and 0 for one behind the last. Keys are rotated, values are not; single channels where
/// they are loaded, by `NAME_turned(ix, word, position)`.
fn load_two(name: &str, lane: Lane, rotated: bool) -> String {
    let turns = match name {
        "k" | "gate_keys" => true,
        "v" => false,
        _ => return String::new(),
    };
    let by_channel = turns && rotated && lane == Lane::One;
    let mut text = if by_channel { load_turned(name) } else { String::new() };
    let load = |word: &str| match by_channel {
        true => format!("{name}_turned(ix, words.{word}, position)"),
        false => format!("{name}_word(ix, words.{word})"),
    };
    let (first, second) = (load("x"), load("y"));
    let result = if turns { "turned_two(i, position, x)" } else { "x" };
    text += &format!(
        "fn {name}_two(ix: u32, i: u32, position: i32) -> Two {{
    let words = words_of_two(i);
    var x = Two({first}, vec4(0.0));
    if (words.y < (params.channels + 3u) / 4u) {{
        x.second = {second};
    }}
    return {result};
}}
"
    );
    text
}

/// `fn NAME_turned(ix: u32, word: u32, position: i32) -> vec4<f32>`: four channels of the head at `ix`, rotated.
fn load_turned(name: &str) -> String {
    let loads = |of: &str| {
        let load = |i| format!("load_{name}(ix + {of}.{i} * params.{name}.channel)");
        ["x", "y", "z", "w"].map(load).join(", ")
    };
    let (own, partners) = (loads("channels"), loads("partners"));
    format!(
        "fn {name}_turned(ix: u32, word: u32, position: i32) -> vec4<f32> {{
    let channels = min(channels_of(word), vec4(params.channels - 1u));
    let partners = partners_of(channels);
    return turned_channels(channels, position, vec4({own}), vec4({partners}));
}}
"
    )
}

/// `fn store_out_word(ix: u32, word: u32, x: vec4<f32>)`: four channels of the head at `ix`.
fn store_word(lane: Lane) -> &'static str {
    match lane {
        Lane::Four => {
            "fn store_out_word(ix: u32, word: u32, x: vec4<f32>) {
    store_out(ix + word, x);
}
"
        }
        Lane::One => {
            "fn store_out_word(ix: u32, word: u32, x: vec4<f32>) {
    let first = 4u * word;
    let channels = vec4(x.x, x.y, x.z, x.w);
    for (var c = first; c < min(first + 4u, params.value_channels); c++) {
        store_out(ix + c * params.out.channel, channels[c - first]);
    }
}
"
        }
    }
}

impl Job {
    pub(crate) fn options(&self) -> Options {
        let cope = self.cope.as_ref();
        let query = cope.and_then(|cope| cope.query);
        let gate_keys = cope.and_then(|cope| cope.gates.keys());
        let words = [Some(self.q), Some(self.k), Some(self.v), Some(self.output), query, gate_keys];
        let element = |operand: Operand| operand.element;
        Options {
            keep: self.keep.is_some(),
            key_ranges: self.key_ranges.is_some(),
            lse: self.lse.is_some(),
            gate_sum: cope.is_some_and(|cope| cope.gate_sum.is_some()),
            gate_sum_out: cope.is_some_and(|cope| cope.gate_sum_out.is_some()),
            rotation: self.rotation.as_ref().map(|rotation| rotation.pairing),
            elements: Elements {
                q: self.q.element,
                k: self.k.element,
                v: self.v.element,
                out: self.output.element,
                query: query.map(element),
                embeddings: cope.map(|cope| cope.embeddings.element),
                gate_keys: gate_keys.map(element),
                bias: self.bias.map(element),
                // An empty tensor's binding may be shorter than a word.
                fours: words
                    .into_iter()
                    .flatten()
                    .all(|operand| operand.layout.is_in_fours() && !operand.layout.is_empty())
                    && self.rotation.as_ref().is_none_or(rotation::is_in_fours),
            },
        }
    }

    /// What gates are made from; `None` without contextual position encoding.
    pub(crate) fn gate_kind(&self) -> Option<GateKind> {
        self.cope.map(|cope| cope.gates.kind())
    }

    /// Whether the bias is part of what gates are made from.
    pub(crate) fn gates_see_bias(&self) -> bool {
        self.cope.is_none_or(|cope| cope.gates_see_bias)
    }

    /// The same job over a window of the keys, which keep their numbers.
    ///
    /// # Errors
    /// None for a range within the keys.
    pub(crate) fn window(&self, keys: Range<usize>) -> Result<Self> {
        self.with_keys(|operand| operand.window(keys.clone()))
    }

    /// The same job over the keys of one head of one row.
    ///
    /// # Errors
    /// None if there is one.
    pub(crate) fn of_one_head(&self) -> Result<Self> {
        self.with_keys(|operand| Ok(Operand { layout: operand.layout.batch(0..1)?.heads(0..1)?, ..operand }))
    }

    /// The same job with a part of all that there is for each key.
    fn with_keys(&self, part: impl Fn(Operand) -> Result<Operand>) -> Result<Self> {
        let cope = self.cope.map(|cope| {
            let gates = match cope.gates {
                GateSource::Keys(gate_keys) => GateSource::Keys(part(gate_keys)?),
                other => other,
            };
            Ok(Cope { gates, ..cope })
        });
        Ok(Self { k: part(self.k)?, v: part(self.v)?, cope: cope.transpose()?, ..self.clone() })
    }

    /// Whether keys, values and what else there is for each key can be bound.
    pub(crate) fn keys_fit(&self, limits: Limits) -> bool {
        let gate_keys = self.cope.as_ref().and_then(|cope| cope.gates.keys());
        [Some(self.k), Some(self.v), gate_keys].into_iter().flatten().all(|operand| {
            let bytes = limits.range([(operand.layout, operand.element)]);
            bytes.end - bytes.start <= limits.binding
        })
    }

    /// A dispatch that makes `z`: what queries make of each position.
    pub(crate) fn position_logits(&self) -> Option<Step> {
        self.cope.map(|cope| cope_logits::step(cope.query.unwrap_or(self.q), cope.embeddings, cope.z))
    }

    /// Words of four channels of a query and of a value, the last one perhaps not full.
    pub(crate) fn words(&self) -> (usize, usize) {
        (self.q.layout.shape()[3].div_ceil(4), self.v.layout.shape()[3].div_ceil(4))
    }

    /// A dispatch of a shader over this job, which binds what the shader uses.
    pub(crate) fn step(&self, shader: Shader, split: Split, groups: [usize; 3]) -> Step {
        let cope = self.cope.as_ref();
        let tensors = [
            Some(self.q),
            Some(self.k),
            Some(self.v),
            Some(self.output),
            cope.and_then(|cope| cope.query),
            cope.map(|cope| cope.embeddings),
            cope.and_then(|cope| cope.gates.keys()),
            self.keep,
            self.bias,
            self.key_ranges,
            cope.and_then(|cope| cope.gate_sum),
            cope.and_then(|cope| cope.gate_sum_out),
            self.lse,
            cope.map(|cope| cope.z),
            split.logits,
            split.gates,
            split.partials,
        ];
        let operands = BINDINGS.iter().zip(tensors).map(|(binding, tensor)| {
            let used = shader.bindings.iter().any(|used| used.index == binding.index);
            (binding.index, tensor.filter(|_| used))
        });
        let [_, tokens, heads, channels] = self.q.layout.shape();
        let [.., value_channels] = self.v.layout.shape();
        let positions = cope.map_or(1, |cope| cope.embeddings.layout.shape()[3]);
        let numbers = Numbers {
            tokens: tokens as u32,
            keys: self.keys as u32,
            heads: heads as u32,
            first_head: self.first_head as u32,
            group: self.group as u32,
            channels: channels as u32,
            value_channels: value_channels as u32,
            last_position: positions.saturating_sub(1) as u32,
            visible_start: self.visible.start,
            visible_end: self.visible.end,
            from_row_end: i32::from(self.visible.from_row_end),
            range_starts: self.key_ranges.map_or(0, |ranges| u32::from(ranges.layout.shape()[3] == 2)),
            scale: (self.scale * LOG2_E) as f32,
            bias_scale: cope.map_or(0.0, |cope| cope.bias_scale * LOG2_E) as f32,
            splits: split.splits as u32,
            run: split.run as u32,
            first_split: split.first as u32,
            counts: split.counts as u32,
            _pad: [0; 2],
        };
        let lane = self.options().elements.lane();
        let rotation =
            self.rotation.as_ref().map_or_else(rotation::no_bytes, |rotation| rotation::bytes(rotation, lane));
        Step {
            operands: operands.collect(),
            word: lane.pairs(),
            numbers: [bytemuck::bytes_of(&numbers), &rotation].concat(),
            groups,
            shader,
        }
    }
}

/// What gates are made from, as variants know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum GateKind {
    Logits,
    Keys,
    Values,
}

impl GateSource {
    pub(crate) fn kind(self) -> GateKind {
        match self {
            Self::Logits => GateKind::Logits,
            Self::Keys(_) => GateKind::Keys,
            Self::Values => GateKind::Values,
        }
    }

    pub(crate) fn keys(self) -> Option<Operand> {
        match self {
            Self::Keys(keys) => Some(keys),
            Self::Logits | Self::Values => None,
        }
    }
}
