//! `phasor tables`: golden values, JSON, far positions.

mod common;

use common::{Scratch, U, article, assert_close, json, read, well};

#[test]
fn the_articles_tables_come_out() {
    let scratch = Scratch::new();
    let cases = [
        ("linear_d64_t96", r#"{}"#, "64", "96", 1.0),
        ("linear_d128_t33_b500000", r#"{"rope_theta":500000}"#, "128", "33", 1.0),
        ("ntk_d64_t96_a16", r#"{"rope_type":"ntk_alpha","alpha":16}"#, "64", "96", 1.0),
        (
            "yarn_d64_o2048_s16_t96",
            r#"{"rope_type":"yarn","factor":16,"original_max_position_embeddings":2048,"attn_factor":0.707}"#,
            "64",
            "96",
            0.903_022_023,
        ),
    ];
    for (name, rope, dim, tokens, factor) in cases {
        for more in [&[][..], &["--cpu"]] {
            let args = ["tables", "--rope", rope, "--head-dim", dim, "--tokens", tokens, "--output", "t.safetensors"];
            well(scratch.path(), &[&args, more].concat());
            for part in ["cos", "sin"] {
                let (got, expected) =
                    (read(&scratch.at("t.safetensors"), part), article(&format!("tables.{name}.{part}")));
                assert_eq!(got.shape, expected.shape);
                // float32's angles, up to 95 radians: power, blend and product err by a few u of the angle, cosine and
                // sine by two of one. Ours: 2e-7, and the factor's two roundings.
                let bound = factor * ((95.0 * 8.0 + 2.0) * U + 2e-7 + 2.0 * U);
                assert_close(&got.values(), &expected.values(), bound);
            }
        }
    }
}

#[test]
fn the_device_is_exact_at_far_positions() {
    let scratch = Scratch::new();
    for start in ["4095", "131071", "1000000", "16777208", "-16777215"] {
        let table = |more: &[&str]| {
            let args =
                ["tables", "--rope", "{}", "--head-dim", "128", "--start", start, "--tokens", "8", "--output", "t"];
            well(scratch.path(), &[&args, more].concat());
            ["cos", "sin"].map(|part| read(&scratch.at("t"), part).values())
        };
        let ([cos, sin], [exact_cos, exact_sin]) = (table(&[]), table(&["--cpu"]));
        // The promise, and the reference's rounding to f32.
        assert_close(&cos, &exact_cos, 2e-7 + U);
        assert_close(&sin, &exact_sin, 2e-7 + U);
    }
}

#[test]
fn json_has_the_numbers_in_hugging_faces_words() {
    let scratch = Scratch::new();
    let rope = r#"{"rope_type":"yarn","rope_theta":10000,"factor":16,"original_max_position_embeddings":2048}"#;
    let got = json(scratch.path(), &["tables", "--rope", rope, "--head-dim", "16", "--json"]);
    assert_eq!(got["rope_type"], "yarn");
    assert_eq!(got["rotary_dim"], 16);
    assert!((got["attention_factor"].as_f64().unwrap() - 1.277_258_872).abs() < 1e-9);
    let expected = [1.0, 0.316227766, 0.1, 0.0242111883, 0.0053125, 9.3880118e-4, 6.25e-5, 1.97642354e-5];
    let inv_freq: Vec<_> = got["inv_freq"].as_array().unwrap().iter().map(|w| w.as_f64().unwrap()).collect();
    assert_eq!(inv_freq.len(), expected.len());
    assert!(inv_freq.iter().zip(expected).all(|(got, expected)| (got / expected - 1.0).abs() < 5e-9), "{inv_freq:?}");
}

#[test]
fn part_of_a_head_may_turn() {
    let scratch = Scratch::new();
    let rope = r#"{"partial_rotary_factor":0.25}"#;
    let by_settings = json(scratch.path(), &["tables", "--rope", rope, "--head-dim", "64", "--json"]);
    let by_flag = json(scratch.path(), &["tables", "--rope", "{}", "--head-dim", "64", "--rotary-dim", "16", "--json"]);
    assert_eq!(by_settings, by_flag);
    assert_eq!(by_flag["inv_freq"].as_array().unwrap().len(), 8);
}

#[test]
fn no_tokens_make_an_empty_table() {
    let scratch = Scratch::new();
    for more in [&[][..], &["--cpu"]] {
        let args = ["tables", "--rope", "{}", "--head-dim", "8", "--tokens", "0", "--output", "t"];
        well(scratch.path(), &[&args, more].concat());
        assert_eq!(read(&scratch.at("t"), "cos").shape, [0, 4]);
    }
}
