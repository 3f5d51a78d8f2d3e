//! Any JSON at all: no panic, and what is accepted makes sense.
#![cfg(feature = "config")]

use phasor::config::{ModelRope, Spec};
use proptest::prelude::*;
use serde_json::{Map, Value};

const TYPES: [&str; 14] = [
    "default",
    "linear",
    "dynamic",
    "yarn",
    "longrope",
    "llama3",
    "proportional",
    "axial",
    "ntk",
    "ntk_alpha",
    "su",
    "mrope",
    "deepseek_yarn",
    "nonsense",
];

const MODELS: [&str; 20] = [
    "llama",
    "gemma3_text",
    "gemma4",
    "deepseek_v3",
    "deepseek_v4",
    "gpt_oss",
    "phi3",
    "olmo3",
    "qwen2_vl",
    "qwen3_vl_text",
    "ernie4_5_vl_moe",
    "smollm3",
    "llama4_text",
    "cohere2",
    "exaone4",
    "modernbert",
    "mimo_v2_flash",
    "qwen3_next",
    "ministral3",
    "unheard_of",
];

const SETTINGS: [&str; 24] = [
    "rope_theta",
    "factor",
    "alpha",
    "original_max_position_embeddings",
    "max_position_embeddings",
    "attention_factor",
    "attn_factor",
    "beta_fast",
    "beta_slow",
    "mscale",
    "mscale_all_dim",
    "truncate",
    "low_freq_factor",
    "high_freq_factor",
    "short_factor",
    "long_factor",
    "short_mscale",
    "long_mscale",
    "partial_rotary_factor",
    "mrope_section",
    "mrope_interleaved",
    "extrapolation_factor",
    "mixed_b",
    "llama_4_scaling_beta",
];

const SURROUNDINGS: [&str; 21] = [
    "hidden_size",
    "num_attention_heads",
    "head_dim",
    "num_hidden_layers",
    "max_position_embeddings",
    "rope_theta",
    "rope_local_base_freq",
    "partial_rotary_factor",
    "rotary_dim",
    "rotary_pct",
    "qk_rope_head_dim",
    "layer_types",
    "no_rope_layers",
    "no_rope_layer_interval",
    "sliding_window",
    "sliding_window_pattern",
    "compress_ratios",
    "rope_interleave",
    "original_max_position_embeddings",
    "global_head_dim",
    "layer_rope_theta",
];

/// A number of the sort that files hold, or one that breaks things.
fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => prop::sample::select(vec![0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 32.0, 40.0, 64.0, 128.0, 4096.0, 8192.0, 1e4, 1e6]),
        1 => prop::sample::select(vec![0.0, -1.0, 1e-300, 1e300, 5e-324, 4294967295.0, 4294967296.0, 63.0, 3.5]),
        1 => any::<f64>().prop_filter("JSON has no other", |number| number.is_finite()),
    ]
    .prop_map(|number| match number {
        whole if whole.fract() == 0.0 && whole.abs() < 1e15 => Value::from(whole as i64),
        other => Value::from(other),
    })
}

fn value() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec!["full_attention", "sliding_attention", "conv", "LLLG", "", "é"]);
    let item = prop_oneof![number(), word.clone().prop_map(Value::from), any::<bool>().prop_map(Value::from)];
    prop_oneof![
        12 => number(),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => word.prop_map(Value::from),
        2 => prop::collection::vec(item, 0..40).prop_map(Value::from),
        1 => (number(), 1..70_usize).prop_map(|(number, length)| vec![number; length].into()),
    ]
}

fn object(keys: &'static [&'static str], most: usize) -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((prop::sample::select(keys), value()), 0..most)
        .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn settings() -> impl Strategy<Value = Value> {
    (object(&SETTINGS, 10), prop::sample::select(&TYPES[..]), any::<bool>()).prop_map(|(mut settings, name, new)| {
        settings.insert(if new { "rope_type" } else { "type" }.into(), name.into());
        settings.into()
    })
}

fn config() -> impl Strategy<Value = Value> {
    let nested = (settings(), settings()).prop_map(|(full, sliding)| {
        Value::from(Map::from_iter([("full_attention".into(), full), ("sliding_attention".into(), sliding)]))
    });
    let rope = prop_oneof![4 => settings(), 1 => nested, 1 => value()];
    let names = (prop::sample::select(&MODELS[..]), prop::sample::select(vec!["rope_scaling", "rope_parameters"]));
    (object(&SURROUNDINGS, 8), names, rope, any::<bool>()).prop_map(|(mut config, (model, key), rope, usual)| {
        if usual {
            config.extend([("head_dim".into(), 64.into()), ("num_hidden_layers".into(), 4.into())]);
        }
        config.insert("model_type".into(), model.into());
        config.insert(key.into(), rope);
        config.into()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_accepted_config_makes_sense(config in config()) {
        let Ok(model) = ModelRope::from_hugging_face(&config.to_string()) else { return Ok(()) };
        prop_assert!(!model.kinds().is_empty());
        for rope in model.kinds() {
            prop_assert!(rope.rotary.channels().end <= rope.head_dim);
            prop_assert_eq!(rope.axes.axis_of_pair().len(), rope.rotary.pairs() as usize);
            prop_assert!(rope.axes.axis_of_pair().iter().all(|&axis| axis < rope.axes.count()));
            prop_assert!(rope.softmax_scale_multiplier.is_finite() && rope.softmax_scale_multiplier > 0.0);
            for seq_len in [0, 1, 4096, 4097, u32::MAX] {
                let frequencies = match rope.frequencies(seq_len) {
                    Ok(frequencies) => frequencies,
                    // A law that grows with the sequence may grow out of the numbers.
                    Err(_) => { prop_assert!(seq_len > 0 && rope.law.depends_on_length()); continue }
                };
                prop_assert_eq!(frequencies.pairs(), rope.rotary.pairs() as usize);
                prop_assert!(frequencies.inv_freq().iter().all(|w| w.is_finite() && *w >= 0.0));
                prop_assert!(frequencies.attention_factor().is_finite() && frequencies.attention_factor() > 0.0);
            }
        }
    }

    #[test]
    fn an_accepted_spec_makes_sense(settings in settings(), dim in 0..300_u32) {
        let Ok(spec) = Spec::parse(&settings.to_string()) else { return Ok(()) };
        let Ok(frequencies) = spec.law().frequencies(spec.rotary_dim(dim)) else { return Ok(()) };
        prop_assert!(frequencies.inv_freq().iter().all(|w| w.is_finite() && *w >= 0.0));
        prop_assert_eq!(frequencies.rotary_dim(), spec.rotary_dim(dim) as usize);
    }

    #[test]
    fn any_text_is_answered(text in "\\PC*") {
        let _ = ModelRope::from_hugging_face(&text);
        let _ = Spec::parse(&text);
    }
}
