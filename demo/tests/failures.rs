//! What goes wrong says what it was, what it may be, and ends with a code other than 0.

mod common;

use common::{Scratch, Tensor, noise, refused, write};
use safetensors::Dtype;
use std::time::{Duration, Instant};

const ROTATE: [&str; 7] = ["rotate", "in.safetensors", "out.safetensors", "--rope", "{}", "--pairing", "half-split"];

#[test]
fn settings_are_refused_by_name() {
    let scratch = Scratch::new();
    let tables = |rope, dim, words: &[&str]| {
        for mode in ["--json", "--output=t"] {
            let args = ["tables", "--rope", rope, "--head-dim", dim, mode];
            let output = common::phasor(scratch.path(), &args);
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "{args:?}");
            assert!(words.iter().all(|word| error.contains(word)), "{args:?}: {error}");
        }
    };
    tables("nonsense", "64", &["--rope", "JSON"]);
    tables("[1]", "64", &["object"]);
    tables(r#"{"rope_type":"spiral"}"#, "64", &["rope_type", "spiral", "yarn"]);
    tables(r#"{"rope_type":"linear"}"#, "64", &["factor", "missing"]);
    tables(r#"{"rope_type":"linear","factor":0}"#, "64", &["factor", "was 0"]);
    tables(r#"{"rope_theta":1}"#, "64", &["rope_theta"]);
    tables("{}", "0", &["--head-dim", "was 0"]);
    tables("{}", "7", &["--head-dim", "even", "--rotary-dim"]);
    tables(r#"{"rope_type":"ntk_alpha","alpha":16}"#, "2", &["rotary_dim"]);
}

#[test]
fn options_are_refused_with_usage() {
    let scratch = Scratch::new();
    let tables = ["tables", "--rope", "{}", "--head-dim", "8"];
    refused(scratch.path(), &tables, 2, &["--json", "--output"]);
    refused(scratch.path(), &[&tables[..], &["--json", "--output", "t"]].concat(), 2, &["cannot be used with"]);
    refused(scratch.path(), &["rotate", "a", "b", "--rope", "{}"], 2, &["--pairing"]);
    refused(
        scratch.path(),
        &["rotate", "a", "b", "--rope", "{}", "--pairing", "both"],
        2,
        &["interleaved", "half-split"],
    );
    refused(scratch.path(), &["nonsense"], 2, &["nonsense"]);
}

#[test]
fn an_adapter_that_is_not_there_is_refused_with_those_that_are() {
    let scratch = Scratch::new();
    for command in ["demo", "info", "verify", "bench"] {
        refused(scratch.path(), &[command, "--adapter", "no such"], 1, &["--adapter", "no such", "0 (", "phasor info"]);
    }
}

#[test]
fn impossible_sizes_are_refused_by_name() {
    let scratch = Scratch::new();
    for (option, value, word) in [
        ("--tokens", "0", "tokens"),
        ("--heads", "0", "heads"),
        ("--kv-heads", "0", "kv-heads"),
        ("--rounds", "0", "rounds"),
        ("--head-dim", "12", "head-dim"),
        ("--tokens", "65536", "tokens"),
        ("--heads", "4294967295", "max_storage_buffer_binding_size"),
    ] {
        refused(scratch.path(), &["bench", option, value], 1, &[word, "may be"]);
    }
}

#[test]
fn options_that_nothing_timed_goes_by_are_refused() {
    let scratch = Scratch::new();
    for (what, option, value, takers) in [
        (Some("decode"), "--budget", "3", "curve"),
        (Some("curve"), "--tokens", "16", "rotation, attention, projection, variants"),
        (Some("first"), "--rounds", "0", "rotation, attention, decode, projection, variants, curve"),
        (Some("rotation"), "--positions", "4", "attention, decode, variants, curve"),
        (Some("projection"), "--heads", "4", "rotation, attention, decode, variants, curve"),
        (Some("attention"), "--keys", "4", "decode, variants"),
        (Some("curve"), "--outputs", "4", "projection"),
        (None, "--from", "16", "curve"),
    ] {
        let arguments: Vec<_> = ["bench"].into_iter().chain(what).chain([option, value]).collect();
        let expected = format!("{option}: was given");
        let words =
            [&expected, what.unwrap_or("without"), &format!("may be given for {takers}"), "next: `phasor bench"];
        refused(scratch.path(), &arguments, 1, &words);
    }
    for keys in ["0", "1"] {
        refused(scratch.path(), &["bench", "decode", "--keys", keys], 1, &["--keys: was", "2 or more"]);
    }
    // Before anything is measured.
    let late = ["bench", "--positions", "0", "--tokens", "2048", "--rounds", "1000000"];
    let begin = Instant::now();
    refused(scratch.path(), &late, 1, &["positions: was 0"]);
    // So many rounds of what is sound take a software device ten seconds, after which it begins no more, and others hours.
    assert!(begin.elapsed() < Duration::from_secs(9), "{:?}", begin.elapsed());
    for inputs in ["0", "1", "3", "32769"] {
        let few = ["bench", "projection", "--inputs", inputs];
        refused(scratch.path(), &few, 1, &["inputs: was", "4 to 32768"]);
    }
    refused(scratch.path(), &["bench", "curve", "--fused"], 1, &["--fused", "attention, decode"]);
}

#[test]
fn tables_larger_than_memory_are_refused() {
    let scratch = Scratch::new();
    let table = ["tables", "--rope", "{}", "--head-dim", "128", "--tokens", "4294967295", "--output", "t"];
    for more in [&[][..], &["--cpu"]] {
        refused(scratch.path(), &[&table[..], more].concat(), 1, &["--tokens: was 4294967295", "at most 4194304"]);
    }
    let heads = ["tables", "--rope", "{}", "--head-dim", "4294967294", "--json"];
    refused(scratch.path(), &heads, 1, &["was 4294967294", "65536"]);
}

/// A minus sign begins a number, wherever one is meant, and what is no number is told what it may be.
#[test]
fn numbers_are_told_what_they_may_be() {
    let scratch = Scratch::new();
    let unsigned = "whole number, from 0 to 4294967295";
    for (arguments, may_be) in [
        (&["bench", "curve", "--to", "-5"][..], unsigned),
        (&["bench", "curve", "--budget", "0.5"], unsigned),
        (&["bench", "--tokens", "8,x"], unsigned),
        (&["tables", "--rope", "{}", "--head-dim", "-8", "--json"], unsigned),
        (&["explain", "--config", "c", "--seq-len", "-1"], unsigned),
        (&["rotate", "a", "b", "--config", "c", "--layer", "-1"], "whole number, 0 or more"),
        (&["rotate", "a", "b", "--config", "c", "--start", "1.5"], "whole number, from -2147483648 to 2147483647"),
        (&["attention", "a", "b", "--window", "0"], "whole number, 1 or more"),
        (&["attention", "a", "b", "--heads", "-2"], "whole number, 0 or more"),
    ] {
        let option =
            arguments.iter().rev().find(|argument| argument.starts_with("--") && **argument != "--json").unwrap();
        refused(scratch.path(), arguments, 2, &[option, may_be]);
        let error = String::from_utf8_lossy(&common::phasor(scratch.path(), arguments).stderr).into_owned();
        assert!(!error.contains("tip:"), "{error}");
    }
}

#[test]
fn heads_that_no_rotation_turns_are_blamed_and_not_what_follows_from_them() {
    let scratch = Scratch::new();
    for what in ["rotation", "attention", "decode", "curve"] {
        refused(scratch.path(), &["bench", what, "--head-dim", "7"], 1, &["head-dim: was 7", "may be"]);
    }
}

#[test]
fn files_that_are_no_results_say_how_to_make_some() {
    let scratch = Scratch::new();
    std::fs::write(scratch.at("empty.json"), "").unwrap();
    std::fs::write(scratch.at("other.json"), r#"{"some":"thing"}"#).unwrap();
    std::fs::write(scratch.at("text.json"), "phasor").unwrap();
    for (file, word) in [
        ("empty.json", "was empty"),
        ("other.json", "date"),
        ("text.json", "expected"),
        (".", "irectory"),
        ("none.json", "none.json"),
    ] {
        refused(scratch.path(), &["report", file], 1, &[file, word, "next: `phasor bench --json"]);
    }
}

/// The tensors of a file, and words of what is wrong with it.
type Case<'a> = (&'a [(&'a str, &'a Tensor)], &'a [&'a str]);

#[test]
fn tensors_are_refused_by_name() {
    let scratch = Scratch::new();
    let good = Tensor::f32(&[2, 3, 4, 8], &noise(192));
    let f32 = |shape: &[usize]| Tensor::f32(shape, &noise(shape.iter().product()));
    let bytes = |dtype, shape: &[usize], n| Tensor::new(dtype, shape, vec![0; n]);
    let cases: &[Case] = &[
        (&[("k", &good)], &["q: was missing", "k"]),
        (&[], &["q: was missing", "no tensor"]),
        (&[("q", &f32(&[3, 4, 8]))], &["q: was [3, 4, 8]", "four axes"]),
        (&[("q", &bytes(Dtype::I32, &[1, 1, 1, 2], 8))], &["q: was I32", "F32, F16 or BF16"]),
        (&[("q", &bytes(Dtype::F64, &[1, 1, 1, 2], 16))], &["q: was F64"]),
        (&[("q", &f32(&[1, 1, 1, 7]))], &["q: was heads of 7", "even"]),
        (&[("q", &f32(&[1, 1, 1, 0]))], &["q: was heads of 0"]),
        (&[("q", &good), ("k", &f32(&[2, 3, 1, 16]))], &["k: was [2, 3, 1, 16]", "8 channels"]),
        (&[("q", &good), ("k", &f32(&[2, 4, 1, 8]))], &["k: was [2, 4, 1, 8]", "3 tokens", "--layout"]),
        (&[("q", &good), ("k", &f32(&[2, 3, 8]))], &["k: was [2, 3, 8]"]),
        (&[("q", &good), ("positions", &Tensor::i64(&[2, 2], &[0; 4]))], &["positions: was [2, 2]", "[2, 3]"]),
        (&[("q", &good), ("positions", &Tensor::i64(&[6], &[0; 6]))], &["positions: was [6]"]),
        (
            &[("q", &good), ("positions", &Tensor::i64(&[2, 3], &[0, 0, 0, 0, 0, 1 << 31]))],
            &["positions: was 2147483648"],
        ),
        (&[("q", &good), ("positions", &f32(&[2, 3]))], &["positions: was F32", "I32, I64 or U32"]),
        // Nothing but its extents, of which there is no end.
        (&[("q", &f32(&[1, 1 << 40, 0, 4]))], &["q: was [1, 1099511627776, 0, 4]", "the file's size"]),
    ];
    for (tensors, words) in cases {
        write(&scratch.at("in.safetensors"), tensors);
        for more in [&[][..], &["--cpu"]] {
            refused(scratch.path(), &[&ROTATE[..], more].concat(), 1, &[&["in.safetensors"], *words].concat());
        }
        assert!(!scratch.at("out.safetensors").exists());
    }
}

#[test]
fn positions_past_the_end_of_i32_are_refused() {
    let scratch = Scratch::new();
    write(&scratch.at("in.safetensors"), &[("q", &Tensor::f32(&[1, 2, 1, 4], &noise(8)))]);
    for more in [&[][..], &["--no-table"], &["--cpu"]] {
        refused(
            scratch.path(),
            &[&ROTATE[..], &["--start", "2147483647"], more].concat(),
            1,
            &["2147483647", "may be"],
        );
    }
    refused(scratch.path(), &[&ROTATE[..], &["--start", "2147483648"]].concat(), 2, &["--start"]);
}

#[test]
fn axes_that_a_position_does_not_have_are_refused() {
    let scratch = Scratch::new();
    write(&scratch.at("in.safetensors"), &[("q", &Tensor::f32(&[1, 1, 1, 8], &noise(8)))]);
    let args = ["rotate", "in.safetensors", "o", "--rope", r#"{"rope_type":"axial"}"#, "--pairing", "half-split"];
    refused(scratch.path(), &args, 1, &["rope_type", "axial"]);
}

/// A file cut or altered at any place is refused or read, and never more than that.
#[test]
fn malformed_files_are_refused() {
    let scratch = Scratch::new();
    let path = scratch.at("in.safetensors");
    write(&path, &[("q", &Tensor::f32(&[1, 1, 1, 4], &noise(4)))]);
    let good = std::fs::read(&path).unwrap();
    let args = [&ROTATE[..], &["--cpu"]].concat();
    let mut files = vec![Vec::new(), b"hello".to_vec(), vec![0xff; 64], vec![0; 64]];
    files.extend([1, 8, 9, good.len() / 2, good.len() - 1].map(|n| good[..n].to_vec()));
    for bytes in files {
        std::fs::write(&path, &bytes).unwrap();
        refused(scratch.path(), &args, 1, &["in.safetensors", "safetensors file"]);
    }
    for i in (0..good.len()).step_by(5) {
        let mut bytes = good.clone();
        bytes[i] ^= 0x15;
        std::fs::write(&path, &bytes).unwrap();
        let output = common::phasor(scratch.path(), &args);
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "byte {i}: {code:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn files_that_cannot_be_read_or_written_are_named() {
    let scratch = Scratch::new();
    refused(scratch.path(), &ROTATE, 1, &["in.safetensors"]);
    write(&scratch.at("in.safetensors"), &[("q", &Tensor::f32(&[1, 1, 1, 4], &noise(4)))]);
    let args = ["rotate", "in.safetensors", "no/such/out", "--rope", "{}", "--pairing", "half-split", "--cpu"];
    refused(scratch.path(), &args, 1, &["no/such/out"]);
    std::fs::write(scratch.at("file"), "").unwrap();
    refused(scratch.path(), &["shaders", "--emit", "file"], 1, &["file"]);
}
