//! `phasor tables` and `phasor rotate` with the files of models: golden values, layers, refusals.

mod common;

use common::models::{Gguf, config, golden};
use common::{Scratch, Tensor, assert_close, json, noise, phasor, read, refused, rotation_bound, well, write};
use gguf_rs_lib::format::MetadataValue;
use serde_json::{Value, json};

fn inv_freq(value: &Value) -> Vec<f64> {
    value["inv_freq"].as_array().unwrap().iter().map(|w| w.as_f64().unwrap()).collect()
}

#[test]
fn every_golden_case_comes_out_of_its_own_config() {
    let scratch = Scratch::new();
    let cases = golden();
    assert_eq!(cases.len(), 21);
    for case in cases {
        let name = format!("{}, {}, {}", case["name"], case["seq_len"], case["layer_type"]);
        config(&scratch.at("config.json"), &case["config"]);
        let seq_len = case["seq_len"].to_string();
        let mut args = vec!["tables", "--config", "config.json", "--json"];
        args.extend(case["layer_type"].as_str().into_iter().flat_map(|layer_type| ["--layer-type", layer_type]));
        args.extend((!case["seq_len"].is_null()).then_some(["--seq-len", &seq_len]).into_iter().flatten());
        let got = json(scratch.path(), &args);
        assert_eq!(got["rope_type"], case["rope_type"], "{name}");
        let (got_w, expected) = (inv_freq(&got), inv_freq(&case));
        assert_eq!(got_w.len(), expected.len(), "{name}");
        // transformers computes them in float32.
        let worst = got_w.iter().zip(&expected).map(|(got, w)| (got / w - 1.0).abs()).fold(0.0, f64::max);
        assert!(worst <= 2e-6, "{name}: off by {worst:e}");
        let [factor, expected] = [&got, &case].map(|value| value["attention_factor"].as_f64().unwrap());
        assert!((factor / expected - 1.0).abs() <= 1e-12, "{name}: {factor} instead of {expected}");
        assert_eq!((&got["rotates"], &got["warnings"]), (&json!(true), &json!([])), "{name}");
        assert_eq!(got["rotary_dim"], 2 * got_w.len(), "{name}");
        let depends = ["dynamic", "longrope"].contains(&got["rope_type"].as_str().unwrap());
        assert_eq!(got["seq_len"], if depends { case["seq_len"].clone() } else { Value::Null }, "{name}");
    }
}

fn gemma() -> Value {
    let gemma = golden().into_iter().find(|case| case["name"].as_str().is_some_and(|name| name.contains("gemma")));
    gemma.unwrap()["config"].clone()
}

fn smollm3() -> Value {
    json!({"model_type": "smollm3", "head_dim": 16, "num_hidden_layers": 8, "max_position_embeddings": 1024,
        "rope_theta": 5e6})
}

#[test]
fn a_layer_is_named_by_its_number_or_its_type() {
    let scratch = Scratch::new();
    config(&scratch.at("c"), &gemma());
    let table = |more: &[&str]| json(scratch.path(), &[&["tables", "--config", "c", "--json"], more].concat());
    assert_eq!(table(&["--layer", "0"]), table(&["--layer-type", "sliding_attention"]));
    assert_eq!(table(&["--layer", "5"]), table(&["--layer-type", "full_attention"]));
    assert_eq!(table(&["--layer", "5"])["rope_type"], "linear");
    let args = ["tables", "--config", "c", "--json"];
    refused(scratch.path(), &args, 1, &["layers 0-4 (sliding_attention): default", "layer 5", "factor 8", "--layer N"]);
    refused(scratch.path(), &[&args[..], &["--layer", "6"]].concat(), 1, &["layer: was 6", "below 6"]);
    let wrong = [&args[..], &["--layer-type", "local"]].concat();
    refused(scratch.path(), &wrong, 1, &["layer_type: was local", "sliding_attention, full_attention"]);
    refused(scratch.path(), &[&args[..], &["--layer", "1", "--layer-type", "x"]].concat(), 2, &["cannot be used with"]);
}

#[test]
fn everything_that_a_rope_implies_is_told() {
    let scratch = Scratch::new();
    let table = |of: &Value| {
        config(&scratch.at("c"), of);
        json(scratch.path(), &["tables", "--config", "c", "--layer", "3", "--json"])
    };
    let case = |name: &str| golden().into_iter().find(|case| case["name"].as_str().unwrap().contains(name)).unwrap();
    let deepseek = table(&case("deepseek")["config"]);
    assert!((deepseek["softmax_scale_multiplier"].as_f64().unwrap() - 1.873_854).abs() < 1e-6);
    assert_eq!((&deepseek["pairing"], &deepseek["head_dim"]), (&json!("interleaved"), &json!(64)));
    let llama = table(&case("llama-3.1")["config"]);
    assert_eq!((&llama["pairing"], &llama["axes"]["count"]), (&json!("half-split"), &json!(1)));
    let smollm = table(&smollm3());
    assert_eq!(smollm["rotates"], false);
    let pictures = json!({"model_type": "qwen2_vl", "head_dim": 16, "rope_scaling": {"type": "mrope",
        "mrope_section": [2, 3, 3], "mystery": 1}});
    let pictures = table(&pictures);
    assert_eq!(pictures["axes"], json!({"count": 3, "axis_of_pair": [0, 0, 1, 1, 1, 2, 2, 2]}));
    assert!(pictures["warnings"][0].as_str().unwrap().contains("rope_scaling.mystery"));
    // The same words for settings on their own.
    let spec = json(scratch.path(), &["tables", "--rope", "{}", "--head-dim", "16", "--json"]);
    assert!(pictures.as_object().unwrap().keys().eq(spec.as_object().unwrap().keys()));
    assert_eq!((&spec["pairing"], &spec["rotates"]), (&Value::Null, &json!(true)));
}

#[test]
fn options_go_together_or_are_refused() {
    let scratch = Scratch::new();
    config(&scratch.at("c"), &smollm3());
    let tables = |more: &[&str], words: &[&str]| {
        refused(scratch.path(), &[&["tables", "--json"], more].concat(), 2, words);
    };
    tables(&["--rope", "{}", "--head-dim", "8", "--config", "c"], &["cannot be used with", "--config"]);
    tables(&["--config", "c", "--gguf", "c"], &["cannot be used with", "--gguf"]);
    tables(&["--head-dim", "8"], &["--rope"]);
    tables(&["--rope", "{}"], &["--head-dim"]);
    tables(&["--config", "c", "--head-dim", "8"], &["--head-dim"]);
    tables(&["--rope", "{}", "--head-dim", "8", "--layer", "1"], &["--layer"]);
    refused(scratch.path(), &["explain"], 2, &["--config"]);
    refused(scratch.path(), &["explain", "--config", "c", "--gguf", "c"], 2, &["cannot be used with"]);
}

#[test]
fn configs_are_refused_by_the_path_of_the_field() {
    let scratch = Scratch::new();
    let with = |scaling: Value| json!({"model_type": "llama", "head_dim": 64, "max_position_embeddings": 4096, "rope_scaling": scaling});
    for (of, words) in [
        (with(json!({"rope_type": "spiral"})), ["rope_scaling.rope_type: was \"spiral\"", "yarn"]),
        (with(json!({"type": "linear"})), ["rope_scaling.factor: was missing", "number"]),
        (with(json!({"type": "linear", "factor": -1})), ["rope_scaling.factor: was -1", "above 0"]),
        (json!({"model_type": "llama"}), ["hidden_size", "missing"]),
        (json!([]), ["c: ", "object"]),
    ] {
        config(&scratch.at("c"), &of);
        for command in [&["tables", "--json"][..], &["explain"]] {
            refused(scratch.path(), &[command, &["--config", "c"]].concat(), 1, &words);
        }
    }
    std::fs::write(scratch.at("c"), "{").unwrap();
    refused(scratch.path(), &["explain", "--config", "c"], 1, &["c: ", "JSON"]);
    refused(scratch.path(), &["explain", "--config", "none.json"], 1, &["none.json"]);
}

/// Rotates `in.safetensors` and gives the tensor `q` of the result with what was said on standard error.
#[track_caller]
fn rotate(scratch: &Scratch, more: &[&str]) -> (Tensor, String) {
    let output = phasor(scratch.path(), &[&["rotate", "in.safetensors", "out.safetensors"], more].concat());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{more:?}: {error}");
    (read(&scratch.at("out.safetensors"), "q"), error)
}

#[test]
fn a_model_rotates_as_its_settings_do() {
    let scratch = Scratch::new();
    write(&scratch.at("in.safetensors"), &[("q", &Tensor::f32(&[1, 4, 2, 16], &noise(128)))]);
    let spec = r#"{"rope_type":"yarn","rope_theta":1e6,"factor":4,"original_max_position_embeddings":1024}"#;
    let of = json!({"model_type": "qwen3", "head_dim": 16, "max_position_embeddings": 4096,
        "rope_scaling": serde_json::from_str::<Value>(spec).unwrap()});
    config(&scratch.at("c"), &of);
    let by_config = &["--config", "c", "--start", "2000"];
    let by_rope = &["--rope", spec, "--start", "2000"];
    for mode in [&[][..], &["--cpu"], &["--no-table"]] {
        for pairing in ["half-split", "interleaved"] {
            let (expected, _) = rotate(&scratch, &[&by_rope[..], &["--pairing", pairing], mode].concat());
            let (got, said) = rotate(&scratch, &[&by_config[..], &["--pairing", pairing], mode].concat());
            assert_eq!(got, expected);
            assert_eq!(said.contains("note: pairs are interleaved"), pairing == "interleaved", "{said}");
        }
        let (expected, _) = rotate(&scratch, &[&by_rope[..], &["--pairing", "half-split"], mode].concat());
        assert_eq!(rotate(&scratch, &[&by_config[..], mode].concat()).0, expected);
    }
}

/// By whatever name: a model may be all that there is of it.
#[test]
fn nothing_is_written_over_what_was_read() {
    let scratch = Scratch::new();
    config(&scratch.at("config.json"), &smollm3());
    let qk = Tensor::f32(&[1, 2, 4, 64], &noise(512));
    write(&scratch.at("in.safetensors"), &[("q", &qk)]);
    std::fs::hard_link(scratch.at("config.json"), scratch.at("link.json")).unwrap();
    let before = ["config.json", "in.safetensors"].map(|name| std::fs::read(scratch.at(name)).unwrap());
    let layer = ["--config", "config.json", "--layer", "0", "--cpu"];
    for output in ["config.json", "./config.json", "link.json"] {
        for command in [
            &["rotate", "in.safetensors", output][..],
            &["attention", "in.safetensors", output],
            &["tables", "--tokens", "2", "--output", output],
        ] {
            refused(scratch.path(), &[command, &layer[..]].concat(), 1, &[output, "was the input"]);
        }
    }
    assert_eq!(["config.json", "in.safetensors"].map(|name| std::fs::read(scratch.at(name)).unwrap()), before);
}

#[test]
fn a_layer_without_rope_copies() {
    let scratch = Scratch::new();
    // Not even the bits of a NaN change.
    let q = Tensor::new(safetensors::Dtype::F16, &[1, 2, 1, 16], (0..64).map(|i| 0xf0 | i).collect());
    write(&scratch.at("in.safetensors"), &[("q", &q), ("k", &q)]);
    config(&scratch.at("c"), &smollm3());
    let args = ["rotate", "in.safetensors", "out.safetensors", "--config", "c"];
    assert!(well(scratch.path(), &[&args[..], &["--layer", "3"]].concat()).contains("does not rotate (NoPE)"));
    assert_eq!([read(&scratch.at("out.safetensors"), "q"), read(&scratch.at("out.safetensors"), "k")], [q.clone(), q]);
    // The others agree, so that none need be named.
    assert!(well(scratch.path(), &args).contains("rotated"));
    refused(scratch.path(), &["tables", "--config", "c", "--layer", "3", "--output", "t"], 1, &["NoPE"]);
}

#[test]
fn channels_that_do_not_turn_stay() {
    let scratch = Scratch::new();
    let q = Tensor::f32(&[1, 3, 2, 32], &noise(192));
    write(&scratch.at("in.safetensors"), &[("q", &q)]);
    let first = json!({"model_type": "glm4", "head_dim": 32, "partial_rotary_factor": 0.25});
    let last = json!({"model_type": "deepseek_v4", "head_dim": 32, "qk_rope_head_dim": 8, "num_hidden_layers": 1,
        "compress_ratios": [0]});
    for (of, turning) in [(first, 0..8), (last, 24..32)] {
        config(&scratch.at("c"), &of);
        let (device, _) = rotate(&scratch, &["--config", "c", "--start", "7"]);
        let (cpu, _) = rotate(&scratch, &["--config", "c", "--start", "7", "--cpu"]);
        assert_close(&device.values(), &cpu.values(), rotation_bound(1.0, 1.0));
        for (before, after) in q.values().chunks(32).zip(device.values().chunks(32)) {
            for channel in 0..32 {
                assert_eq!(before[channel] != after[channel], turning.contains(&channel), "channel {channel}");
            }
        }
    }
    write(&scratch.at("in.safetensors"), &[("q", &Tensor::f32(&[1, 1, 1, 16], &noise(16)))]);
    let args = ["rotate", "in.safetensors", "o", "--config", "c"];
    refused(scratch.path(), &args, 1, &["q: was heads of 16", "heads of 32"]);
}

#[test]
fn a_token_may_have_a_position_for_each_axis() {
    let scratch = Scratch::new();
    let q = Tensor::f32(&[2, 2, 3, 16], &noise(192));
    config(
        &scratch.at("c"),
        &json!({"model_type": "qwen2_vl", "head_dim": 16, "rope_theta": 100,
            "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}),
    );
    let run = |positions: Option<(&[usize], &[i64])>, more: &[&str]| {
        let positions = positions.map(|(shape, numbers)| Tensor::i64(shape, numbers));
        let named = [("q", &q)].into_iter().chain(positions.iter().map(|positions| ("positions", positions)));
        write(&scratch.at("in.safetensors"), &named.collect::<Vec<_>>());
        rotate(&scratch, &[&["--config", "c"], more].concat()).0.values()
    };
    let each: [i64; 12] = [3, 10, 20, 3, 11, 21, 5, 12, 22, 6, 13, -23];
    for mode in [&[][..], &["--no-table"], &["--cpu"]] {
        let got = run(Some((&[2, 2, 3], &each)), mode);
        // A pair turns as it does where its axis' position is the only one.
        for axis in 0..3 {
            let one: Vec<i64> = each.iter().copied().skip(axis).step_by(3).collect();
            let expected = run(Some((&[2, 2], &one)), &["--cpu"]);
            let of = |values: &[f32]| -> Vec<f32> {
                let pairs = [0..2, 2..5, 5..8][axis].clone();
                values.chunks(8).flat_map(|half| half[pairs.clone()].to_vec()).collect()
            };
            assert_close(&of(&got), &of(&expected), rotation_bound(1.0, 1.0));
        }
        // Text has one position for all.
        let same: Vec<i64> = [7, 8, 7, 8].into_iter().flat_map(|position| [position; 3]).collect();
        assert_eq!(run(Some((&[2, 2, 3], &same)), &["--no-table"]), run(None, &["--start", "7", "--no-table"]));
    }
    let four = Tensor::i64(&[2, 2, 4], &[0; 16]);
    write(&scratch.at("in.safetensors"), &[("q", &q), ("positions", &four)]);
    let args = ["rotate", "in.safetensors", "o", "--config", "c"];
    refused(scratch.path(), &args, 1, &["positions: was [2, 2, 4]", "[2, 2, 3]"]);
}

#[test]
fn the_sequence_ends_with_the_last_position_unless_it_is_said() {
    let scratch = Scratch::new();
    write(&scratch.at("in.safetensors"), &[("q", &Tensor::f32(&[1, 2, 1, 16], &noise(32)))]);
    config(
        &scratch.at("c"),
        &json!({"model_type": "llama", "head_dim": 16, "max_position_embeddings": 64,
            "rope_scaling": {"type": "dynamic", "factor": 2.0}}),
    );
    let turned = |more: &[&str]| rotate(&scratch, &[&["--config", "c", "--cpu", "--start", "126"], more].concat()).0;
    assert_eq!(turned(&[]), turned(&["--seq-len", "128"]));
    assert_ne!(turned(&[]), turned(&["--seq-len", "64"]));
    let tables = |more: &[&str]| json(scratch.path(), &[&["tables", "--config", "c", "--json"], more].concat());
    assert_eq!(tables(&["--start", "126", "--tokens", "2"])["seq_len"], 128);
    assert_eq!(tables(&["--seq-len", "64"])["inv_freq"], tables(&["--tokens", "64"])["inv_freq"]);
}

#[test]
fn a_gguf_file_says_it_as_well() {
    let scratch = Scratch::new();
    let divisors = [1.0, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 1e30];
    Gguf::new("llama").tensor("rope_freqs.weight", &divisors).write(&scratch.at("m.gguf"));
    let got = json(scratch.path(), &["tables", "--gguf", "m.gguf", "--json"]);
    assert_eq!(
        (&got["pairing"], &got["head_dim"], &got["model_type"]),
        (&json!("interleaved"), &json!(16), &json!("llama"))
    );
    for (i, (w, divisor)) in inv_freq(&got).iter().zip(divisors).enumerate() {
        let expected = if divisor < 1e30 { 5e5f64.powf(-(i as f64) / 8.0) / f64::from(divisor) } else { 0.0 };
        assert!((w - expected).abs() <= 1e-15, "pair {i}: {w} instead of {expected}");
    }
    let q = Tensor::f32(&[1, 2, 2, 16], &noise(64));
    write(&scratch.at("in.safetensors"), &[("q", &q)]);
    let (device, _) = rotate(&scratch, &["--gguf", "m.gguf", "--start", "9"]);
    assert_close(
        &device.values(),
        &rotate(&scratch, &["--gguf", "m.gguf", "--start", "9", "--cpu"]).0.values(),
        rotation_bound(1.0, 1.0),
    );
    // The last pair stands still: channels 14 and 15.
    assert_eq!(device.values()[30..32], q.values()[30..32]);
    assert_ne!(device.values()[28..30], q.values()[28..30]);
}

#[test]
fn long_and_short_factors_of_a_gguf_file_are_read() {
    let scratch = Scratch::new();
    let (short, long) = ([1.5; 8], [4.0; 8]);
    let phi =
        Gguf::new("phi3").count("rope.scaling.original_context_length", 4096).number("rope.scaling.attn_factor", 1.25);
    phi.tensor("rope_factors_long.weight", &long)
        .tensor("blk.0.rope_factors_short.weight", &short)
        .write(&scratch.at("m"));
    let first = |n| inv_freq(&json(scratch.path(), &["tables", "--gguf", "m", "--seq-len", n, "--json"]))[0];
    assert_eq!((first("4096"), first("4097")), (1.0 / 1.5, 0.25));
}

#[test]
fn text_is_at_0_on_the_last_of_four_axes_of_a_gguf_file() {
    let scratch = Scratch::new();
    let sections = [4, 2, 2, 0].map(MetadataValue::I32);
    Gguf::new("qwen3vl").list("rope.dimension_sections", sections.to_vec()).write(&scratch.at("m"));
    let axes = json(scratch.path(), &["tables", "--gguf", "m", "--json"])["axes"].clone();
    assert_eq!(axes, json!({"count": 4, "axis_of_pair": [0, 1, 2, 0, 1, 2, 0, 3]}));
    let q = Tensor::f32(&[1, 2, 1, 16], &noise(32));
    write(&scratch.at("in.safetensors"), &[("q", &q)]);
    let text = rotate(&scratch, &["--gguf", "m", "--start", "5"]).0.values();
    let each: Vec<i64> = [5, 5, 5, 0, 6, 6, 6, 0].to_vec();
    write(&scratch.at("in.safetensors"), &[("q", &q), ("positions", &Tensor::i64(&[1, 2, 4], &each))]);
    assert_eq!(rotate(&scratch, &["--gguf", "m"]).0.values(), text);
}

#[test]
fn keys_that_nothing_reads_are_warned_of() {
    let scratch = Scratch::new();
    let file = Gguf::new("qwen2").text("rope.scaling.type", "yarn").number("rope.scaling.factor", 4.0);
    let file =
        file.number("rope.scaling.yarn_beta_fast", 16.0).with("rope.scaling.finetuned", MetadataValue::Bool(true));
    file.count("rope.scaling.original_context_length", 2048).write(&scratch.at("m"));
    let got = json(scratch.path(), &["tables", "--gguf", "m", "--json"]);
    let warnings = got["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].as_str().unwrap().starts_with("qwen2.rope.scaling.yarn_beta_fast is not read"), "{warnings:?}");
}

#[test]
fn gguf_files_that_are_cut_or_wrong_are_refused_by_name() {
    let scratch = Scratch::new();
    let file = || Gguf::new("llama").tensor("rope_freqs.weight", &[1.0; 8]);
    let good = file().bytes();
    let args = ["tables", "--gguf", "m", "--json"];
    for bytes in [&[][..], b"GGUF", &[0xff; 64], &good[..good.len() / 2], &good[..good.len() - 1]] {
        std::fs::write(scratch.at("m"), bytes).unwrap();
        refused(scratch.path(), &args, 1, &["m: "]);
    }
    // Weights that are not there yet are no concern of a rope.
    let with_weights = Gguf::new("llama").tensor("output.weight", &[0.5; 64]).bytes();
    std::fs::write(scratch.at("m"), &with_weights[..with_weights.len() - 100]).unwrap();
    well(scratch.path(), &args);
    for i in (0..good.len()).step_by(7) {
        let mut bytes = good.clone();
        bytes[i] ^= 0x15;
        std::fs::write(scratch.at("m"), &bytes).unwrap();
        let output = phasor(scratch.path(), &args);
        assert!(matches!(output.status.code(), Some(0 | 1)), "byte {i}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Gguf::new("brand-new").write(&scratch.at("m"));
    refused(scratch.path(), &args, 1, &["m: general.architecture: was brand-new"]);
    // Names with a hyphen are common.
    Gguf::new("command-r").write(&scratch.at("m"));
    assert_eq!(json(scratch.path(), &args)["pairing"], "interleaved");
    Gguf::new("llama").tensor("rope_freqs.weight", &[1.0; 1 << 17]).write(&scratch.at("m"));
    refused(scratch.path(), &args, 1, &["m: rope_freqs.weight: was [131072]"]);
    Gguf::new("qwen2").text("rope.scaling.type", "spiral").write(&scratch.at("m"));
    refused(scratch.path(), &args, 1, &["m: qwen2.rope.scaling.type: was \"spiral\"", "yarn"]);
}
