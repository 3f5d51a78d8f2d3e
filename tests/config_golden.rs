//! Configs of real models against what transformers makes of them.
#![cfg(feature = "config")]

use phasor::config::ModelRope;
use serde_json::Value;

fn cases() -> Vec<Value> {
    let file: Value = serde_json::from_str(include_str!("data/rope_types.json")).unwrap();
    file["cases"].as_array().unwrap().clone()
}

/// transformers computes frequencies in float32, and attention factors in float64.
#[test]
fn frequencies_and_attention_factors_of_transformers() {
    let cases = cases();
    assert_eq!(cases.len(), 21);
    for case in cases {
        let name = format!("{}, {}, {}", case["name"], case["seq_len"], case["layer_type"]);
        let model = ModelRope::from_hugging_face(&case["config"].to_string()).expect(&name);
        let layer = match case["layer_type"].as_str() {
            Some(layer_type) => model.layer_type(layer_type),
            None => model.layer(0),
        };
        let layer = layer.expect(&name);
        let rope = layer.frequencies(case["seq_len"].as_u64().unwrap_or(0) as u32).expect(&name);
        assert_eq!(layer.rope_type(), case["rope_type"].as_str().unwrap(), "{name}");
        let expected: Vec<f64> = case["inv_freq"].as_array().unwrap().iter().map(|w| w.as_f64().unwrap()).collect();
        assert_eq!(rope.pairs(), expected.len(), "{name}");
        for (i, (got, expected)) in rope.inv_freq().iter().zip(expected).enumerate() {
            let off = (got / expected - 1.0).abs();
            assert!(off <= 2e-6, "{name}: pair {i} is {got}, not {expected}, off by {off:e}");
        }
        let (got, expected) = (rope.attention_factor(), case["attention_factor"].as_f64().unwrap());
        assert!((got / expected - 1.0).abs() <= 1e-12, "{name}: attention factor {got}, not {expected}");
        assert_eq!(model.warnings(), [] as [String; 0], "{name}");
    }
}
