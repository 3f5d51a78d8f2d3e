//! The article's whole layer of self-attention, on the device: against the values that the article's own program
//! computed, and against the f64 reference.

use crate::case::{Both, assert_near, wide};
use crate::common::refused::expect_refused;
use crate::common::{Golden, Random, gpu};
use phasor::attention::{
    Attention, ContextualPe, Linear, Module, ModuleScratch, Rotation, SelfAttention, SelfAttentionWeights,
};
use phasor::frequencies::{Frequencies, Plain};
use phasor::reference::{Tensor, attention, projection, rope_rotate, self_attention};
use phasor::{Direction, ElementType, ErrorKind, Layout, Pairing, Positions, Rope, View};
use std::collections::HashMap;

/// What the outputs may be off by: three sums of products one after the other, of some dozens of terms of about 1, and
/// attention between them, as in the tests of attention itself.
const TOLERANCE: f64 = 1e-4;

/// The tensors of a layer, on the host and on the device at once.
struct Case {
    inputs: Both,
    weights: HashMap<String, Both>,
    heads: usize,
    kv_heads: usize,
    frequencies: Frequencies,
    pairing: Pairing,
}

impl Case {
    /// Weights of about `1 / sqrt(inputs)`, as models have them.
    fn random(
        random: &mut Random,
        [batch, tokens, width]: [usize; 3],
        [heads, kv_heads, channels]: [usize; 3],
    ) -> Self {
        let value_channels = channels + 4;
        let mut weights = HashMap::new();
        let layers = [
            ("query_proj", heads * channels, width),
            ("key_proj", kv_heads * channels, width),
            ("value_proj", kv_heads * value_channels, width),
            ("output_proj", width + 3, heads * value_channels),
        ];
        for (layer, outputs, inputs) in layers {
            let scale = 1.0 / (inputs as f32).sqrt();
            weights.insert(format!("{layer}.weight"), Both::random(random, [1, outputs, 1, inputs], scale));
            weights.insert(format!("{layer}.bias"), Both::random(random, [1, 1, 1, outputs], 0.3));
        }
        Self {
            inputs: Both::random(random, [batch, tokens, 1, width], 1.0),
            weights,
            heads,
            kv_heads,
            frequencies: Plain::new(1e4).frequencies(channels as u32).unwrap(),
            pairing: Pairing::HalfSplit,
        }
    }

    fn with_positions(mut self, random: &mut Random, channels: usize, positions: usize) -> Self {
        let embeddings = Both::random(random, [1, channels, 1, positions], 0.3);
        self.weights.insert("cope.position_embeddings".into(), embeddings);
        self
    }

    /// A case of the article.
    fn golden(golden: &Golden, name: &str, [heads, kv_heads]: [usize; 2]) -> Self {
        let name = format!("attention.{name}");
        let (shape, inputs) = golden.tensor(&format!("{name}.inputs"));
        let prefix = format!("{name}.weights.");
        let weight = |full: &String| (full[prefix.len()..].to_string(), Both::matrix(golden, full));
        Self {
            inputs: Both::new(inputs, of([shape[0], shape[1], 1, shape[2]])),
            weights: golden.names(&prefix).iter().map(weight).collect(),
            heads,
            kv_heads,
            frequencies: frequencies_of_table(golden, &name),
            pairing: Pairing::Interleaved,
        }
    }

    fn layer<'a, T: Clone>(&'a self, over: impl Fn(&'a Both) -> T) -> SelfAttention<T> {
        let weights = SelfAttentionWeights::from_state_dict(|name| self.weights.get(name).map(&over)).unwrap();
        SelfAttention::new(&over(&self.inputs), &weights, self.heads, self.kv_heads)
    }

    fn reference(&self, layer: &SelfAttention<Tensor<'_>>) -> Vec<f64> {
        self_attention(layer, |x, layout| {
            let forward = Direction::Forward;
            rope_rotate(x, layout, &self.frequencies, self.pairing, 0, forward, |_, t| t as i32)
        })
        .unwrap()
    }

    fn rope(&self) -> Rope {
        Rope::new(gpu(), &self.frequencies, self.pairing).unwrap()
    }

    fn output(&self) -> View {
        let [batch, tokens, ..] = self.inputs.layout.shape();
        let [_, outputs, ..] = self.weights["output_proj.weight"].layout.shape();
        gpu().zeros(ElementType::F32, [batch, tokens, 1, outputs]).unwrap()
    }

    /// The module fused and not, with queries and keys rotated before attention or on their way into it.
    fn on_device(&self, layer: &SelfAttention<View>) -> [(&'static str, Vec<f64>); 4] {
        let output = self.output();
        let before = Module::new(layer, &output).rotate(&self.rope(), Positions::Start(0));
        let turning =
            layer.clone().attend(|attention| attention.rotate(Rotation::new(&self.frequencies, self.pairing)));
        let on_the_way = Module::new(&turning, &output);
        let forms = [
            ("fused", before.clone()),
            ("unfused", before.unfused()),
            ("rotated on the way, fused", on_the_way.clone()),
            ("rotated on the way, unfused", on_the_way.unfused()),
        ];
        forms.map(|(form, module)| (form, run(&module, &output)))
    }

    /// Both forms give what the reference gives, with these settings.
    #[track_caller]
    fn assert_agrees(&self, what: &str, tolerance: f64, settings: impl Settings) {
        let expected = self.reference(&settings.of(self, Both::tensor, Both::tensor));
        for (form, got) in self.on_device(&settings.of(self, Both::view, Both::i32_view)) {
            assert_near(&format!("{what}, {form}"), &got, &expected, tolerance);
        }
    }
}

fn of(shape: [usize; 4]) -> Layout {
    Layout::contiguous(shape).unwrap()
}

fn run(module: &Module, output: &View) -> Vec<f64> {
    let prepared = module.prepare(gpu()).unwrap();
    gpu().submit(|pass| prepared.record(pass)).unwrap();
    wide(&gpu().read_blocking(output).unwrap())
}

/// The settings of a layer, over both kinds of tensor.
trait Settings {
    fn of<'a, T: Clone>(
        &'a self,
        case: &'a Case,
        number: impl Fn(&'a Both) -> T,
        integer: impl Fn(&'a Both) -> T,
    ) -> SelfAttention<T>;
}

#[derive(Default)]
struct Masked {
    causal: bool,
    window: Option<usize>,
    key_ranges: Option<Both>,
    keep: Option<Both>,
    bias: Option<Both>,
    bias_scale: Option<f64>,
    before_rotation: bool,
}

impl Settings for Masked {
    fn of<'a, T: Clone>(
        &'a self,
        case: &'a Case,
        number: impl Fn(&'a Both) -> T,
        integer: impl Fn(&'a Both) -> T,
    ) -> SelfAttention<T> {
        let layer = case.layer(&number).attend(|mut attention: Attention<T>| {
            if self.causal {
                attention = attention.causal();
            }
            attention = self.window.into_iter().fold(attention, Attention::window);
            attention = self.key_ranges.iter().fold(attention, |a, ranges| a.key_ranges(&integer(ranges)));
            attention = self.keep.iter().fold(attention, |a, keep| a.keep(&integer(keep)));
            attention = self.bias.iter().fold(attention, |a, bias| a.bias(&number(bias)));
            self.bias_scale.iter().fold(attention, |a, &scale| {
                a.cope(ContextualPe::new(&number(&case.weights["cope.position_embeddings"])).bias_scale(scale))
            })
        });
        if self.before_rotation { layer.contextual_query_before_rotation() } else { layer }
    }
}

/// What a table of cosines and sines `[positions, pairs]` was made of: the angle from one position to the next, by the
/// last row, where it counts most. The first ones say how many whole turns lie before that.
fn frequencies_of_table(golden: &Golden, name: &str) -> Frequencies {
    let [cos, sin] = ["cos", "sin"].map(|table| Both::matrix(golden, &format!("{name}.{table}")));
    let [_, positions, _, pairs] = cos.layout.shape();
    let angle = |m: usize, pair: usize| sin.wide[m * pairs + pair].atan2(cos.wide[m * pairs + pair]);
    let inv_freq = (0..pairs).map(|pair| {
        (2..positions).fold(angle(1, pair), |step, m| {
            let turns = ((step * m as f64 - angle(m, pair)) / std::f64::consts::TAU).round();
            (angle(m, pair) + turns * std::f64::consts::TAU) / m as f64
        })
    });
    Frequencies::new(inv_freq.collect(), cos.wide[0]).unwrap()
}

#[test]
fn the_articles_module() {
    let golden = Golden::article();
    let cases = [("mha_yarn", [4, 4]), ("gqa", [6, 2]), ("mqa_long", [4, 1])];
    let outputs = golden.names("attention.").into_iter().filter(|name| name.ends_with(".out")).count();
    assert_eq!(cases.len(), outputs, "each case of the file is compared");
    for (name, heads) in cases {
        let case = Case::golden(&golden, name, heads);
        let expected = wide(&golden.tensor(&format!("attention.{name}.out")).1);
        let causal = Masked { causal: true, ..Masked::default() };
        // Numbers of about 1, rounded to f32 in a dozen operations with sums of up to 70 terms.
        assert_near(name, &case.reference(&causal.of(&case, Both::tensor, Both::tensor)), &expected, 5e-6);
        for (form, got) in case.on_device(&causal.of(&case, Both::view, Both::i32_view)) {
            assert_near(&format!("{name}, {form}"), &got, &expected, 5e-6);
        }
    }
}

#[test]
fn heads_masks_and_contextual_encoding() {
    let mut random = Random::new(31);
    for ([heads, kv_heads, channels], tokens) in [([4, 4, 8], 12), ([6, 2, 6], 40), ([3, 1, 4], 5)] {
        let case = Case::random(&mut random, [2, tokens, 20], [heads, kv_heads, channels]);
        case.assert_agrees("all", TOLERANCE, Masked::default());
        case.assert_agrees("causal", TOLERANCE, Masked { causal: true, window: Some(3), ..Masked::default() });
        let case = case.with_positions(&mut random, channels, 7);
        let lengths = Both::new(vec![3.0, tokens as f32], of([2, 1, 1, 1]));
        case.assert_agrees("lengths", TOLERANCE, Masked { key_ranges: Some(lengths), ..Masked::default() });
        let keep = Both::whole(&mut random, [2, 1, 1, tokens], 3);
        let bias = Both::random(&mut random, [1, tokens, heads, tokens], 1.0);
        let masks = Masked { causal: true, keep: Some(keep), bias: Some(bias), ..Masked::default() };
        case.assert_agrees("masks", TOLERANCE, masks);
        let paper = Masked { causal: true, before_rotation: true, bias_scale: Some(0.4), ..Masked::default() };
        case.assert_agrees("before rotation", TOLERANCE, paper);
    }
}

/// One token of each row, and none.
#[test]
fn few_tokens() {
    let mut random = Random::new(32);
    let case = Case::random(&mut random, [3, 1, 12], [2, 1, 4]).with_positions(&mut random, 4, 3);
    case.assert_agrees("one", TOLERANCE, Masked { causal: true, ..Masked::default() });
    let none = Case::random(&mut random, [3, 0, 12], [2, 1, 4]);
    none.assert_agrees("none", 0.0, Masked::default());
}

#[test]
fn weights_in_halves_and_without_biases() {
    let mut random = Random::new(33);
    for element in [ElementType::F16, ElementType::BF16] {
        let mut case = Case::random(&mut random, [1, 10, 16], [4, 2, 8]).with_positions(&mut random, 8, 5);
        case.weights.retain(|name, _| !name.ends_with("value_proj.bias") && !name.ends_with("output_proj.bias"));
        case.weights.values_mut().for_each(|weight| *weight = weight.stored(element));
        case.assert_agrees("weights", TOLERANCE, Masked { causal: true, ..Masked::default() });
        case.inputs = case.inputs.stored(element);
        case.assert_agrees("inputs too", TOLERANCE, Masked { causal: true, ..Masked::default() });
    }
}

/// Positions are the caller's, and without a rotation there are none.
#[test]
fn rotation_or_none() {
    let mut random = Random::new(34);
    let case = Case::random(&mut random, [1, 9, 16], [2, 2, 4]).with_positions(&mut random, 4, 5);
    let settings = Masked { causal: true, before_rotation: true, ..Masked::default() };
    let (layer, output) = (settings.of(&case, Both::view, Both::i32_view), case.output());
    let host = settings.of(&case, Both::tensor, Both::tensor);
    let still = self_attention(&host, |_, _| Ok(())).unwrap();
    assert_near("none", &run(&Module::new(&layer, &output), &output), &still, TOLERANCE);
    let positions = [5, 1, 0, 9, 100, 3, 2, 1, 7];
    let view = gpu().upload_positions(&positions, [1, 9]).unwrap();
    let turned = self_attention(&host, |x, layout| {
        let at = |_: usize, t: usize| positions[t];
        rope_rotate(x, layout, &case.frequencies, case.pairing, 0, Direction::Forward, at)
    });
    let module = Module::new(&layer, &output).rotate(&case.rope(), Positions::PerToken(view));
    assert_near("positions", &run(&module, &output), &turned.unwrap(), TOLERANCE);
}

/// Position embeddings meet rotated queries or those before the rotation, as is said: the twin, against its own parts.
#[test]
fn which_queries_meet_position_embeddings() {
    let mut random = Random::new(37);
    let case = Case::random(&mut random, [1, 9, 16], [2, 2, 4]).with_positions(&mut random, 4, 5);
    let project = |x: &Tensor<'_>, layer: &str, shape| {
        let [weight, bias] = ["weight", "bias"].map(|part| case.weights[&format!("{layer}.{part}")].tensor());
        (projection(x, &weight, Some(&bias)).unwrap(), of(shape))
    };
    let rotated = |(x, layout): &(Vec<f64>, Layout)| {
        let mut x = x.clone();
        let at = |_: usize, t: usize| t as i32;
        rope_rotate(&mut x, *layout, &case.frequencies, case.pairing, 0, Direction::Forward, at).unwrap();
        (x, *layout)
    };
    let inputs = case.inputs.tensor();
    let q = project(&inputs, "query_proj", [1, 9, 2, 4]);
    let k = rotated(&project(&inputs, "key_proj", [1, 9, 2, 4]));
    let v = project(&inputs, "value_proj", [1, 9, 2, 8]);
    let turned = rotated(&q);
    let tensor = |(x, layout): &'_ (Vec<f64>, Layout)| Both { wide: x.clone(), ..Both::new(Vec::new(), *layout) };
    let [unturned, q, k, v] = [&q, &turned, &k, &v].map(tensor);
    for before_rotation in [false, true] {
        let embeddings = case.weights["cope.position_embeddings"].tensor();
        let cope = ContextualPe::new(&embeddings).query(&if before_rotation { &unturned } else { &q }.tensor());
        let attended = attention(&Attention::new(&q.tensor(), &k.tensor(), &v.tensor()).causal().cope(cope)).unwrap();
        let (expected, _) =
            project(&Tensor::new(&attended.out, of([1, 9, 2, 8])).unwrap(), "output_proj", [1, 9, 1, 19]);
        let settings = Masked { causal: true, before_rotation, ..Masked::default() };
        let got = case.reference(&settings.of(&case, Both::tensor, Both::tensor));
        assert_near(&format!("before rotation: {before_rotation}"), &got, &expected, 1e-12);
    }
}

/// Scratch memory anywhere in the caller's buffers, and used again.
#[test]
fn a_callers_scratch() {
    let mut random = Random::new(35);
    let case = Case::random(&mut random, [2, 11, 12], [4, 2, 6]).with_positions(&mut random, 6, 5);
    let settings = Masked { causal: true, before_rotation: true, ..Masked::default() };
    let expected = case.reference(&settings.of(&case, Both::tensor, Both::tensor));
    let (layer, output) = (settings.of(&case, Both::view, Both::i32_view), case.output());
    let module = Module::new(&layer, &output).rotate(&case.rope(), Positions::Start(0));
    for module in [module.clone(), module.unfused()] {
        let elements = module.scratch_elements(gpu()).unwrap();
        let view = |elements: usize, offset: usize| {
            let all = gpu().zeros(ElementType::F32, [1, 1, 1, elements + offset]).unwrap();
            View::new(all.buffer(), ElementType::F32, of([1, 1, 1, elements]).offset_by(offset).unwrap()).unwrap()
        };
        let scratch = ModuleScratch {
            projected: view(elements.projected, 5),
            attended: view(elements.attended, 3),
            attention: view(elements.attention, 17),
        };
        let with_scratch = module.clone().scratch(&scratch);
        assert_near("first", &run(&with_scratch, &output), &expected, TOLERANCE);
        assert_near("again", &run(&with_scratch, &output), &expected, TOLERANCE);
        let refused = |scratch: ModuleScratch<View>| match module.clone().scratch(&scratch).prepare(gpu()) {
            Err(error) if error.kind() == ErrorKind::Overlap => format!("{} meets {}", error.argument(), error.was()),
            Err(error) if error.kind() == ErrorKind::Tensor => error.argument().to_owned(),
            other => panic!("should have been refused: {other:?}"),
        };
        let whole = || scratch.clone();
        let small = view(elements.projected / 2, 0);
        assert_eq!(refused(ModuleScratch { projected: small, ..whole() }), "scratch.projected");
        let small = view(elements.attended / 2, 0);
        assert_eq!(refused(ModuleScratch { attended: small, ..whole() }), "scratch.attended");
        let met = refused(ModuleScratch { attended: scratch.projected.clone(), ..whole() });
        assert_eq!(met, "scratch.attended meets scratch.projected");
        let buffer = gpu().upload_as(ElementType::F32, &vec![0.0; 5000], [1, 1, 1, 5000]).unwrap();
        let weight = View::new(buffer.buffer(), ElementType::F32, case.weights["key_proj.weight"].layout).unwrap();
        let weights = SelfAttentionWeights::from_state_dict(|name| match name {
            "key_proj.weight" => Some(weight.clone()),
            _ => case.weights.get(name).map(Both::view),
        });
        let in_scratch = SelfAttention::new(&case.inputs.view(), &weights.unwrap(), 4, 2);
        let in_scratch = Module::new(&in_scratch, &output).scratch(&ModuleScratch { projected: buffer, ..whole() });
        let overlap = in_scratch.prepare(gpu()).unwrap_err();
        assert!(overlap.to_string().starts_with("scratch.projected: meets key_proj.weight"), "{overlap}");
    }
}

/// The fused form has no memory for each pair of tokens.
#[test]
fn fused_memory_grows_with_the_tokens() {
    let elements = |tokens: usize, unfused: bool| {
        let zeros = |shape| gpu().zeros(ElementType::F32, shape).unwrap();
        let linear = |outputs, inputs| Linear { weight: zeros([1, outputs, 1, inputs]), bias: None };
        let weights = SelfAttentionWeights {
            query: linear(32, 16),
            key: linear(16, 16),
            value: linear(16, 16),
            output: linear(16, 32),
            position_embeddings: Some(zeros([1, 8, 1, 10])),
        };
        let layer =
            SelfAttention::new(&zeros([1, tokens, 1, 16]), &weights, 4, 2).attend(|attention| attention.causal());
        let module = Module::new(&layer, &zeros([1, tokens, 1, 16]));
        let module = if unfused { module.unfused() } else { module };
        let ModuleScratch { projected, attended, attention } = module.scratch_elements(gpu()).unwrap();
        (projected + attended, attention)
    };
    let (between, attention) = elements(2000, false);
    // Queries, keys, values and what is found, of 32 + 16 + 16 + 32 channels, and four heads' ten positions.
    assert!((between as f64 / (2000.0 * 96.0) - 1.0).abs() < 0.01, "{between}");
    assert!(attention < 2000 * 45, "{attention}");
    assert!(elements(2000, true).1 > 2000 * 2000);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let mut random = Random::new(36);
    let case = || Case::random(&mut Random::new(36), [1, 3, 12], [4, 2, 8]).with_positions(&mut Random::new(3), 8, 5);
    let missing = |name: &str| {
        let case = case();
        SelfAttentionWeights::from_state_dict(|wanted| case.weights.get(wanted).filter(|_| wanted != name).cloned())
            .err()
            .map(|error| error.to_string())
    };
    let rotated = case();
    let twice = rotated
        .layer(Both::view)
        .attend(|attention| attention.rotate(Rotation::new(&rotated.frequencies, rotated.pairing)));
    let twice = Module::new(&twice, &rotated.output()).rotate(&rotated.rope(), Positions::Start(0)).prepare(gpu());
    expect_refused(twice, ErrorKind::Setting, "rotate");
    for layer in ["query_proj", "key_proj", "value_proj", "output_proj"] {
        let weight = format!("{layer}.weight");
        assert!(missing(&weight).unwrap().starts_with(&format!("{weight}: was missing")), "{weight}");
        assert_eq!(missing(&format!("{layer}.bias")), None);
    }
    assert_eq!(missing("cope.position_embeddings"), None);
    // One that has another shape, by its name.
    for (name, shape) in [
        ("query_proj.weight", [1, 31, 1, 12]),
        ("query_proj.weight", [1, 32, 1, 13]),
        ("key_proj.weight", [1, 32, 1, 12]),
        ("value_proj.weight", [1, 25, 1, 12]),
        ("output_proj.weight", [1, 15, 1, 46]),
        ("query_proj.bias", [1, 1, 1, 31]),
        ("output_proj.bias", [1, 15, 1, 1]),
        ("cope.position_embeddings", [1, 7, 1, 5]),
    ] {
        let mut wrong = case();
        wrong.weights.insert(name.into(), Both::random(&mut random, shape, 1.0));
        let module = Module::new(&wrong.layer(Both::view), &wrong.output()).prepare(gpu());
        let expected = name.trim_start_matches("cope.");
        expect_refused(module, ErrorKind::Tensor, expected);
        let host = self_attention(&wrong.layer(Both::tensor), |_, _| Ok(()));
        expect_refused(host, ErrorKind::Tensor, expected);
    }
    for (heads, kv_heads) in [(0, 0), (4, 0), (4, 3), (usize::MAX, usize::MAX)] {
        let wrong = Case { heads, kv_heads, ..case() };
        let module = Module::new(&wrong.layer(Both::view), &wrong.output()).prepare(gpu());
        let host = self_attention(&wrong.layer(Both::tensor), |_, _| Ok(()));
        assert!(module.is_err() && host.is_err(), "{heads}, {kv_heads}");
    }
    let right = case();
    let layer = right.layer(Both::view);
    let narrow = gpu().zeros(ElementType::F32, [1, 3, 1, 12]).unwrap();
    let refused = Module::new(&layer, &narrow).prepare(gpu());
    expect_refused(refused, ErrorKind::Tensor, "output");
    let keep = gpu().upload_positions(&[1; 4], [1, 4]).unwrap();
    let keep = View::new(keep.buffer(), ElementType::I32, of([1, 1, 1, 4])).unwrap();
    let refused = Module::new(&layer.attend(|attention| attention.keep(&keep)), &right.output()).prepare(gpu());
    expect_refused(refused, ErrorKind::Tensor, "keep");
    // Recorded again, it would find outputs in place of what it reads.
    let over = |both: &Both| {
        let room = gpu().zeros(ElementType::F32, [1, 1, 1, 200]).unwrap();
        let view = |layout| View::new(room.buffer(), ElementType::F32, layout).unwrap();
        (view(both.layout), view(of([1, 3, 1, 15])))
    };
    let (embeddings, output) = over(&right.weights["cope.position_embeddings"]);
    let layer = right.layer(Both::view).attend(|attention| attention.cope(ContextualPe::new(&embeddings)));
    let refused = Module::new(&layer, &output).prepare(gpu());
    assert!(
        matches!(&refused, Err(error) if error.kind() == ErrorKind::Overlap && error.was() == "position_embeddings"),
        "{refused:?}"
    );
    let output = right.output();
    let positions = View::new(output.buffer(), ElementType::I32, of([1, 3, 1, 1])).unwrap();
    let module = Module::new(&right.layer(Both::view), &output).rotate(&right.rope(), Positions::PerToken(positions));
    assert!(
        matches!(module.prepare(gpu()), Err(error) if error.kind() == ErrorKind::Overlap && error.was() == "positions")
    );
}
