//! `phasor cope`: the article's contextual encoding, element types, infinities.

mod common;

use common::{Scratch, Tensor, U, article, assert_close, largest, noise, read, refused, well, write};

/// What a program that sums `keys` gates in f32 one after the other may be off by, in positions worth up to twice `z` each,
/// and in products of `channels` terms.
fn bound(keys: usize, channels: usize, z: f64) -> f64 {
    2.0 * z * ((keys * keys) as f64 * U) + 2.0 * z * channels as f64 * U
}

#[test]
fn the_articles_forward_comes_out() {
    let scratch = Scratch::new();
    for name in ["causal_n1", "causal_n4_saturating", "causal_n64_unsaturated", "causal_n8", "full_n5"] {
        let [query, logits, embeddings, out] =
            ["query", "logits", "position_embeddings", "out"].map(|part| article(&format!("cope.{name}.{part}")));
        let tensors = [("query", &query), ("logits", &logits), ("position_embeddings", &embeddings)];
        write(&scratch.at("in.safetensors"), &tensors);
        let (keys, channels) = (logits.shape[3], query.shape[3]);
        let z = largest(&query.values()) * largest(&embeddings.values()) * channels as f64;
        for more in [&[][..], &["--cpu"]] {
            well(scratch.path(), &[&["cope", "in.safetensors", "out.safetensors"], more].concat());
            let got = read(&scratch.at("out.safetensors"), "out");
            assert_eq!(got.shape, out.shape);
            assert_close(&got.values(), &out.values(), bound(keys, channels, z));
        }
    }
}

/// Heads with embeddings of their own, masked by infinities, and a factor.
#[test]
fn infinities_mask_and_heads_may_differ() {
    let scratch = Scratch::new();
    let query = Tensor::f32(&[1, 2, 3, 4], &noise(24));
    let mut values = noise(2 * 3 * 5);
    values.iter_mut().step_by(3).for_each(|logit| *logit = f32::NEG_INFINITY);
    let logits = Tensor::f32(&[1, 2, 3, 5], &values);
    let embeddings = Tensor::f32(&[2, 4, 3], &noise(24));
    let tensors = [("query", &query), ("logits", &logits), ("position_embeddings", &embeddings)];
    write(&scratch.at("in.safetensors"), &tensors);
    well(scratch.path(), &["cope", "in.safetensors", "cpu.safetensors", "--cpu", "--scale", "-0.5"]);
    well(scratch.path(), &["cope", "in.safetensors", "out.safetensors", "--scale", "-0.5"]);
    let [cpu, got] = ["cpu", "out"].map(|name| read(&scratch.at(&format!("{name}.safetensors")), "out").values());
    assert!(largest(&cpu) > 0.1 && cpu.iter().all(|x| x.is_finite()));
    assert_close(&got, &cpu, bound(5, 4, 4.0));
    well(scratch.path(), &["cope", "in.safetensors", "whole.safetensors", "--cpu"]);
    let whole = read(&scratch.at("whole.safetensors"), "out").values();
    assert_close(&cpu, &whole.iter().map(|x| -0.5 * x).collect::<Vec<_>>(), 1e-6);
}

#[test]
fn what_is_missing_or_does_not_fit_is_named() {
    let scratch = Scratch::new();
    let query = Tensor::f32(&[1, 2, 3, 4], &noise(24));
    let logits = Tensor::f32(&[1, 2, 3, 5], &noise(30));
    let embeddings = Tensor::f32(&[4, 3], &noise(12));
    let args = ["cope", "in.safetensors", "out.safetensors"];
    write(&scratch.at("in.safetensors"), &[("query", &query), ("logits", &logits)]);
    refused(scratch.path(), &args, 1, &["position_embeddings", "[channels, positions]"]);
    let flat = Tensor::f32(&[24], &noise(24));
    write(
        &scratch.at("in.safetensors"),
        &[("query", &flat), ("logits", &logits), ("position_embeddings", &embeddings)],
    );
    refused(scratch.path(), &args, 1, &["query", "[24]", "four axes"]);
    let few = Tensor::f32(&[3, 4], &noise(12));
    write(&scratch.at("in.safetensors"), &[("query", &query), ("logits", &logits), ("position_embeddings", &few)]);
    refused(scratch.path(), &args, 1, &["position_embeddings"]);
    refused(scratch.path(), &[&args[..], &["--scale", "inf"]].concat(), 1, &["--scale", "finite"]);
}
