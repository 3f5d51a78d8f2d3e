//! `phasor rotate`: golden values, round trips, layouts, positions, element types.

mod common;

use common::{
    Scratch, Tensor, article, assert_close, float32_bound, largest, noise, read, rotation_bound, smollm2, well, write,
};
use safetensors::Dtype;

const YARN: &str = r#"{"rope_type":"yarn","factor":16,"original_max_position_embeddings":2048,"attn_factor":0.707}"#;
const PLAIN: &str = r#"{"rope_theta":10000}"#;

/// Rotates `in.safetensors` and gives the tensor `q` of the result.
#[track_caller]
fn rotate(scratch: &Scratch, rope: &str, pairing: &str, more: &[&str]) -> Tensor {
    let args = ["rotate", "in.safetensors", "out.safetensors", "--rope", rope, "--pairing", pairing];
    well(scratch.path(), &[&args, more].concat());
    read(&scratch.at("out.safetensors"), "q")
}

#[test]
fn the_articles_rotations_come_out() {
    // (name, settings, attention factor)
    for (name, rope, factor) in [("linear", PLAIN, 1.0), ("yarn", YARN, 0.903_022_023)] {
        let [q, k, q_out, k_out] = ["q", "k", "q_out", "k_out"].map(|part| article(&format!("rotate.{name}.{part}")));
        let scratch = Scratch::new();
        write(&scratch.at("in.safetensors"), &[("q", &q), ("k", &k)]);
        // 17 tokens from position 0 on, the fastest pair at 1 radian a token.
        let angle = 16.0;
        for more in [&[][..], &["--no-table"], &["--cpu"]] {
            let got = rotate(&scratch, rope, "interleaved", more);
            assert_eq!(got.shape, q.shape);
            let bound = |x: &Tensor| {
                let x = largest(&x.values());
                rotation_bound(x, factor) + float32_bound(x, factor, angle)
            };
            assert_close(&got.values(), &q_out.values(), bound(&q));
            assert_close(&read(&scratch.at("out.safetensors"), "k").values(), &k_out.values(), bound(&k));
        }
    }
}

#[test]
fn transformers_rotations_of_real_activations_come_out() {
    let scratch = Scratch::new();
    for layer in [0, 15] {
        let [q, k, expected] = ["q", "k", "q_rotated"].map(|part| smollm2(&format!("layer{layer}.{part}")));
        write(&scratch.at("in.safetensors"), &[("q", &q), ("k", &k)]);
        let got = rotate(&scratch, r#"{"rope_theta":100000}"#, "half-split", &[]);
        let x = largest(&q.values());
        assert_close(&got.values(), &expected.values(), rotation_bound(x, 1.0) + float32_bound(x, 1.0, 48.0));
    }
}

#[test]
fn the_wrong_pairing_is_far_off() {
    let scratch = Scratch::new();
    let (q, expected) = (smollm2("layer0.q"), smollm2("layer0.q_rotated"));
    write(&scratch.at("in.safetensors"), &[("q", &q)]);
    let got = rotate(&scratch, r#"{"rope_theta":100000}"#, "interleaved", &[]);
    let off = got.values().iter().zip(expected.values()).map(|(a, b)| f64::from((a - b).abs())).fold(0.0, f64::max);
    assert!(off > 0.1, "off by {off} only");
}

#[test]
fn the_inverse_undoes_a_rotation_with_a_factor() {
    let scratch = Scratch::new();
    let q = Tensor::f32(&[2, 3, 4, 16], &noise(2 * 3 * 4 * 16));
    for pairing in ["interleaved", "half-split"] {
        for mode in [&[][..], &["--no-table"], &["--cpu"]] {
            write(&scratch.at("in.safetensors"), &[("q", &q)]);
            let more = [&["--start", "1000000"], mode].concat();
            let turned = rotate(&scratch, YARN, pairing, &more);
            assert!(largest(&turned.values()) < largest(&q.values()) * 1.3, "{pairing} {mode:?}");
            assert_ne!(turned, q);
            write(&scratch.at("in.safetensors"), &[("q", &turned)]);
            let back = rotate(&scratch, YARN, pairing, &[&["--inverse"], &more[..]].concat());
            // Once there and once back, the error of the way there divided by the factor again.
            assert_close(&back.values(), &q.values(), 2.0 * rotation_bound(largest(&q.values()) * 1.5, 1.0));
        }
    }
}

#[test]
fn heads_before_tokens_is_the_same_rotation() {
    let scratch = Scratch::new();
    let (b, t, h, d) = (2, 5, 3, 8);
    let values = noise(b * t * h * d);
    let exchanged = |values: &[f32]| {
        let mut out = vec![0.0; values.len()];
        for (i, &x) in values.iter().enumerate() {
            let (channel, head, token, row) = (i % d, i / d % h, i / d / h % t, i / d / h / t);
            out[((row * h + head) * t + token) * d + channel] = x;
        }
        out
    };
    write(&scratch.at("in.safetensors"), &[("q", &Tensor::f32(&[b, t, h, d], &values))]);
    let plain = rotate(&scratch, PLAIN, "half-split", &["--start", "-7"]);
    write(&scratch.at("in.safetensors"), &[("q", &Tensor::f32(&[b, h, t, d], &exchanged(&values)))]);
    for more in [&[][..], &["--cpu"]] {
        let other = rotate(&scratch, PLAIN, "half-split", &[&["--start", "-7", "--layout", "bhtd"], more].concat());
        assert_eq!(other.shape, [b, h, t, d]);
        assert_close(&other.values(), &exchanged(&plain.values()), 2.0 * rotation_bound(1.0, 1.0));
    }
}

#[test]
fn positions_of_the_file_win() {
    let scratch = Scratch::new();
    let q = Tensor::f32(&[2, 2, 1, 4], &noise(16));
    let from = |start: i64| [start, start + 1, start, start + 1];
    write(&scratch.at("in.safetensors"), &[("q", &q)]);
    let expected = rotate(&scratch, PLAIN, "half-split", &["--start", "16777214"]).values();
    let positions = [
        Tensor::i64(&[2, 2], &from(16_777_214)),
        Tensor::new(Dtype::I32, &[2, 2], from(16_777_214).iter().flat_map(|&p| (p as i32).to_le_bytes()).collect()),
        Tensor::new(Dtype::U32, &[2, 2], from(16_777_214).iter().flat_map(|&p| (p as u32).to_le_bytes()).collect()),
    ];
    for positions in positions {
        write(&scratch.at("in.safetensors"), &[("q", &q), ("positions", &positions)]);
        for more in [&[][..], &["--no-table"], &["--cpu"]] {
            let got = rotate(&scratch, PLAIN, "half-split", &[&["--start", "3"], more].concat()).values();
            assert_close(&got, &expected, 2.0 * rotation_bound(1.0, 1.0));
        }
    }
}

#[test]
fn the_device_and_the_cpu_agree_far_out() {
    let scratch = Scratch::new();
    let (q, k) = (Tensor::f32(&[1, 4, 6, 64], &noise(1536)), Tensor::f32(&[1, 4, 2, 64], &noise(512)));
    write(&scratch.at("in.safetensors"), &[("q", &q), ("k", &k)]);
    for start in ["0", "131071", "16777212", "-16777215"] {
        for pairing in ["interleaved", "half-split"] {
            let [device, cpu] = [&["--start", start][..], &["--start", start, "--cpu"]]
                .map(|more| rotate(&scratch, PLAIN, pairing, more));
            assert_close(&device.values(), &cpu.values(), rotation_bound(1.0, 1.0) + U_OF_ONE);
        }
    }
}

/// The reference's own rounding to f32, of numbers up to 2.
const U_OF_ONE: f64 = 2.0 * common::U;

/// The numbers of a type of 16 bits in their order, so that neighbours are 1 apart; both zeros are 0.
fn places(tensor: &Tensor) -> Vec<i32> {
    let place = |bits: u16| if bits >> 15 == 0 { i32::from(bits) } else { -i32::from(bits & 0x7fff) };
    tensor.bytes.as_chunks().0.iter().map(|&bytes| place(u16::from_le_bytes(bytes))).collect()
}

#[test]
fn half_precision_is_the_articles_to_one_unit_in_the_last_place() {
    let scratch = Scratch::new();
    for (name, dtype) in [("float16", Dtype::F16), ("bfloat16", Dtype::BF16)] {
        let [q, k, q_out, k_out] = ["q", "k", "q_out", "k_out"].map(|part| article(&format!("rotate.{name}.{part}")));
        write(&scratch.at("in.safetensors"), &[("q", &q), ("k", &k)]);
        for more in [&[][..], &["--no-table"], &["--cpu"]] {
            let got = rotate(&scratch, PLAIN, "interleaved", more);
            for (got, expected) in [(&got, &q_out), (&read(&scratch.at("out.safetensors"), "k"), &k_out)] {
                assert_eq!((got.dtype, &got.shape), (dtype, &expected.shape));
                let off = places(got).iter().zip(places(expected)).map(|(a, b)| a.abs_diff(b)).max();
                assert!(off <= Some(1), "{name} {more:?}: off by {off:?} units in the last place");
            }
        }
    }
}

#[test]
fn queries_and_keys_have_types_of_their_own() {
    let scratch = Scratch::new();
    let [q, k] = ["float16.q", "bfloat16.k"].map(|name| article(&format!("rotate.{name}")));
    let expected = ["float16.q_out", "bfloat16.k_out"].map(|name| article(&format!("rotate.{name}")));
    write(&scratch.at("in.safetensors"), &[("q", &q), ("k", &k)]);
    for more in [&[][..], &["--no-table"], &["--cpu"]] {
        rotate(&scratch, PLAIN, "interleaved", more);
        for (name, expected) in ["q", "k"].into_iter().zip(&expected) {
            let got = read(&scratch.at("out.safetensors"), name);
            assert_eq!((got.dtype, &got.shape), (expected.dtype, &expected.shape));
            assert!(places(&got).iter().zip(places(expected)).all(|(a, b)| a.abs_diff(b) <= 1), "{name} {more:?}");
        }
    }
}

#[test]
fn empty_tensors_and_missing_keys_are_fine() {
    let scratch = Scratch::new();
    for shape in [[1, 0, 2, 4], [0, 3, 2, 4], [1, 3, 0, 4]] {
        write(&scratch.at("in.safetensors"), &[("q", &Tensor::f32(&shape, &[]))]);
        for more in [&[][..], &["--no-table"], &["--cpu"]] {
            assert_eq!(rotate(&scratch, PLAIN, "half-split", more).shape, shape);
        }
    }
}

#[test]
fn partial_rotary_leaves_the_other_channels() {
    let scratch = Scratch::new();
    let q = Tensor::f32(&[1, 2, 1, 16], &noise(32));
    write(&scratch.at("in.safetensors"), &[("q", &q)]);
    let got = rotate(&scratch, r#"{"partial_rotary_factor":0.25}"#, "half-split", &["--start", "5"]).values();
    for (before, after) in q.values().chunks(16).zip(got.chunks(16)) {
        assert_eq!(before[4..], after[4..]);
        assert!(before[..4].iter().zip(after).all(|(a, b)| a != b));
    }
}

/// What a file has beside queries and keys stays in it: by its positions the inverse finds the way back.
#[test]
fn the_inverse_of_a_file_with_positions_undoes_it_in_place() {
    let scratch = Scratch::new();
    let q = Tensor::f32(&[1, 2, 1, 8], &noise(16));
    let positions = Tensor { dtype: Dtype::I32, shape: vec![1, 2], bytes: [10i32, 20].map(i32::to_le_bytes).concat() };
    write(
        &scratch.at("in.safetensors"),
        &[("q", &q), ("positions", &positions), ("other", &Tensor::f32(&[3], &noise(3)))],
    );
    for inverse in [&[][..], &["--inverse"]] {
        let args = ["rotate", "in.safetensors", "in.safetensors", "--rope", PLAIN, "--pairing", "half-split"];
        well(scratch.path(), &[&args[..], inverse].concat());
        assert_eq!(read(&scratch.at("in.safetensors"), "positions").bytes, positions.bytes);
        assert_eq!(read(&scratch.at("in.safetensors"), "other").shape, [3]);
    }
    let bound = 2.0 * rotation_bound(largest(&q.values()), 1.0);
    assert_close(&read(&scratch.at("in.safetensors"), "q").values(), &q.values(), bound);
}
