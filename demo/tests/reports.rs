//! `phasor`, `info`, `verify`, `bench`, `shaders`: what they say to people and to programs.

mod common;

use common::{Scratch, json, well};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn the_demo_runs_by_itself_and_says_what_to_try_next() {
    let scratch = Scratch::new();
    let text = well(scratch.path(), &[]);
    for word in ["layer0.q", "layer15.k", "GB/s", "All is well", "phasor verify"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn the_demo_compares_with_transformers_on_the_device_and_without() {
    let scratch = Scratch::new();
    let device = json(scratch.path(), &["demo", "--json"]);
    assert_eq!(device["demo"]["passed"], true);
    assert!(device["demo"]["device"]["name"].is_string());
    assert!(device["bandwidth"]["operations"].as_array().is_some_and(|list| !list.is_empty()));
    let cpu = json(scratch.path(), &["demo", "--cpu", "--json"]);
    assert_eq!(cpu["demo"]["passed"], true);
    assert!(cpu["demo"]["device"].is_null());
    for report in [device, cpu] {
        let tensors = report["demo"]["tensors"].as_array().unwrap().clone();
        assert_eq!(tensors.len(), 4);
        for tensor in tensors {
            let [largest, off] = ["largest_value", "from_transformers"].map(|key| tensor[key].as_f64().unwrap());
            // Something was rotated, and by something else than what it is compared with.
            assert!(largest > 1.0 && off > 0.0 && off < 1e-4 * largest, "{tensor}");
        }
    }
}

#[test]
fn without_an_adapter_the_demo_uses_the_cpu_and_says_how_to_get_one() {
    // No driver is found in an empty place.
    let scratch = Scratch::new();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_phasor"))
        .env("VK_DRIVER_FILES", scratch.at("none.json"))
        .env("VK_ICD_FILENAMES", scratch.at("none.json"))
        .env("WGPU_BACKEND", "vulkan")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for word in ["no adapter was found", "mesa-vulkan-drivers", "All is well"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn info_lists_the_adapter_that_is_used() {
    let scratch = Scratch::new();
    let got = json(scratch.path(), &["info", "--json"]);
    let adapters = got["adapters"].as_array().unwrap();
    let default: Vec<_> = adapters.iter().filter(|adapter| adapter["default"] == true).collect();
    assert_eq!(default.len(), 1, "{got}");
    let name = default[0]["device"]["name"].as_str().unwrap();
    assert!(!default[0]["variants"]["Ok"].as_array().unwrap().is_empty());
    let text = well(scratch.path(), &["info"]);
    assert!(text.contains(name) && text.contains("max_storage_buffer_binding_size"), "{text}");
    // A part of its name and its number name it too.
    let index = default[0]["index"].to_string();
    for adapter in [&name.to_uppercase(), &index] {
        let demo = json(scratch.path(), &["--adapter", adapter, "demo", "--json"]);
        assert_eq!(demo["demo"]["device"]["name"], name);
    }
}

/// The modules of a variant's name, each with its kernel; but which lanes hand keys around is the device's choice, and
/// how elements are stored and how many rows and words are written out is the tensors'.
fn pieces(name: &str) -> impl Iterator<Item = (&str, &str)> {
    let (kernel, modules) = name.split_once('.').unwrap_or((name, ""));
    let chosen =
        |module: &&str| !["lanes_", "lane1_", "lane4_", "rows_1", "rows_2"].iter().any(|free| module.starts_with(free));
    modules.split('.').filter(chosen).map(move |module| (kernel, module))
}

#[test]
fn verify_reaches_every_shader_and_every_number_is_within_its_bound() {
    let scratch = Scratch::new();
    let got = json(scratch.path(), &["verify", "--json"]);
    let report = &got["verification"];
    assert_eq!(report["passed"], true, "{report}");
    assert_eq!(report["not_reached"].as_array().unwrap().len(), 0, "{report}");
    assert_eq!(report["not_checked"].as_array().unwrap().len(), 0, "{report}");
    let reached: Vec<_> =
        report["variants"].as_array().unwrap().iter().map(|variant| variant["shader"].as_str().unwrap()).collect();
    for shader in phasor::gpu::shaders() {
        let missed = pieces(&shader.name).find(|piece| !reached.iter().any(|name| pieces(name).any(|p| p == *piece)));
        assert_eq!(missed, None, "of {}", shader.name);
    }
    for variant in report["variants"].as_array().unwrap() {
        assert!(variant["largest_error"].as_f64().unwrap() > 0.0, "nothing is without rounding: {variant}");
    }
    let quick = well(scratch.path(), &["verify", "--quick"]);
    assert!(quick.contains("one task in seven, are within their bounds") && !quick.contains("Never chosen"), "{quick}");
}

#[test]
fn bench_times_each_operation_beside_what_bounds_it() {
    let scratch = Scratch::new();
    let sizes = ["--tokens", "16,24", "--keys", "40", "--heads", "4", "--kv-heads", "2", "--head-dim", "32"];
    let sizes = [&sizes[..], &["--inputs", "64", "--outputs", "96", "--rounds", "3"]].concat();
    let got = json(scratch.path(), &[&["bench", "--json"], &sizes[..]].concat());
    assert!(got["date"].as_str().unwrap().ends_with('Z'));
    assert_eq!(got["version"], env!("CARGO_PKG_VERSION"));
    // What was built in a repository knows its commit, wherever it is run.
    assert_eq!(got["commit"].as_str(), option_env!("PHASOR_COMMIT"), "{}", got["commit"]);
    let measured = got["measurements"].as_array().unwrap();
    let subjects: Vec<_> = measured
        .iter()
        .map(|run| (run["subject"].as_str().unwrap(), run["sizes"]["tokens"].as_u64().unwrap()))
        .collect();
    let twice = |subject| [(subject, 16), (subject, 24)];
    let expected = [&twice("rotation")[..], &twice("attention"), &[("decode", 1)], &twice("projection")].concat();
    assert_eq!(subjects, expected);
    let number = |run: usize, name: &str, key: &str| {
        let operations = measured[run]["operations"].as_array().unwrap();
        operations.iter().find(|o| o["name"] == name).unwrap()[key].as_u64().unwrap()
    };
    // 16 tokens, 6 heads, 32 channels, read and written.
    assert_eq!(number(0, "rotation, half-split, no table", "bytes"), 16 * 6 * 32 * 4 * 2);
    assert_eq!(number(0, "rotation, half-split, table", "bytes"), 16 * 6 * 32 * 4 * 2 + 16 * 32 * 4);
    // Queries and output of 4 heads, keys and values of 2; two products a pair, and one for each position.
    assert_eq!(number(2, "fused, CoPE", "bytes"), 16 * 32 * 4 * (2 * 4 + 2 * 2));
    assert_eq!(number(2, "fused, plain", "flop"), 16 * 17 / 2 * 4 * 4 * 32);
    assert_eq!(number(2, "fused, CoPE", "flop"), 16 * 17 / 2 * 4 * 4 * 32 + 16 * 4 * 64 * 2 * 32);
    assert!(number(2, "unfused, CoPE", "memory") > number(2, "fused, CoPE", "memory"));
    assert_eq!(number(2, "fused, plain, rotated on the way in", "flop"), number(2, "fused, plain", "flop"));
    // The smallest square: 64 by 64 by 64.
    assert_eq!(number(2, "matrix product", "flop"), 2 * 64 * 64 * 64);
    assert_eq!(number(4, "reading keys and values", "bytes"), 40 * 2 * 32 * 4 * 2);
    assert_eq!(
        number(4, "fused, plain, rotated on the way in", "dispatches"),
        1 + number(4, "fused, plain", "dispatches")
    );
    assert_eq!(number(5, "linear, by tiles", "flop"), 2 * 16 * 64 * 96);
    assert_eq!(number(5, "linear, by dot products", "bytes"), 4 * (16 * 64 + 64 * 96 + 16 * 96));
    for run in measured {
        assert_eq!(run["rounds"], 3);
        for operation in run["operations"].as_array().unwrap() {
            let [minimum, median, spread] =
                ["minimum", "median", "spread"].map(|key| operation["time"][key].as_f64().unwrap());
            assert!(0.0 < minimum && minimum <= median && 0.0 <= spread, "{operation}");
            assert!(operation["over_baseline"].as_f64().unwrap() > 0.0);
        }
        let ratios = run["operations"].as_array().unwrap().iter().map(|operation| operation["over_baseline"].as_f64());
        assert_eq!(ratios.filter(|&ratio| ratio == Some(1.0)).count(), 1, "the baseline: {run}");
    }
    // To people, subject by subject: each process compiles anew on a device that keeps nothing.
    let told = |what, more: &[&str]| {
        let sizes = ["--heads", "4", "--kv-heads", "2", "--head-dim", "32", "--rounds", "3"];
        well(scratch.path(), &[&["bench", what], &sizes[..], more].concat())
    };
    let rotation = told("rotation", &["--tokens", "16"]);
    assert!(rotation.contains("rotation, interleaved, table") && rotation.contains("x the fastest copy"), "{rotation}");
    let decode = told("decode", &["--keys", "40", "--fused"]);
    assert!(decode.contains("one query over 40 keys") && decode.contains("x reading keys and values"), "{decode}");
    assert!(!decode.contains("Rotation") && !decode.contains("unfused"), "{decode}");
    let few = ["bench", "projection", "--tokens", "1", "--inputs", "64", "--rounds", "2"];
    let few = well(scratch.path(), &few);
    assert!(few.contains("1 token, 64 inputs to 64 outputs") && few.contains("x reading the weights"), "{few}");
}

#[test]
fn bench_times_the_variants_of_attention() {
    let scratch = Scratch::new();
    let sizes =
        ["--tokens", "16", "--keys", "40", "--heads", "4", "--kv-heads", "2", "--head-dim", "32", "--rounds", "2"];
    let got = json(scratch.path(), &[&["bench", "variants", "--json"], &sizes[..]].concat());
    let [prompt, step] = [0, 1].map(|run| &got["measurements"][run]);
    assert_eq!([&prompt["subject"], &step["subject"]], ["variants"; 2]);
    let operation = |run: &Value, name: &str| {
        let operations = run["operations"].as_array().unwrap();
        operations.iter().find(|o| o["name"] == name).unwrap_or_else(|| panic!("{name}: {run}")).clone()
    };
    for name in ["what is chosen", "by tiles", "by rows", "split over keys", "f16", "bf16"] {
        let [plain, cope] = ["plain", "CoPE"].map(|kind| operation(prompt, &format!("{name}, {kind}")));
        assert!(cope["flop"].as_u64() > plain["flop"].as_u64() && cope["memory"].as_u64() >= plain["memory"].as_u64());
    }
    for run in [prompt, step] {
        let [whole, half] = ["what is chosen, CoPE", "bf16, CoPE"].map(|name| operation(run, name));
        assert_eq!(whole["bytes"].as_u64().unwrap(), 2 * half["bytes"].as_u64().unwrap());
        assert_eq!(operation(run, "what is chosen, plain")["over_baseline"], 1.0);
    }
    assert_eq!(step["operations"].as_array().unwrap().len(), 6, "a decode step is always split: {step}");
    std::fs::write(scratch.path().join("variants.json"), got.to_string()).unwrap();
    let report = well(scratch.path(), &["report", "variants.json"]);
    assert!(report.contains("16 tokens, causal") && report.contains("| by tiles, CoPE |"), "{report}");
}

#[test]
fn bench_tells_the_first_result_as_the_sum_of_its_parts() {
    let scratch = Scratch::new();
    let got = json(scratch.path(), &["bench", "first", "--json"]);
    assert_eq!(got["measurements"].as_array().unwrap().len(), 0);
    let results = got["first_results"].as_array().unwrap();
    let caches: &[&str] = if cfg!(target_os = "linux") { &["cold", "warm"] } else { &["system"] };
    let expected: Vec<_> =
        ["rotation", "attention"].iter().flat_map(|work| caches.iter().map(move |c| (*work, *c))).collect();
    let kinds: Vec<_> = results
        .iter()
        .map(|first| (first["work"].as_str().unwrap(), first["shader_cache"].as_str().unwrap()))
        .collect();
    assert_eq!(kinds, expected);
    for first in results {
        assert!(first["device"]["name"].is_string());
        let parts: Vec<_> = first["parts"].as_array().unwrap().iter().map(|part| part[0].as_str().unwrap()).collect();
        assert_eq!(parts, ["process", "adapter", "device", "tensors", "pipeline", "dispatch", "read back"]);
        let seconds = first["parts"].as_array().unwrap().iter().map(|part| part[1].as_f64().unwrap());
        assert!(seconds.clone().all(|seconds| seconds >= 0.0), "{first}");
        assert!((seconds.sum::<f64>() - first["seconds"].as_f64().unwrap()).abs() < 1e-9, "{first}");
    }
}

#[test]
fn bench_curves_grow_by_powers_and_end_where_the_budget_does() {
    let scratch = Scratch::new();
    let sizes = ["--heads", "2", "--head-dim", "32", "--rounds", "2"];
    let curves = |more: &[&str]| json(scratch.path(), &[&["bench", "curve", "--json"], &sizes[..], more].concat());
    let got = curves(&["--from", "16", "--to", "130", "--budget", "1000"]);
    let lines = got["curves"][0]["curves"].as_array().unwrap().clone();
    let subjects: Vec<_> = lines.iter().map(|line| line["subject"].as_str().unwrap()).collect();
    assert_eq!(subjects, ["rotation", "attention", "attention", "decode", "decode"]);
    for line in &lines {
        let points = line["points"].as_array().unwrap();
        let tokens: Vec<_> = points.iter().map(|point| point["tokens"].as_u64().unwrap()).collect();
        assert_eq!((tokens, line["stopped"].is_null()), (vec![16, 32, 64, 128], true), "{line}");
        let power = line["memory_exponent"]["value"].as_f64().unwrap();
        assert!((0.7..=1.1).contains(&power), "memory is linear: {line}");
        assert_eq!(line["time_exponent"]["from"], 16);
    }
    // 128 tokens of 2 heads of 32 channels in f32, queries and keys.
    assert_eq!(lines[0]["points"][3]["memory"], 128 * 2 * 32 * 4 * 2);
    // Attention's square of tokens is more than a second for a software device.
    let got = curves(&["--from", "2048", "--to", "16384", "--budget", "1"]);
    let line = got["curves"][0]["curves"].as_array().unwrap()[1].clone();
    let (points, stop) = (line["points"].as_array().unwrap().len(), &line["stopped"]);
    if got["curves"][0]["device"]["software"] == true || points < 4 {
        assert_eq!(stop["tokens"].as_u64(), Some(2048 << points), "{line}");
        assert!(stop["reason"].as_str().unwrap().contains("more than 1 s"), "{line}");
    }
    let told = well(scratch.path(), &[&["bench", "curve", "--from", "16", "--to", "64"], &sizes[..]].concat());
    assert!(told.contains("rotation, half-split, no table") && told.contains("n^"), "{told}");
    let few = well(scratch.path(), &[&["bench", "curve", "--from", "16", "--to", "32"], &sizes[..]].concat());
    assert!(!few.contains("n^") && few.contains("three lengths or more"), "{few}");
}

/// Shorter lengths, which are not told, say that the first one would take too long.
#[test]
fn bench_keeps_its_budget_at_the_first_length_too() {
    let scratch = Scratch::new();
    let sizes = ["--from", "32768", "--heads", "8", "--head-dim", "64", "--budget", "1", "--rounds", "1"];
    let got = json(scratch.path(), &[&["bench", "curve", "--json"], &sizes[..]].concat());
    for curve in got["curves"][0]["curves"].as_array().unwrap().iter().filter(|curve| curve["subject"] == "attention") {
        let (points, stop) = (curve["points"].as_array().unwrap(), &curve["stopped"]);
        // A device that is fast enough goes on.
        if got["curves"][0]["device"]["software"] == true || points.is_empty() {
            assert_eq!((points.len(), &stop["tokens"]), (0, &serde_json::json!(32768)), "{curve}");
            assert!(stop["reason"].as_str().unwrap().contains("more than 1 s"), "{curve}");
        }
    }
}

#[test]
fn shaders_are_emitted_under_names_of_their_own() {
    let scratch = Scratch::new();
    let list = json(scratch.path(), &["shaders", "--json", "--emit", "deep/kernels"]);
    let list = list.as_array().unwrap();
    assert!(list.len() >= 20);
    let names: BTreeSet<_> = list.iter().map(|shader| shader["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), list.len());
    for shader in list {
        let name = shader["name"].as_str().unwrap();
        let text = std::fs::read_to_string(scratch.at(&format!("deep/kernels/{name}.wgsl"))).unwrap();
        assert_eq!(text, shader["wgsl"].as_str().unwrap());
        let beside = std::fs::read_to_string(scratch.at(&format!("deep/kernels/{name}.json"))).unwrap();
        let beside: serde_json::Value = serde_json::from_str(&beside).unwrap();
        for key in ["variant", "entry_point", "workgroup", "constants", "bindings"] {
            assert_eq!(beside[key], shader[key], "{name}: {key}");
        }
        for binding in beside["bindings"].as_array().unwrap() {
            assert!(text.contains(&format!("@binding({})", binding["binding"])), "{name}: {binding}");
        }
        for constant in beside["constants"].as_object().unwrap().keys() {
            assert!(text.contains(&format!("override {constant}:")), "{name}: {constant}");
        }
    }
}

#[test]
fn every_subcommand_has_help_with_examples() {
    let scratch = Scratch::new();
    for command in ["demo", "info", "explain", "tables", "rotate", "verify", "bench", "report", "shaders"] {
        let text = well(scratch.path(), &[command, "--help"]);
        assert!(text.contains("Examples:") && text.contains(&format!("phasor {command}")), "{text}");
    }
    assert!(well(scratch.path(), &["--help"]).contains("--adapter"));
    assert!(well(scratch.path(), &["--version"]).starts_with("phasor "));
}
