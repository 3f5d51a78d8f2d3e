//! GGUF metadata, cut down by hand to what matters, against what llama.cpp makes of it.
#![cfg(feature = "config")]

#[path = "common/refused.rs"]
mod refused;

use std::collections::BTreeMap;

use phasor::config::{LayerRope, MetadataValue, ModelRope, RopeTensors};
use phasor::frequencies::{Divided, Law, Linear, Llama3, LongRope, Magnitude, NtkAware, Plain, QueryScale, Yarn};
use phasor::{ErrorKind, Pairing, Result, Rotary};
use refused::expect_refused;

/// A value from whatever a test writes.
trait Written {
    fn value(self) -> MetadataValue;
}

impl Written for f64 {
    fn value(self) -> MetadataValue {
        MetadataValue::Number(self)
    }
}

impl Written for &str {
    fn value(self) -> MetadataValue {
        MetadataValue::Text(self.into())
    }
}

impl Written for Vec<f64> {
    fn value(self) -> MetadataValue {
        MetadataValue::Numbers(self)
    }
}

/// The metadata of a file under construction.
#[derive(Clone)]
struct File(String, BTreeMap<String, MetadataValue>);

/// Four layers with heads of 128 channels.
fn file(architecture: &str) -> File {
    let empty = File(architecture.to_owned(), BTreeMap::new());
    let mut file = empty.with("block_count", 4.0).with("embedding_length", 4096.0).with("attention.head_count", 32.0);
    file.1.insert("general.architecture".into(), architecture.value());
    file.with("context_length", 131_072.0)
}

impl File {
    fn with(mut self, key: &str, value: impl Written) -> Self {
        self.1.insert(format!("{}.{key}", self.0), value.value());
        self
    }

    fn read(&self) -> Result<ModelRope> {
        ModelRope::from_gguf(&self.1, RopeTensors::default())
    }

    fn layer(&self, index: usize) -> LayerRope {
        self.read().unwrap().layer(index).unwrap().clone()
    }

    fn rotating(&self) -> Vec<usize> {
        let model = self.read().unwrap();
        (0..model.layers().unwrap()).filter(|&i| model.layer(i).unwrap().rotates).collect()
    }
}

#[track_caller]
fn assert_refused<T>(result: Result<T>, field: &str) {
    expect_refused(result, ErrorKind::Setting, field);
}

#[test]
fn the_architecture_decides_the_pairing() {
    for (architecture, pairing) in [
        ("llama", Pairing::Interleaved),
        ("mistral3", Pairing::Interleaved),
        ("command-r", Pairing::Interleaved),
        ("deepseek2", Pairing::Interleaved),
        ("glm4", Pairing::Interleaved),
        ("smollm3", Pairing::Interleaved),
        ("qwen2", Pairing::HalfSplit),
        ("qwen3moe", Pairing::HalfSplit),
        ("gemma3", Pairing::HalfSplit),
        ("phi3", Pairing::HalfSplit),
        ("gptneox", Pairing::HalfSplit),
        ("gpt-oss", Pairing::HalfSplit),
        ("olmo2", Pairing::HalfSplit),
        ("glm4moe", Pairing::HalfSplit),
        ("qwen2vl", Pairing::HalfSplit),
    ] {
        assert_eq!(file(architecture).layer(0).pairing, pairing, "{architecture}");
    }
    assert_eq!(file("jamba").rotating(), [] as [usize; 0]);
    assert_refused(file("brand-new").read(), "general.architecture");
    assert_refused(ModelRope::from_gguf(&BTreeMap::new(), RopeTensors::default()), "general.architecture");
}

#[test]
fn plain_and_linear() {
    let plain = file("llama").layer(3);
    assert_eq!((plain.law, plain.head_dim, plain.rotary), (Plain::new(1e4).into(), 128, Rotary::whole(128).unwrap()));
    let linear = file("llama").with("rope.freq_base", 1e6).with("rope.scaling.factor", 4.0);
    assert_eq!(linear.layer(0).law, Linear::new(1e6, 4.0).into(), "no type means linear");
    let older = file("llama").with("rope.scale_linear", 4.0);
    assert_eq!(older.layer(0).law, Linear::new(1e4, 4.0).into());
    let none = linear.with("rope.scaling.type", "none");
    assert_eq!(none.layer(0).law, Plain::new(1e6).into());
    let partial = file("glm4").with("rope.dimension_count", 64.0);
    assert_eq!(partial.layer(0).rotary, Rotary::new(128, 64, 0).unwrap());
    let heads = file("llama").with("attention.head_count", vec![32.0, 0.0, 32.0, 0.0]);
    assert_eq!(heads.layer(0).head_dim, 128);
}

#[test]
fn llama_3_comes_as_divisors() {
    let law = Llama3::new(5e5, 8.0, 8192).frequencies(128).unwrap();
    let plain = Plain::new(5e5).frequencies(128).unwrap();
    let divisors: Vec<f32> = plain.inv_freq().iter().zip(law.inv_freq()).map(|(p, w)| (p / w) as f32).collect();
    let tensors = RopeTensors { freqs: Some(&divisors), ..RopeTensors::default() };
    let metadata = file("llama").with("rope.freq_base", 5e5).1;
    let model = ModelRope::from_gguf(&metadata, tensors).unwrap();
    let got = model.layer(0).unwrap().frequencies(0).unwrap();
    for (got, expected) in got.inv_freq().iter().zip(law.inv_freq()) {
        // The divisors are f32.
        assert!((got / expected - 1.0).abs() <= 2f64.powi(-24), "{got} instead of {expected}");
    }
    let short = RopeTensors { freqs: Some(&divisors[..7]), ..RopeTensors::default() };
    assert_refused(ModelRope::from_gguf(&metadata, short), "divisors");
}

#[test]
fn gemma_4_stops_pairs_with_huge_divisors() {
    let divisors: Vec<f32> = (0..256).map(|i| if i < 64 { 1.0 } else { 1e30 }).collect();
    let metadata = file("gemma4")
        .with("attention.key_length", 512.0)
        .with("attention.key_length_swa", 256.0)
        .with("rope.dimension_count", 512.0)
        .with("rope.dimension_count_swa", 256.0)
        .with("rope.freq_base", 1e6)
        .with("rope.freq_base_swa", 1e4)
        .with("attention.sliding_window", 512.0)
        .with("attention.sliding_window_pattern", vec![1.0, 1.0, 1.0, 0.0]);
    let tensors = RopeTensors { freqs: Some(&divisors), ..RopeTensors::default() };
    let model = ModelRope::from_gguf(&metadata.1, tensors).unwrap();
    let full = model.layer(3).unwrap();
    assert_eq!(full.law, Divided::new(Plain::new(1e6), divisors.iter().map(|&d| f64::from(d)).collect()).into());
    let rope = full.frequencies(0).unwrap();
    assert_eq!(rope.inv_freq().iter().filter(|&&w| w == 0.0).count(), 192);
    let sliding = model.layer(0).unwrap();
    assert_eq!((sliding.head_dim, sliding.law.clone()), (256, Plain::new(1e4).into()));
    assert_eq!(model.layer_type("full_attention").unwrap(), full);
}

#[test]
fn phi_3_comes_as_two_lists() {
    let (short, long) = (vec![1.5f32; 48], vec![4.0f32; 48]);
    let tensors = RopeTensors { freqs: None, factors_long: Some(&long), factors_short: Some(&short) };
    let metadata = file("phi3")
        .with("embedding_length", 3072.0)
        .with("rope.scaling.original_context_length", 4096.0)
        .with("rope.scaling.attn_factor", 1.1902381);
    let model = ModelRope::from_gguf(&metadata.1, tensors).unwrap();
    let mut expected = LongRope::new(1e4, vec![1.5; 48], vec![4.0; 48], 4096, 1.0);
    expected.attention_factor = Some(1.1902381);
    assert_eq!(model.layer(0).unwrap().law, expected.into());
    let first = |seq_len| model.layer(0).unwrap().frequencies(seq_len).unwrap().inv_freq()[0];
    assert_eq!((first(4096), first(4097)), (1.0 / 1.5, 0.25));
    assert_eq!(model.layer(0).unwrap().frequencies(0).unwrap().attention_factor(), 1.1902381);
    // rope_freqs wins; one list alone is no rope.
    let ones = vec![1.0f32; 48];
    let all = RopeTensors { freqs: Some(&ones), ..tensors };
    let without_factor = metadata.clone().with("rope.scaling.attn_factor", 1.0);
    let model = ModelRope::from_gguf(&without_factor.1, all).unwrap();
    assert_eq!(model.layer(0).unwrap().frequencies(0).unwrap().inv_freq()[0], 1.0);
    let half = RopeTensors { factors_long: None, ..tensors };
    assert_refused(ModelRope::from_gguf(&metadata.1, half), "rope_factors_long.weight");
    assert_refused(metadata.read(), "phi3.rope.scaling.attn_factor");
}

#[test]
fn yarn() {
    let qwen = file("qwen2")
        .with("rope.scaling.type", "yarn")
        .with("rope.scaling.factor", 4.0)
        .with("rope.scaling.original_context_length", 32768.0)
        .with("rope.scaling.yarn_beta_fast", 16.0);
    let expected =
        |attention_factor| Yarn { magnitude: Magnitude::Explicit(attention_factor), ..Yarn::new(1e4, 4.0, 32768) };
    assert_eq!(qwen.layer(0).law, expected(0.1 * 4f64.ln() + 1.0).into(), "only some architectures read the betas");
    let multiplied = qwen.clone().with("rope.scaling.attn_factor", 2.0);
    assert_eq!(multiplied.layer(0).law, expected(2.0 * (0.1 * 4f64.ln() + 1.0)).into());
    assert_refused(qwen.with("rope.scaling.type", "yarm").read(), "qwen2.rope.scaling.type");

    // gpt-oss: layers with a window are scaled too. Olmo 3: they are not.
    let windows = |architecture| {
        file(architecture)
            .with("attention.sliding_window", 128.0)
            .with("rope.freq_base", 150_000.0)
            .with("rope.scaling.type", "yarn")
            .with("rope.scaling.factor", 32.0)
            .with("rope.scaling.original_context_length", 4096.0)
    };
    assert_eq!(windows("gpt-oss").layer(0).law.name(), "yarn");
    assert_eq!(windows("gpt-oss").layer(1).law.name(), "yarn");
    assert_eq!(windows("olmo2").layer(0).law, Plain::new(150_000.0).into());
    assert_eq!(windows("olmo2").layer(3).law.name(), "yarn");
}

#[test]
fn deepseek() {
    let v3 = |log_multiplier: f64| {
        file("deepseek2")
            .with("attention.key_length", 192.0)
            .with("rope.dimension_count", 64.0)
            .with("rope.scaling.type", "yarn")
            .with("rope.scaling.factor", 40.0)
            .with("rope.scaling.original_context_length", 4096.0)
            .with("rope.scaling.yarn_log_multiplier", log_multiplier)
    };
    for (log_multiplier, multiplier) in [(0.1, 1.87385), (0.0707, 1.58963)] {
        let rope = v3(log_multiplier).layer(0);
        assert_eq!((rope.head_dim, rope.rotary), (64, Rotary::whole(64).unwrap()));
        assert_eq!(rope.frequencies(0).unwrap().attention_factor(), 1.0);
        assert!((rope.softmax_scale_multiplier - multiplier).abs() < 1e-5);
    }
}

#[test]
fn windows_have_their_own_base() {
    let gemma = file("gemma3")
        .with("block_count", 6.0)
        .with("attention.sliding_window", 1024.0)
        .with("rope.freq_base", 1e6)
        .with("rope.scaling.type", "linear")
        .with("rope.scaling.factor", 8.0);
    for i in 0..5 {
        assert_eq!(gemma.layer(i).law, Plain::new(1e4).into());
    }
    assert_eq!(gemma.layer(5).law, Linear::new(1e6, 8.0).into());
    let denser = gemma.clone().with("attention.sliding_window_pattern", 2.0);
    assert_eq!(denser.layer(1).law, Linear::new(1e6, 8.0).into());
    let own = gemma.with("rope.freq_base_swa", 2e4);
    assert_eq!(own.layer(0).law, Plain::new(2e4).into());
    let first = file("modern-bert").with("attention.sliding_window", 128.0).with("rope.freq_base", 160_000.0);
    assert_eq!(first.layer(0).law, Plain::new(160_000.0).into());
    assert_eq!(first.layer(1).law, Plain::new(1e4).into());
}

#[test]
fn layers_without_rope() {
    assert_eq!(file("smollm3").rotating(), [0, 1, 2]);
    let llama4 = file("llama4");
    assert_eq!(llama4.rotating(), [0, 1, 2]);
    assert_eq!(llama4.layer(3).query_scale, Some(QueryScale { scale: 0.1, window: 8192, shift: 1 }));
    assert_eq!(llama4.layer(0).query_scale, None);
    assert_eq!(llama4.with("attention.sliding_window", 0.0).rotating(), [0, 1, 2, 3]);
    assert_eq!(file("cohere2").with("attention.sliding_window", 4096.0).rotating(), [0, 1, 2]);
    assert_eq!(file("exaone4").rotating(), [0, 1, 2, 3]);
    assert_eq!(file("exaone4").with("attention.sliding_window", 4096.0).rotating(), [0, 1, 2]);
    let dense = file("cohere2moe").with("attention.sliding_window", 4096.0).with("leading_dense_block_count", 1.0);
    assert_eq!(dense.rotating(), [0, 1, 2, 3]);
    assert_eq!(file("granite_swa").with("attention.rope_pattern", vec![1.0, 0.0, 1.0, 0.0]).rotating(), [0, 2]);
}

#[test]
fn several_axes() {
    let sections =
        |architecture: &str, list: [f64; 4]| file(architecture).with("rope.dimension_sections", list.to_vec()).layer(0);
    let second = sections("qwen2vl", [16.0, 24.0, 24.0, 0.0]);
    assert_eq!(second.axes.axis_of_pair()[14..18], [0, 0, 1, 1]);
    // ggml gives what is left over by interleaving to a fourth axis.
    let third = sections("qwen3vl", [24.0, 20.0, 20.0, 0.0]);
    assert_eq!(third.axes.count(), 4);
    assert_eq!(third.axes.axis_of_pair()[58..], [1, 2, 0, 3, 3, 0]);
    assert_eq!(sections("glm4", [16.0, 24.0, 24.0, 0.0]).pairing, Pairing::HalfSplit);
    let vision = file("hunyuan_vl").with("rope.scaling.alpha", 1000.0).layer(0);
    assert_eq!(vision.law, NtkAware::new(1e4, 1000.0).into());
    let wrong = file("qwen2vl").with("rope.dimension_sections", vec![1.0, 2.0, 3.0, 0.0]);
    assert_refused(wrong.read(), "mrope_section");
    let negative = file("qwen2vl").with("rope.dimension_sections", vec![-1.0]);
    assert_refused(negative.read(), "qwen2vl.rope.dimension_sections");
}

#[test]
fn impossible_metadata() {
    assert_refused(file("llama").with("block_count", 0.0).read(), "llama.block_count");
    assert_refused(file("llama").with("block_count", 1e9).read(), "llama.block_count");
    assert_refused(file("llama").with("block_count", "four").read(), "llama.block_count");
    assert_refused(file("llama").with("attention.head_count", 0.0).read(), "llama.attention.head_count");
    assert_refused(file("llama").with("attention.head_count", 32.5).read(), "llama.attention.head_count");
    assert_refused(file("llama").with("rope.freq_base", 1.0).read(), "llama.rope.freq_base");
    let backwards = file("qwen2").with("rope.scaling.type", "yarn").with("rope.scaling.original_context_length", 2.0);
    assert_refused(backwards.read(), "qwen2.rope.scaling.original_context_length");
    let muted = file("qwen2").with("rope.scaling.type", "yarn").with("rope.scaling.attn_factor", 0.0);
    assert_refused(muted.read(), "qwen2.rope.scaling.attn_factor");
    assert_refused(file("llama").with("rope.freq_base", f64::NAN).read(), "llama.rope.freq_base");
    assert_refused(file("llama").with("rope.scaling.factor", -4.0).read(), "llama.rope.scaling.factor");
    assert_refused(file("llama").with("rope.dimension_count", 63.0).read(), "rotary_dim");
    assert_refused(file("llama").with("rope.dimension_count", 256.0).read(), "rotary_dim");
    let mut missing = file("llama");
    missing.1.remove("llama.block_count");
    assert_refused(missing.read(), "llama.block_count");
}

#[test]
fn every_law_is_named_as_in_hugging_face() {
    let law: Law = Divided::new(Plain::new(1e4), vec![1.0; 4]).into();
    assert_eq!(law.name(), "default");
}
