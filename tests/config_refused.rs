//! What configs and settings are refused for, and that the error names the field and the value.
#![cfg(feature = "config")]

use phasor::config::{ModelRope, Spec};
use phasor::{Error, ErrorKind};
use serde_json::{Value, json};

#[track_caller]
fn assert_names(error: &Error, field: &str, value: &str) {
    assert_eq!((error.kind(), error.argument()), (ErrorKind::Setting, field), "{error}");
    assert!(error.was().contains(value), "{error} does not say {value}");
    assert!(!error.may_be().is_empty());
}

#[track_caller]
fn refused(config: Value, field: &str, value: &str) {
    match ModelRope::from_hugging_face(&config.to_string()) {
        Ok(model) => panic!("{field} should have been refused: {:?}", model.kinds()),
        Err(error) => assert_names(&error, field, value),
    }
}

/// A Llama with one key of its rope settings changed, or taken away by `null`.
fn llama(rope: &Value, key: &str, value: &Value) -> Value {
    let mut rope = rope.clone();
    rope[key] = value.clone();
    json!({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 2,
        "max_position_embeddings": 8192, "rope_scaling": rope})
}

#[test]
fn impossible_numbers() {
    let yarn = json!({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048});
    let llama3 = json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 2048});
    let longrope = json!({"rope_type": "longrope", "short_factor": vec![1.0; 32], "long_factor": vec![2.0; 32],
        "original_max_position_embeddings": 2048});
    let linear = json!({"rope_type": "linear", "factor": 2.0});
    let bad = [json!(0), json!(-1.5), json!("4"), json!([4]), json!(true), json!({"a": 1})];
    let ropes = [
        (&linear, vec!["factor", "rope_theta"]),
        (&yarn, vec!["factor", "attention_factor", "attn_factor", "original_max_position_embeddings", "rope_theta"]),
        (&llama3, vec!["factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"]),
        (&longrope, vec!["factor", "attention_factor", "short_mscale", "long_mscale", "short_factor", "long_factor"]),
    ];
    for (rope, keys) in ropes {
        for key in keys {
            for value in &bad {
                // A nested object makes the settings look like one object for each type of layer, and the only list
                // that is one is refused for its length, below.
                let is_list = value.is_array() && matches!(key, "short_factor" | "long_factor");
                if !value.is_object() && !is_list {
                    refused(llama(rope, key, value), &format!("rope_scaling.{key}"), &value.to_string());
                }
            }
        }
    }
    // Zero means absent for these, as in transformers; negative numbers mean nothing.
    for key in ["beta_fast", "beta_slow", "mscale", "mscale_all_dim"] {
        refused(llama(&yarn, key, &json!(-1)), &format!("rope_scaling.{key}"), "-1");
    }
    refused(llama(&yarn, "beta_fast", &json!(0.5)), "rope_scaling.beta_fast", "0.5");
    refused(llama(&yarn, "truncate", &json!("no")), "rope_scaling.truncate", "no");
    refused(
        llama(&yarn, "original_max_position_embeddings", &json!(3)),
        "rope_scaling.original_max_position_embeddings",
        "3",
    );
    refused(
        llama(&yarn, "original_max_position_embeddings", &json!(10.5)),
        "rope_scaling.original_max_position_embeddings",
        "10.5",
    );
    refused(llama(&llama3, "high_freq_factor", &json!(1)), "rope_scaling.high_freq_factor", "1");
    refused(llama(&llama3, "high_freq_factor", &json!(0.5)), "rope_scaling.high_freq_factor", "0.5");
    refused(llama(&longrope, "long_factor", &json!([1, 2])), "rope_scaling.long_factor", "a list of 2");
    refused(llama(&longrope, "short_factor", &json!([])), "rope_scaling.short_factor", "a list of 0");
    let mut with_zero = vec![1.0; 32];
    with_zero[7] = 0.0;
    refused(llama(&longrope, "short_factor", &json!(with_zero)), "rope_scaling.short_factor", "1.0");
    for theta in [0.0, 1.0, -1e4] {
        refused(llama(&linear, "rope_theta", &json!(theta)), "rope_scaling.rope_theta", &theta.to_string());
    }
    let latent = json!({"model_type": "deepseek_v3", "max_position_embeddings": 8192, "rope_scaling":
        {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048, "mscale_all_dim": 1e200}});
    refused(latent, "rope_scaling.mscale_all_dim", "1e200");
    let ntk = json!({"rope_type": "ntk_alpha", "alpha": 1e300});
    refused(llama(&ntk, "alpha", &json!(1e300)), "rope_scaling.alpha", "1");
}

#[test]
fn missing_fields() {
    let none = Value::Null;
    refused(llama(&json!({"rope_type": "linear"}), "x", &none), "rope_scaling.factor", "missing");
    refused(llama(&json!({"rope_type": "yarn"}), "x", &none), "rope_scaling.factor", "missing");
    refused(llama(&json!({"rope_type": "dynamic"}), "x", &none), "rope_scaling.factor", "missing");
    refused(llama(&json!({"rope_type": "ntk_alpha"}), "x", &none), "rope_scaling.alpha", "missing");
    refused(llama(&json!({"rope_type": "longrope"}), "x", &none), "rope_scaling.short_factor", "missing");
    let llama3 = json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0});
    refused(llama(&llama3, "x", &none), "rope_scaling.high_freq_factor", "missing");
    refused(json!({"model_type": "llama"}), "hidden_size or n_embd or d_model", "missing");
    refused(json!({"model_type": "llama", "hidden_size": 64}), "num_attention_heads or n_head or n_heads", "missing");
    let no_context = json!({"model_type": "llama", "head_dim": 64, "rope_scaling": {"type": "dynamic", "factor": 2}});
    refused(no_context, "rope_scaling.max_position_embeddings", "missing");
    let nested = json!({"model_type": "gemma3_text", "num_hidden_layers": 6,
        "rope_parameters": {"sliding_attention": {"rope_type": "default"}}});
    refused(nested, "rope_parameters.full_attention", "missing");
    refused(json!({"model_type": "mimo_v2_flash"}), "num_hidden_layers", "missing");
}

#[test]
fn unknown_types() {
    for key in ["rope_type", "type"] {
        let rope = json!({key: "yarm", "factor": 2.0});
        refused(llama(&rope, "x", &Value::Null), &format!("rope_scaling.{key}"), "yarm");
    }
    refused(llama(&json!({"rope_type": 5}), "x", &Value::Null), "rope_scaling.rope_type", "5");
    refused(json!({"model_type": "llama", "head_dim": 64, "rope_scaling": "linear"}), "rope_scaling", "linear");
    refused(json!({"model_type": 4, "head_dim": 64}), "model_type", "4");
}

#[test]
fn impossible_shapes() {
    let of = |key: &str, value: Value| {
        let mut config = json!({"model_type": "llama", "head_dim": 64, "num_hidden_layers": 4});
        config[key] = value;
        config
    };
    refused(of("head_dim", json!(63)), "rotary_dim", "63");
    refused(of("head_dim", json!(0)), "head_dim", "0");
    refused(of("head_dim", json!(1 << 20)), "rotary_dim", "1048576");
    refused(of("partial_rotary_factor", json!(1.5)), "partial_rotary_factor", "1.5");
    refused(of("partial_rotary_factor", json!(0)), "rotary_dim", "0");
    refused(of("rotary_dim", json!(128)), "rotary_dim", "128");
    refused(of("num_hidden_layers", json!(0)), "num_hidden_layers", "0");
    refused(of("num_hidden_layers", json!(4_000_000_000_u32)), "num_hidden_layers", "4000000000");
    refused(of("layer_types", json!(["full_attention"])), "layer_types", "a list of 1");
    refused(of("no_rope_layers", json!([1, 0])), "no_rope_layers", "a list of 2");
    refused(of("layer_rope_theta", json!([0.5, 1e4, 1e4, 1e4])), "layer_rope_theta", "0.5");
    refused(of("rope_scaling", json!({"mrope_section": [16, 24, 24]})), "rope_scaling.mrope_section", "[16, 24, 24]");
    refused(of("rope_scaling", json!({"mrope_section": [-1, 33]})), "rope_scaling.mrope_section", "[-1,33]");
    let sections = json!({"mrope_section": [16, 16], "mrope_interleaved": true});
    refused(of("rope_scaling", sections), "rope_scaling.mrope_section", "[16, 16]");
    let odd_axes = json!({"model_type": "llama", "head_dim": 66, "rope_parameters": {"rope_type": "axial"}});
    refused(odd_axes, "rotary_dim", "66");
    let pair = json!({"model_type": "llama", "head_dim": 2, "rope_parameters": {"rope_type": "ntk_alpha", "alpha": 2}});
    refused(pair, "rotary_dim", "2");
    let heads = json!({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 0});
    refused(heads, "num_attention_heads", "0");
    let text = json!({"model_type": "llava", "text_config": {"model_type": "llama", "head_dim": -64}});
    refused(text, "text_config.head_dim", "-64");
}

#[test]
fn no_json_at_all() {
    for text in ["", "{", "[]", "null", "3", "{\"rope_theta\": NaN}", "\u{0}", &"[".repeat(100_000)] {
        assert!(ModelRope::from_hugging_face(text).is_err());
        assert!(Spec::parse(text).is_err());
    }
}

#[test]
fn specs() {
    let spec = |value: Value| Spec::parse(&value.to_string());
    let refused = |value: Value, field: &str, was: &str| assert_names(&spec(value).unwrap_err(), field, was);
    refused(json!({"rope_type": "yarn", "factor": 16}), "original_max_position_embeddings", "missing");
    refused(json!({"rope_type": "yarn", "original_max_position_embeddings": 2048}), "factor", "missing");
    refused(json!({"rope_type": "linear", "factor": -2}), "factor", "-2");
    refused(json!({"rope_type": "ntk_alpha"}), "alpha", "missing");
    refused(json!({"rope_theta": 1}), "rope_theta", "1");
    refused(json!({"rope_type": "spiral"}), "rope_type", "spiral");

    let linear = spec(json!({"rope_type": "linear", "factor": 2, "colour": "red"})).unwrap();
    assert_eq!(linear.warnings().len(), 1);
    assert!(linear.warnings()[0].contains("colour"));
    assert_eq!(linear.rotary_dim(128), 128);
    let partial = spec(json!({"partial_rotary_factor": 0.25})).unwrap();
    assert_eq!((partial.law().name(), partial.rotary_dim(128)), ("default", 32));
    let proportional = spec(json!({"rope_type": "proportional", "partial_rotary_factor": 0.25})).unwrap();
    assert_eq!(proportional.rotary_dim(128), 128);
    let dynamic = json!({"rope_type": "dynamic", "factor": 2, "max_position_embeddings": 4096});
    assert!(spec(dynamic).unwrap().law().depends_on_length());
}

/// Its inner object would be one of many keys that change nothing, and the law the plain one.
#[test]
fn a_whole_config_where_settings_belong() {
    for key in ["rope_scaling", "rope_parameters"] {
        let text = json!({"rope_theta": 5e5, key: {"rope_type": "llama3"}}).to_string();
        let error = phasor::config::Spec::parse(&text).expect_err("this is no rope's settings").to_string();
        assert!(error.starts_with(key) && error.contains("config.json"), "{error}");
    }
}
