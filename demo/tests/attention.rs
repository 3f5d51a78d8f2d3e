//! `phasor attention`: a real model's attention, rotated on the way in and before, with contextual encoding and without.

mod common;

use common::{
    Scratch, Tensor, article, article_names, assert_close, largest, noise, read, refused, smollm2, well, write,
};
use safetensors::Dtype;

const ROPE: [&str; 4] = ["--rope", r#"{"rope_theta":100000}"#, "--pairing", "half-split"];

#[track_caller]
fn attention(scratch: &Scratch, more: &[&str]) -> Tensor {
    well(scratch.path(), &[&["attention", "in.safetensors", "out.safetensors"], more].concat());
    read(&scratch.at("out.safetensors"), "out")
}

/// A logit is a sum of 64 products that together are no larger than the lengths of its query and its key, rounded to f32
/// here and in the program that made the file, after a rotation; outputs move by up to twice the values times that.
fn bound(q: &Tensor, k: &Tensor, v: &Tensor) -> f64 {
    let length = |row: &[f32]| row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let longest = |x: &Tensor| x.values().chunks(64).map(length).fold(0.0, f64::max);
    let logit = longest(q) * longest(k) / 8.0;
    // Each of up to 66 sums and the rotation's 2e-7 and four roundings of both; not all at their worst in one direction,
    // which sums of random signs never are: the square root of their number.
    2.0 * largest(&v.values()) * logit * 2.0 * (66f64.sqrt() + 2.0 * 8.0) * common::U
}

#[test]
fn a_real_models_attention_comes_out() {
    let scratch = Scratch::new();
    for layer in [0, 15] {
        let of = |name: &str| smollm2(&format!("layer{layer}.{name}"));
        let (v, expected) = (of("v"), of("attention"));
        let plain = [of("q"), of("k")];
        let turned = [of("q_rotated"), of("k_rotated")];
        for ([q, k], rope) in [(plain, &ROPE[..]), (turned, &[])] {
            write(&scratch.at("in.safetensors"), &[("q", &q), ("k", &k), ("v", &v)]);
            for more in [&[][..], &["--unfused"], &["--cpu"]] {
                let got = attention(&scratch, &[&["--causal"], rope, more].concat());
                assert_eq!(got.shape, expected.shape);
                let bound = bound(&q, &k, &v);
                assert!(bound < 0.02 * largest(&expected.values()), "{bound}");
                assert_close(&got.values(), &expected.values(), bound);
            }
        }
    }
}

fn file(scratch: &Scratch, embeddings: Option<&Tensor>) {
    let q = Tensor::f32(&[2, 5, 4, 8], &noise(320));
    let k = Tensor::f32(&[2, 7, 2, 8], &noise(224));
    let v = Tensor::f32(&[2, 7, 2, 8], &noise(300)[76..]);
    let mut tensors = vec![("q", &q), ("k", &k), ("v", &v)];
    tensors.extend(embeddings.map(|embeddings| ("position_embeddings", embeddings)));
    write(&scratch.at("in.safetensors"), &tensors);
}

/// With everything, the device gives what the CPU gives; and the settings all matter.
#[test]
fn every_option_changes_the_answer_alike_on_device_and_cpu() {
    let scratch = Scratch::new();
    let embeddings = Tensor::f32(&[8, 3], &noise(24));
    file(&scratch, Some(&embeddings));
    let options: [&[&str]; 6] =
        [&[], &["--causal"], &["--causal", "--window", "2"], &["--scale", "1.5"], &["--cope-scale", "-2"], &ROPE];
    let mut outs: Vec<Vec<f32>> = Vec::new();
    for options in options {
        let cpu = attention(&scratch, &[options, &["--cpu"]].concat()).values();
        let lse = read(&scratch.at("out.safetensors"), "lse");
        assert_eq!(lse.shape, [2, 5, 4]);
        for more in [&[][..], &["--unfused"]] {
            // Logits of up to some ten, in products of 8 terms.
            assert_close(&attention(&scratch, &[options, more].concat()).values(), &cpu, 2e-5);
            assert_close(&read(&scratch.at("out.safetensors"), "lse").values(), &lse.values(), 2e-5);
        }
        let differs = |other: &Vec<f32>| other.iter().zip(&cpu).any(|(a, b)| (a - b).abs() > 1e-3);
        assert!(outs.iter().all(differs), "{options:?} changed nothing");
        outs.push(cpu);
    }
    file(&scratch, Some(&Tensor::f32(&[8, 3], &[0.0; 24])));
    let nothing = attention(&scratch, &[]).values();
    file(&scratch, None);
    assert_close(&nothing, &attention(&scratch, &[]).values(), 1e-6);
}

/// The article's whole layer: its inputs and its weights to its outputs.
#[test]
fn the_articles_layer_comes_out() {
    const YARN: &str =
        r#"{"rope_type":"yarn","factor":16,"original_max_position_embeddings":2048,"attn_factor":0.707}"#;
    const NTK: &str = r#"{"rope_type":"ntk_alpha","alpha":16}"#;
    let scratch = Scratch::new();
    for (name, heads, kv_heads, rope) in
        [("mha_yarn", "4", "4", YARN), ("gqa", "6", "2", "{}"), ("mqa_long", "4", "1", NTK)]
    {
        let name = format!("attention.{name}");
        let weights = article_names(&format!("{name}.weights."));
        let tensors: Vec<_> = weights
            .iter()
            .map(|full| (full.trim_start_matches(&format!("{name}.")), article(full)))
            .chain([("inputs", article(&format!("{name}.inputs")))])
            .collect();
        let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
        write(&scratch.at("in.safetensors"), &tensors);
        let args = ["--heads", heads, "--kv-heads", kv_heads, "--causal", "--pairing", "interleaved", "--rope", rope];
        let expected = article(&format!("{name}.out"));
        for more in [&[][..], &["--unfused"], &["--cpu"]] {
            let got = attention(&scratch, &[&args[..], more].concat());
            assert_eq!(got.shape, expected.shape);
            // Numbers of about 1, rounded to f32 in a dozen operations with sums of up to 70 terms, here and there.
            assert_close(&got.values(), &expected.values(), 1e-5);
        }
    }
    refused(scratch.path(), &["attention", "in.safetensors", "out.safetensors"], 1, &["--heads", "missing"]);
    let seven = ["attention", "in.safetensors", "out.safetensors", "--heads", "7"];
    refused(scratch.path(), &seven, 1, &["--heads", "7", "divisor"]);
}

/// Heads before tokens, halves, and a bias that hides keys by minus infinity.
#[test]
fn layouts_types_and_biases() {
    let scratch = Scratch::new();
    let half = |shape: &[usize], values: &[f32]| {
        Tensor::new(Dtype::F16, shape, values.iter().flat_map(|&x| half::f16::from_f32(x).to_le_bytes()).collect())
    };
    let [q, k, v] = [(3, 4), (5, 2), (5, 2)].map(|(tokens, heads)| {
        let values = noise(tokens * heads * 6);
        half(&[1, heads, tokens, 6], &values)
    });
    let mut bias = vec![0.0; 15];
    bias.iter_mut().step_by(2).for_each(|bias| *bias = f32::NEG_INFINITY);
    let bias = Tensor::f32(&[1, 1, 3, 5], &bias);
    write(&scratch.at("in.safetensors"), &[("q", &q), ("k", &k), ("v", &v), ("bias", &bias)]);
    let cpu = attention(&scratch, &["--layout", "bhtd", "--cpu"]);
    let got = attention(&scratch, &["--layout", "bhtd"]);
    assert_eq!((got.dtype, got.shape.clone()), (Dtype::F16, vec![1, 4, 3, 6]));
    let wide = |tensor: &Tensor| -> Vec<f32> {
        tensor.bytes.as_chunks().0.iter().map(|&bytes| half::f16::from_le_bytes(bytes).to_f32()).collect()
    };
    // Averages of values below 1, rounded to f16 once.
    assert_close(&wide(&got), &wide(&cpu), 2f64.powi(-11) + 1e-5);
    write(&scratch.at("in.safetensors"), &[("q", &q), ("k", &k), ("v", &v)]);
    let open = attention(&scratch, &["--layout", "bhtd"]);
    assert!(wide(&open).iter().zip(wide(&got)).any(|(a, b)| (a - b).abs() > 1e-2), "the bias hid nothing");
}

#[test]
fn what_is_missing_or_does_not_fit_is_named() {
    let scratch = Scratch::new();
    file(&scratch, None);
    let args = ["attention", "in.safetensors", "out.safetensors"];
    let with = |more: &[&'static str]| [&args[..], more].concat();
    refused(scratch.path(), &with(&ROPE[..2]), 1, &["--pairing", "half-split", "checkpoint"]);
    refused(scratch.path(), &with(&["--scale", "nan"]), 1, &["--scale", "finite"]);
    refused(scratch.path(), &with(&["--cope-scale", "inf"]), 1, &["--cope-scale", "finite"]);
    refused(scratch.path(), &with(&["--unfused", "--cpu"]), 2, &["--unfused", "--cpu"]);
    refused(scratch.path(), &with(&["--layout", "bhtd"]), 1, &["k", "a divisor of 5"]);
    let q = Tensor::f32(&[1, 2, 2, 4], &noise(16));
    write(&scratch.at("in.safetensors"), &[("q", &q), ("k", &q)]);
    refused(scratch.path(), &args, 1, &["v", "missing", "q, "]);
}
