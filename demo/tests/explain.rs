//! `phasor explain`: every golden case, layers without rope, GGUF files, what looked wrong.

mod common;

use common::models::{Gguf, config, golden};
use common::{Scratch, json, well};
use serde_json::{Value, json};

/// Explains a config in words.
fn explain(of: &Value, more: &[&str]) -> String {
    let scratch = Scratch::new();
    config(&scratch.at("config.json"), of);
    well(scratch.path(), &[&["explain", "--config", "config.json"], more].concat())
}

#[track_caller]
fn says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} in\n{text}");
    }
}

#[test]
fn every_golden_case_is_explained() {
    for case in golden() {
        let (of, name) = (&case["config"], case["name"].as_str().unwrap());
        let text = explain(of, &[]);
        let rope = if of["rope_scaling"].is_null() { &of["rope_parameters"] } else { &of["rope_scaling"] };
        let settings = [&rope["rope_theta"], &of["rope_theta"], &of["rotary_emb_base"], &rope["factor"]];
        for setting in settings.into_iter().filter_map(Value::as_f64) {
            says(&text, &[&format!(" {setting}")]);
        }
        says(&text, &[case["rope_type"].as_str().unwrap(), "rope_theta", of["model_type"].as_str().unwrap()]);
        says(&text, &[&format!("{} pairs", case["inv_freq"].as_array().unwrap().len())]);
        let factor = case["attention_factor"].as_f64().unwrap();
        says(&text, &[&format!("factor {}", format!("{factor:.10}").trim_end_matches('0').trim_end_matches('.'))]);
        let longest = case["inv_freq"].as_array().unwrap().last().and_then(Value::as_f64).unwrap().recip();
        // Its first digits, as float32 may differ in the others.
        let digits = format!("{:.0}", longest * std::f64::consts::TAU);
        let plain = text.replace(',', "");
        // A dynamic law is explained at lengths of its own, and only by chance at the case's.
        if case["rope_type"] != "dynamic" {
            assert!(plain.contains(&digits[..digits.len().min(5)]), "{name}: {digits} in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 110 && line == line.trim_end()), "{text}");
    }
}

#[test]
fn layers_are_told_apart() {
    let of = |name: &str| golden().into_iter().find(|case| case["name"].as_str().unwrap().contains(name)).unwrap();
    let gemma = explain(&of("gemma")["config"], &[]);
    let sliding = ["layers 0-4 (sliding_attention): default, rope_theta 10000", "rope_local_base_freq"];
    says(&gemma, &[&sliding[..], &["layer 5 (full_attention): linear, rope_theta 1000000, factor 8"]].concat());
    // Two kinds of layers with one rope are one thing to say.
    says(&explain(&of("gpt-oss")["config"], &[]), &["every layer (sliding_attention, full_attention): yarn"]);
    let deepseek = explain(&of("deepseek")["config"], &[]);
    says(&deepseek, &["interleaved", "multiplied by 1.8738542071", "rope_scaling.mscale_all_dim", "qk_rope_head_dim"]);
    let llama = explain(&of("llama-3.1")["config"], &[]);
    says(&llama, &["29  unchanged     0-28", "6  blended       29-34", "29  interpolated  35-63  divided by 8"]);
    says(&llama, &["longest 20,473,564 tokens, 156 contexts; without scaling 2,559,196, 19.5 contexts"]);
}

#[test]
fn what_depends_on_the_length_is_shown_at_several() {
    let of = |name: &str| golden().into_iter().find(|case| case["name"].as_str().unwrap().contains(name)).unwrap();
    let dynamic = explain(&of("dynamic")["config"], &["--seq-len", "10000"]);
    // The base at four times the context is a value of transformers.
    says(&dynamic, &["up to 4096 tokens", "at 16384 tokens: alpha = 7, b = 72195.86", "at 10000 tokens"]);
    let longrope = explain(&of("phi-3")["config"], &[]);
    says(
        &longrope,
        &["up to 4096 tokens", "from 4097 tokens on", "sqrt(1 + ln 32 / ln 4096)", "divided by 1.01 to 64"],
    );
}

#[test]
fn layers_without_rope_and_unread_keys_are_named() {
    let llama4 = json!({"model_type": "llama4_text", "head_dim": 128, "num_hidden_layers": 8, "rope_theta": 5e5,
        "rope_scaling": {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "hihg_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}});
    let text = explain(&llama4, &[]);
    says(&text, &["layers 0-2, 4-6: llama3", "layers 3, 7: no rotation (NoPE)", "no_rope_layers"]);
    says(&text, &["multiplied by 1 + 0.1 ln(1 + floor((m + 1) / 8192))", "warnings", "rope_scaling.hihg_freq_factor"]);
}

#[test]
fn axes_and_offsets_are_shown() {
    let vision = json!({"model_type": "qwen2_vl", "head_dim": 128, "rope_scaling": {"type": "mrope",
        "mrope_section": [16, 24, 24]}});
    says(&explain(&vision, &[]), &["3 positions to a token", "axis 1  24 pairs  16-39", "rope_scaling.mrope_section"]);
    let trailing = json!({"model_type": "deepseek_v4", "head_dim": 512, "qk_rope_head_dim": 64, "num_hidden_layers": 1,
        "compress_ratios": [0]});
    says(&explain(&trailing, &[]), &["channels 448 to 511 of 512", "448 + 2i and 448 + 2i + 1"]);
}

#[test]
fn the_same_is_there_as_json() {
    let scratch = Scratch::new();
    for case in golden() {
        config(&scratch.at("c"), &case["config"]);
        let got = json(scratch.path(), &["explain", "--config", "c", "--json"]);
        let groups = got["groups"].as_array().unwrap();
        let of = |group: &&Value| {
            case["layer_type"]
                .as_str()
                .is_none_or(|name| group["layer_types"].as_array().unwrap().contains(&name.into()))
        };
        let group = groups.iter().find(of).unwrap();
        assert_eq!(group["rope_type"], case["rope_type"]);
        let numbers = group["numbers"].as_array().unwrap();
        assert!(numbers.iter().all(|number| !number["from"].as_str().unwrap().is_empty()), "{numbers:?}");
        for scaling in group["scaling"].as_array().unwrap() {
            let pairs: usize =
                scaling["bands"].as_array().unwrap().iter().map(|band| band["pairs"].as_array().unwrap().len()).sum();
            assert_eq!(pairs, case["inv_freq"].as_array().unwrap().len());
        }
    }
}

#[test]
fn a_gguf_file_is_explained_by_its_keys() {
    let scratch = Scratch::new();
    let file = Gguf::new("deepseek2").text("rope.scaling.type", "yarn").number("rope.scaling.factor", 40.0);
    let file = file.count("rope.scaling.original_context_length", 4096).count("rope.dimension_count", 8);
    file.number("rope.scaling.yarn_log_multiplier", 0.1)
        .number("rope.scaling.yarn_beta_fast", 16.0)
        .write(&scratch.at("m"));
    let text = well(scratch.path(), &["explain", "--gguf", "m"]);
    says(
        &text,
        &["m: deepseek2, 4 layers, a context of 8,192 tokens", "all 4 layers: yarn, rope_theta 500000, factor 40"],
    );
    says(&text, &["deepseek2.rope.scaling.original_context_length", "interleaved", "llama.cpp's table"]);
    says(&text, &["multiplied by 1.87385", "latent attention", "deepseek2.rope.scaling.yarn_beta_fast is not read"]);
}
