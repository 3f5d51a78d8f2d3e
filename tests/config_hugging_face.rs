//! `config.json` files, cut down by hand to what matters, for each family of models in old and new style.
#![cfg(feature = "config")]

use phasor::config::{LayerRope, ModelRope};
use phasor::frequencies::{
    DynamicNtk, Law, Linear, Llama3, LongRope, Magnitude, NtkAware, Plain, Proportional, QueryScale, Yarn,
};
use phasor::{Pairing, Rotary};
use serde_json::{Value, json};

#[track_caller]
fn read(config: &Value) -> ModelRope {
    ModelRope::from_hugging_face(&config.to_string()).unwrap()
}

/// Reads without a warning.
#[track_caller]
fn read_quietly(config: &Value) -> ModelRope {
    let model = read(config);
    assert_eq!(model.warnings(), [] as [String; 0]);
    model
}

#[track_caller]
fn layer(model: &ModelRope, index: usize) -> &LayerRope {
    model.layer(index).unwrap()
}

/// Two files must say the same, whatever their style; where the numbers came from may differ.
#[track_caller]
fn assert_same(one: &Value, other: &Value) -> ModelRope {
    let (one, other) = (read_quietly(one), read_quietly(other));
    assert_eq!(one.layers(), other.layers());
    for i in 0..one.layers().unwrap_or(1) {
        let without_sources = |rope: &LayerRope| {
            let mut rope = rope.clone();
            rope.sources.clear();
            rope
        };
        assert_eq!(without_sources(layer(&one, i)), without_sources(layer(&other, i)), "layer {i}");
    }
    one
}

/// `config` with `keys` on top.
fn with(config: &Value, keys: Value) -> Value {
    let mut whole = config.clone();
    whole.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    whole
}

fn whole(head_dim: u32) -> Rotary {
    Rotary::whole(head_dim).unwrap()
}

/// The layers that rotate.
fn rotating(model: &ModelRope) -> Vec<usize> {
    (0..model.layers().unwrap()).filter(|&i| layer(model, i).rotates).collect()
}

#[test]
fn llama_3_1() {
    let base = json!({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 2,
        "max_position_embeddings": 131072});
    let scaling = json!({"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192, "rope_type": "llama3"});
    let old = with(&base, json!({"rope_theta": 500000.0, "rope_scaling": scaling}));
    let new = with(&base, json!({"rope_parameters": with(&scaling, json!({"rope_theta": 500000.0}))}));
    let model = assert_same(&old, &new);
    let rope = layer(&model, 1);
    assert_eq!(rope.law, Llama3::new(5e5, 8.0, 8192).into());
    assert_eq!((rope.pairing, rope.head_dim, rope.rotary), (Pairing::HalfSplit, 128, whole(128)));
    assert_eq!(rope.axes.count(), 1);
    assert!(rope.rotates && rope.softmax_scale_multiplier == 1.0 && rope.query_scale.is_none());
    assert!(model.layer(2).is_err());
    let from = |setting: &str| rope.sources.iter().find(|source| source.setting == setting).unwrap().from.as_str();
    assert_eq!(from("rope_theta"), "rope_theta");
    assert_eq!(from("factor"), "rope_scaling.factor");
    assert_eq!(from("head_dim"), "hidden_size / num_attention_heads");
}

#[test]
fn both_spellings_of_the_type_may_occur_together() {
    let config = json!({"model_type": "llama", "head_dim": 64, "rope_theta": 1e4,
        "rope_scaling": {"type": "linear", "rope_type": "linear", "factor": 4.0}});
    assert_eq!(layer(&read_quietly(&config), 0).law, Linear::new(1e4, 4.0).into());
    // The same key twice is legal JSON; the last one holds.
    let twice = r#"{"model_type": "llama", "head_dim": 64, "rope_theta": 1e4, "rope_theta": 2e4}"#;
    assert_eq!(ModelRope::from_hugging_face(twice).unwrap().layer(5).unwrap().law, Plain::new(2e4).into());
    let torn = json!({"model_type": "llama", "head_dim": 64,
        "rope_scaling": {"type": "dynamic", "rope_type": "linear", "factor": 4.0}});
    let model = read(&torn);
    assert_eq!(layer(&model, 0).law.name(), "linear");
    assert!(model.warnings()[0].contains("rope_scaling.type"), "{:?}", model.warnings());
}

#[test]
fn qwen_2_5_with_yarn() {
    let base = json!({"model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28, "num_hidden_layers": 1,
        "max_position_embeddings": 131072});
    let scaling = json!({"factor": 4.0, "original_max_position_embeddings": 32768, "type": "yarn"});
    let old = with(&base, json!({"rope_theta": 1e6, "rope_scaling": scaling}));
    let new = json!({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768, "rope_theta": 1e6});
    let model = assert_same(&old, &with(&base, json!({"rope_parameters": new})));
    assert_eq!(layer(&model, 0).law, Yarn::new(1e6, 4.0, 32768).into());
    // A factor that is there wins over the ratio of the contexts, and the difference is worth a word.
    let odd = with(&old, json!({"max_position_embeddings": 65536}));
    let model = read(&odd);
    assert_eq!(layer(&model, 0).law, Yarn::new(1e6, 4.0, 32768).into());
    assert_eq!(model.warnings().len(), 1);
    // `null` asks for the ratio.
    let ratio = with(
        &base,
        json!({"rope_parameters":
        {"rope_type": "yarn", "factor": null, "original_max_position_embeddings": 16384, "rope_theta": 1e6}}),
    );
    assert_eq!(layer(&read_quietly(&ratio), 0).law, Yarn::new(1e6, 8.0, 16384).into());
}

#[test]
fn yarn_spells_its_magnitude_in_many_ways() {
    let yarn = |keys: Value| {
        let scaling = json!({"type": "yarn", "factor": 16.0, "original_max_position_embeddings": 4096});
        let config = json!({"model_type": "llama", "head_dim": 64, "rope_scaling": with(&scaling, keys)});
        match layer(&read(&config), 0).law.clone() {
            Law::Yarn(yarn) => yarn,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(yarn(json!({})).magnitude, Magnitude::Default);
    assert_eq!(yarn(json!({"attention_factor": null})).magnitude, Magnitude::Default);
    assert_eq!(yarn(json!({"attention_factor": 1.25})).magnitude, Magnitude::Explicit(1.25));
    assert_eq!(yarn(json!({"attn_factor": 0.707})).magnitude, Magnitude::Multiplier(0.707));
    let pair = Magnitude::MscalePair { mscale: 1.0, mscale_all_dim: 0.8 };
    assert_eq!(yarn(json!({"mscale": 1.0, "mscale_all_dim": 0.8})).magnitude, pair);
    assert_eq!(
        yarn(json!({"mscale": 1.0, "mscale_all_dim": 0.8, "attention_factor": 2})).magnitude,
        Magnitude::Explicit(2.0)
    );
    // One alone, or a 0, counts as none.
    assert_eq!(yarn(json!({"mscale": 1.0})).magnitude, Magnitude::Default);
    assert_eq!(yarn(json!({"mscale": 1.0, "mscale_all_dim": 0})).magnitude, Magnitude::Default);
    assert_eq!(yarn(json!({"apply_yarn_scaling": false})).magnitude, Magnitude::Explicit(1.0));
    assert_eq!(yarn(json!({"beta_fast": 0, "beta_slow": 0.5})).beta_fast, 32.0);
    assert_eq!(yarn(json!({"beta_fast": 0, "beta_slow": 0.5})).beta_slow, 0.5);
    for name in ["deepseek_yarn", "telechat3-yarn"] {
        assert_eq!(yarn(json!({"type": name})).factor, 16.0);
    }
}

#[test]
fn deepseek_v3_and_v2_lite() {
    let base = json!({"model_type": "deepseek_v3", "hidden_size": 7168, "num_attention_heads": 128,
        "num_hidden_layers": 1, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "max_position_embeddings": 163840});
    let scaling = json!({"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 4096, "type": "yarn"});
    let old = with(&base, json!({"rope_theta": 10000, "rope_scaling": scaling}));
    let new =
        with(&base, json!({"rope_parameters": with(&scaling, json!({"rope_theta": 10000, "rope_type": "yarn"}))}));
    let model = assert_same(&old, &new);
    let rope = layer(&model, 0);
    assert_eq!((rope.pairing, rope.head_dim, rope.rotary), (Pairing::Interleaved, 64, whole(64)));
    assert_eq!(rope.frequencies(0).unwrap().attention_factor(), 1.0);
    assert!((rope.softmax_scale_multiplier - 1.87385).abs() < 1e-5);
    // Weights that were stored half-split say so.
    let half_split = with(&old, json!({"rope_interleave": false}));
    assert_eq!(layer(&read_quietly(&half_split), 0).pairing, Pairing::HalfSplit);

    let lite = with(&scaling, json!({"mscale": 0.707, "mscale_all_dim": 0.707}));
    let lite = with(&base, json!({"model_type": "deepseek_v2", "rope_scaling": lite}));
    assert!((layer(&read_quietly(&lite), 0).softmax_scale_multiplier - 1.58963).abs() < 1e-5);
    // Without latent attention the same keys correct nothing beyond the attention factor.
    let plain = with(&lite, json!({"model_type": "llama", "qk_rope_head_dim": null, "head_dim": 64}));
    assert_eq!(layer(&read_quietly(&plain), 0).softmax_scale_multiplier, 1.0);
}

#[test]
fn deepseek_v4_turns_the_end_of_the_head_and_has_two_ropes() {
    let yarn = json!({"type": "yarn", "factor": 16, "original_max_position_embeddings": 65536});
    let base = json!({"model_type": "deepseek_v4", "head_dim": 512, "qk_rope_head_dim": 64, "num_hidden_layers": 3,
        "max_position_embeddings": 1048576, "layer_types":
        ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"]});
    let old = with(&base, json!({"rope_theta": 10000, "compress_rope_theta": 160000, "rope_scaling": yarn}));
    let new = with(
        &base,
        json!({"rope_parameters": {
        "main": {"rope_type": "default", "rope_theta": 10000, "partial_rotary_factor": 0.125},
        "compress": with(&yarn, json!({"rope_theta": 160000, "partial_rotary_factor": 0.125, "rope_type": "yarn"}))}}),
    );
    let model = assert_same(&old, &new);
    assert_eq!(layer(&model, 0).law, Plain::new(1e4).into());
    let compressed = Yarn { magnitude: Magnitude::Explicit(1.0), ..Yarn::new(160_000.0, 16.0, 65536) };
    assert_eq!(layer(&model, 1).law, compressed.into());
    assert_eq!(layer(&model, 2).rotary, Rotary::new(512, 64, 448).unwrap());
    assert_eq!(layer(&model, 2).pairing, Pairing::Interleaved);
    let ratios = with(&old, json!({"layer_types": null, "compress_ratios": [0, 4, 128]}));
    assert_eq!(layer(&read_quietly(&ratios), 0).law, Plain::new(1e4).into());
}

#[test]
fn gpt_oss() {
    let base = json!({"model_type": "gpt_oss", "hidden_size": 2880, "head_dim": 64, "num_attention_heads": 64,
        "num_hidden_layers": 4, "max_position_embeddings": 131072});
    let scaling = json!({"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
        "original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": false});
    let old = with(&base, json!({"rope_scaling": scaling}));
    let new = with(&base, json!({"rope_parameters": with(&scaling, json!({"rope_theta": 150000}))}));
    let model = assert_same(&old, &new);
    // Layers with a window have the same rope.
    let law: Law = Yarn { truncate: false, ..Yarn::new(150_000.0, 32.0, 4096) }.into();
    for i in 0..4 {
        assert_eq!(layer(&model, i).law, law);
    }
    assert_eq!(layer(&model, 0).layer_type.as_deref(), Some("sliding_attention"));
}

#[test]
fn phi_3_5() {
    let (short, long): (Vec<f64>, Vec<f64>) = ((0..48).map(|i| 1.0 + 0.05 * f64::from(i)).collect(), vec![4.0; 48]);
    let base = json!({"model_type": "phi3", "hidden_size": 3072, "num_attention_heads": 32, "num_hidden_layers": 1,
        "max_position_embeddings": 131072, "original_max_position_embeddings": 4096});
    let lists = json!({"short_factor": short, "long_factor": long});
    let law: Law = LongRope::new(1e4, short, long, 4096, 32.0).into();
    let new =
        with(&lists, json!({"rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 4096}));
    let new = with(&base, json!({"rope_parameters": new}));
    for name in ["su", "longrope", "yarn"] {
        let old = with(&base, json!({"rope_theta": 1e4, "rope_scaling": with(&lists, json!({"type": name}))}));
        assert_eq!(layer(&assert_same(&old, &new), 0).law, law);
    }
    let rope = read(&new);
    let at = |seq_len| layer(&rope, 0).frequencies(seq_len).unwrap();
    assert_eq!(at(4096).inv_freq()[1], at(0).inv_freq()[1]);
    assert!(at(4097).inv_freq()[1] < at(4096).inv_freq()[1]);
    assert!((at(1).attention_factor() - 1.190_238).abs() < 1e-6);
    // Beside the rope's settings the original context wins over the one within.
    let torn = with(
        &base,
        json!({"original_max_position_embeddings": 8192, "rope_scaling":
        with(&lists, json!({"type": "longrope", "original_max_position_embeddings": 4096}))}),
    );
    let torn = read(&torn);
    assert_eq!(torn.warnings().len(), 1);
    assert!(matches!(&layer(&torn, 0).law, Law::LongRope(law) if law.original_max_position_embeddings == 8192));
    // PhiMoE states a magnitude for each list.
    let moe = with(
        &lists,
        json!({"type": "longrope", "short_mscale": 1.2, "long_mscale": 1.3,
        "original_max_position_embeddings": 4096}),
    );
    let moe = json!({"model_type": "phimoe", "head_dim": 96, "max_position_embeddings": 131072, "rope_scaling": moe});
    let moe = read_quietly(&moe);
    assert_eq!(layer(&moe, 0).frequencies(4096).unwrap().attention_factor(), 1.2);
    assert_eq!(layer(&moe, 0).frequencies(4097).unwrap().attention_factor(), 1.3);
}

#[test]
fn gemma_3() {
    let base = json!({"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 7,
        "max_position_embeddings": 131072});
    let old = with(
        &base,
        json!({"rope_theta": 1e6, "rope_local_base_freq": 1e4, "sliding_window_pattern": 6,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}),
    );
    let new = with(
        &base,
        json!({"rope_parameters": {
        "full_attention": {"factor": 8.0, "rope_type": "linear", "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}}),
    );
    let model = assert_same(&old, &new);
    let (full, sliding): (Law, Law) = (Linear::new(1e6, 8.0).into(), Plain::new(1e4).into());
    for i in 0..7 {
        assert_eq!(layer(&model, i).law, if i == 5 { full.clone() } else { sliding.clone() }, "layer {i}");
        assert_eq!((layer(&model, i).head_dim, layer(&model, i).pairing), (256, Pairing::HalfSplit));
    }
    assert_eq!(model.layer_type("full_attention").unwrap().law, full);
    assert_eq!(model.layer_type("sliding_attention").unwrap().law, sliding);
    assert!(model.layer_type("chunked_attention").is_err());
    assert_eq!(model.kinds().len(), 2);
    assert_eq!(model.layers_of(1).collect::<Vec<_>>(), [5]);
    // The class knows both bases; a multimodal file has all this one level down.
    let short = json!({"model_type": "gemma3", "vision_config": {"hidden_size": 1152}, "text_config":
        with(&base, json!({"rope_scaling": {"factor": 8.0, "rope_type": "linear"}}))});
    assert_same(&old, &short);
}

#[test]
fn gemma_4() {
    let base = json!({"model_type": "gemma4_text", "num_hidden_layers": 7, "head_dim": 256, "global_head_dim": 512});
    let spelt = with(
        &base,
        json!({"rope_parameters": {
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}}),
    );
    let model = assert_same(&base, &spelt);
    let full = layer(&model, 5);
    assert_eq!(full.law, Proportional::new(1e6, 0.25).into());
    assert_eq!((full.head_dim, full.rotary), (512, whole(512)));
    assert_eq!(full.frequencies(0).unwrap().inv_freq().iter().filter(|&&w| w > 0.0).count(), 64);
    assert_eq!((layer(&model, 0).head_dim, layer(&model, 0).law.clone()), (256, Plain::new(1e4).into()));
    assert_eq!(layer(&model, 6).layer_type.as_deref(), Some("full_attention"), "the last layer always");
}

#[test]
fn hunyuan_calls_a_fixed_alpha_dynamic() {
    let base = json!({"model_type": "hunyuan_v1_dense", "head_dim": 128, "num_hidden_layers": 1,
        "max_position_embeddings": 32768});
    let scaling = json!({"type": "dynamic", "alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0,
        "mscale": 1.0, "mscale_all_dim": 0.0});
    let old = with(&base, json!({"rope_theta": 1e4, "rope_scaling": scaling}));
    let new = with(&base, json!({"rope_parameters": {"rope_type": "ntk_alpha", "alpha": 1000.0, "rope_theta": 1e4}}));
    let model = assert_same(&old, &new);
    assert_eq!(layer(&model, 0).law, NtkAware::new(1e4, 1000.0).into());
    // Without alpha, dynamic is dynamic.
    let dynamic = with(&base, json!({"rope_scaling": {"type": "dynamic", "factor": 2.0}}));
    assert_eq!(layer(&read_quietly(&dynamic), 0).law, DynamicNtk::new(1e4, 2.0, 32768).into());
}

#[test]
fn qwen_vl_has_three_axes() {
    let base = json!({"hidden_size": 3584, "num_attention_heads": 28, "num_hidden_layers": 1});
    let old = with(
        &base,
        json!({"model_type": "qwen2_vl", "rope_theta": 1e6, "vision_config": {"depth": 32},
        "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}}),
    );
    let new = json!({"model_type": "qwen2_vl", "text_config": with(&base, json!({"model_type": "qwen2_vl_text",
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]}}))});
    let model = assert_same(&old, &new);
    assert_eq!(layer(&model, 0).law, Plain::new(1e6).into());
    let axes = |model: &ModelRope| layer(model, 0).axes.axis_of_pair().to_vec();
    let counts = |axes: &[u8]| [0, 1, 2].map(|axis| axes.iter().filter(|&&of| of == axis).count());
    assert_eq!(axes(&model)[14..18], [0, 0, 1, 1]);
    assert_eq!(counts(&axes(&model)), [16, 24, 24]);

    let third = json!({"model_type": "qwen3_vl", "text_config": {"model_type": "qwen3_vl_text", "num_hidden_layers": 1,
        "rope_theta": 5e6, "rope_scaling": {"rope_type": "default", "mrope_section": [24, 20, 20],
        "mrope_interleaved": true}}});
    let third = read_quietly(&third);
    assert_eq!(axes(&third)[..7], [0, 1, 2, 0, 1, 2, 0]);
    assert_eq!(axes(&third)[57..], [0, 1, 2, 0, 0, 0, 0]);
    assert_eq!(counts(&axes(&third)), [24, 20, 20]);

    let ernie = read_quietly(&json!({"model_type": "ernie4_5_vl_moe_text", "head_dim": 128}));
    assert_eq!(axes(&ernie)[..4], [1, 2, 1, 2]);
    assert_eq!(axes(&ernie)[42..46], [1, 2, 0, 0]);
    assert_eq!(layer(&ernie, 0).pairing, Pairing::Interleaved);

    let glm = read_quietly(&json!({"model_type": "glm4v_text", "head_dim": 128, "rope_parameters":
        {"rope_type": "default", "partial_rotary_factor": 0.5, "mrope_section": [8, 12, 12]}}));
    assert_eq!((layer(&glm, 0).rotary.dim(), counts(&axes(&glm))), (64, [8, 12, 12]));

    let hunyuan = read_quietly(&json!({"model_type": "hunyuan_vl", "head_dim": 128, "rope_scaling":
        {"type": "dynamic", "alpha": 1000, "xdrope_section": [16, 16, 16, 16]}}));
    assert_eq!(layer(&hunyuan, 0).axes.count(), 4);
}

#[test]
fn smollm_3_leaves_every_fourth_layer_without_rope() {
    let base = json!({"model_type": "smollm3", "hidden_size": 2048, "num_attention_heads": 16, "num_hidden_layers": 8});
    // 1 means: has rope.
    let listed = with(&base, json!({"rope_theta": 2e6, "no_rope_layers": [1, 1, 1, 0, 1, 1, 1, 0]}));
    let model = assert_same(&base, &listed);
    assert_eq!(rotating(&model), [0, 1, 2, 4, 5, 6]);
    assert_eq!(layer(&model, 0).law, Plain::new(2e6).into());
    let sparser = with(&base, json!({"no_rope_layer_interval": 5}));
    assert_eq!(rotating(&read_quietly(&sparser)), [0, 1, 2, 3, 5, 6, 7]);
    let other = with(&base, json!({"model_type": "llama", "no_rope_layers": [0, 1, 1, 1, 1, 1, 1, 1]}));
    assert_eq!(rotating(&read_quietly(&other)), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn llama_4_scales_queries_where_it_does_not_rotate() {
    let base = json!({"model_type": "llama4", "text_config": {"model_type": "llama4_text", "num_hidden_layers": 4,
        "rope_theta": 500000.0, "attn_scale": 0.1, "floor_scale": 8192, "attn_temperature_tuning": true,
        "rope_scaling": {"factor": 16.0, "high_freq_factor": 1.0, "low_freq_factor": 0.5,
        "original_max_position_embeddings": 8192, "rope_type": "llama3"}}});
    let model = read_quietly(&base);
    assert_eq!(rotating(&model), [0, 1, 2]);
    assert_eq!(layer(&model, 3).query_scale, Some(QueryScale { scale: 0.1, window: 8192, shift: 1 }));
    assert_eq!(layer(&model, 0).query_scale, None);
    assert_eq!((layer(&model, 0).pairing, layer(&model, 0).head_dim), (Pairing::Interleaved, 128));
    let mut untuned = base.clone();
    untuned["text_config"]["attn_temperature_tuning"] = json!(false);
    assert_eq!(layer(&read_quietly(&untuned), 3).query_scale, None);
}

#[test]
fn ministral_3_scales_queries_everywhere() {
    let bare = json!({"model_type": "ministral3", "num_hidden_layers": 1, "max_position_embeddings": 262144});
    let spelt = with(
        &bare,
        json!({"rope_parameters": {"type": "yarn", "rope_theta": 1000000.0, "factor": 16.0,
        "original_max_position_embeddings": 16384, "max_position_embeddings": 262144, "beta_fast": 32.0,
        "beta_slow": 1.0, "mscale_all_dim": 1.0, "mscale": 1.0, "llama_4_scaling_beta": 0.1}}),
    );
    let model = assert_same(&bare, &spelt);
    assert_eq!(layer(&model, 0).query_scale, Some(QueryScale { scale: 0.1, window: 16384, shift: 0 }));
    assert_eq!(layer(&model, 0).frequencies(0).unwrap().attention_factor(), 1.0);
}

#[test]
fn olmo_3_scales_layers_that_see_everything() {
    let base =
        json!({"model_type": "olmo3", "head_dim": 128, "num_hidden_layers": 4, "max_position_embeddings": 65536});
    let yarn = json!({"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8192,
        "attention_factor": 1.2079441541679836});
    let old = with(&base, json!({"rope_theta": 500000, "rope_scaling": yarn}));
    let new = with(
        &base,
        json!({"rope_parameters": {"full_attention": with(&yarn, json!({"rope_theta": 5e5})),
        "sliding_attention": {"rope_type": "default", "rope_theta": 5e5}}}),
    );
    let model = assert_same(&old, &new);
    assert_eq!(layer(&model, 0).law, Plain::new(5e5).into());
    assert_eq!(layer(&model, 3).law.name(), "yarn");
    assert_eq!(layer(&model, 3).frequencies(0).unwrap().attention_factor(), 1.2079441541679836);
}

#[test]
fn modernbert_has_two_bases() {
    let base =
        json!({"model_type": "modernbert", "hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 4});
    let old = with(
        &base,
        json!({"global_rope_theta": 160000.0, "local_rope_theta": 10000.0,
        "global_attn_every_n_layers": 3}),
    );
    let model = assert_same(&base, &old);
    for (i, theta) in [160_000.0, 10_000.0, 10_000.0, 160_000.0].into_iter().enumerate() {
        assert_eq!(layer(&model, i).law, Plain::new(theta).into());
    }
}

#[test]
fn cohere_2_and_exaone_4_rotate_within_windows_alone() {
    let cohere = json!({"model_type": "cohere2", "head_dim": 128, "num_hidden_layers": 8, "rope_theta": 50000,
        "sliding_window": 4096, "sliding_window_pattern": 4});
    let model = read_quietly(&cohere);
    assert_eq!(rotating(&model), [0, 1, 2, 4, 5, 6]);
    assert_eq!(layer(&model, 0).pairing, Pairing::Interleaved);
    let exaone = json!({"model_type": "exaone4", "head_dim": 128, "num_hidden_layers": 8, "sliding_window": 4096,
        "sliding_window_pattern": "LLLG"});
    assert_eq!(rotating(&read_quietly(&exaone)), [0, 1, 2, 4, 5, 6]);
    let without_windows = with(&exaone, json!({"sliding_window": null, "sliding_window_pattern": null}));
    assert_eq!(rotating(&read_quietly(&without_windows)).len(), 8);
}

#[test]
fn partial_rotation() {
    let dims = |config: Value| {
        let rope = layer(&read_quietly(&config), 0).clone();
        (rope.head_dim, rope.rotary.dim(), rope.rotary.offset(), rope.pairing)
    };
    use Pairing::{HalfSplit, Interleaved};
    let heads = json!({"hidden_size": 4096, "num_attention_heads": 32});
    let of = |model_type: &str, keys: Value| with(&with(&heads, json!({"model_type": model_type})), keys);
    assert_eq!(dims(of("glm4", json!({}))), (128, 64, 0, Interleaved));
    assert_eq!(dims(of("glm4", json!({"partial_rotary_factor": 0.25}))), (128, 32, 0, Interleaved));
    assert_eq!(dims(of("gpt_neox", json!({"rotary_pct": 0.25, "rotary_emb_base": 10000}))), (128, 32, 0, HalfSplit));
    assert_eq!(dims(of("gpt_neox", json!({}))), (128, 32, 0, HalfSplit));
    assert_eq!(dims(of("gptj", json!({"rotary_dim": 64, "head_dim": 256}))), (256, 64, 0, Interleaved));
    assert_eq!(dims(of("minimax_m2", json!({"rotary_dim": 64, "head_dim": 128}))), (128, 64, 0, HalfSplit));
    assert_eq!(dims(of("qwen3_next", json!({"num_hidden_layers": 4}))), (256, 64, 0, HalfSplit));
    assert_eq!(dims(of("chatglm", json!({"kv_channels": 128, "rope_ratio": 500}))), (128, 64, 0, Interleaved));
    // 192 * 0.334 is 64.1: cut, not rounded up.
    let mimo = of("mimo_v2_flash", json!({"num_hidden_layers": 7, "rope_theta": 5000000, "swa_rope_theta": 10000}));
    let model = read_quietly(&mimo);
    assert_eq!(layer(&model, 0).rotary, Rotary::new(192, 64, 0).unwrap());
    assert_eq!(layer(&model, 0).law, Plain::new(5e6).into());
    assert_eq!(layer(&model, 1).law, Plain::new(1e4).into());
    assert_eq!(layer(&model, 5).law, Plain::new(5e6).into());
    // Every number of channels comes back from its share, also where the quotient is rounded down.
    for (head_dim, dim) in (2..=44).step_by(2).map(|dim| (44, dim)).chain([(256, 2), (256, 254), (96, 72)]) {
        assert_eq!(dims(of("llama", json!({"head_dim": head_dim, "rotary_dim": dim}))).1, dim);
    }
}

#[test]
fn classes_know_their_base() {
    let theta = |model_type: &str| {
        let config = json!({"model_type": model_type, "head_dim": 64, "num_hidden_layers": 12});
        let model = read_quietly(&config);
        let full = model.layer_type("full_attention").or_else(|_| model.layer(0)).unwrap().law.clone();
        match full {
            Law::Plain(plain) => plain.base,
            Law::Llama3(llama) => llama.base,
            Law::Yarn(yarn) => yarn.base,
            other => panic!("{other:?}"),
        }
    };
    for (model_type, base) in [
        ("llama", 1e4),
        ("apertus", 1.2e7),
        ("minimax_m2", 5e6),
        ("smollm3", 2e6),
        ("lfm2", 1e6),
        ("gemma3_text", 1e6),
        ("olmo3", 5e5),
        ("llama4_text", 5e5),
        ("gpt_oss", 1.5e5),
        ("helium", 1e5),
        ("mllama_text_model", 5e5),
    ] {
        assert_eq!(theta(model_type), base, "{model_type}");
    }
}

#[test]
fn layers_without_rope() {
    let of = |keys: Value| with(&json!({"head_dim": 64, "num_hidden_layers": 4}), keys);
    let none = |keys: Value| assert_eq!(rotating(&read_quietly(&of(keys))), [] as [usize; 0]);
    none(json!({"model_type": "jamba"}));
    none(json!({"model_type": "granitemoehybrid", "position_embedding_type": null}));
    none(json!({"model_type": "falcon", "alibi": true}));
    none(json!({"model_type": "llama", "position_embedding_type": "absolute"}));
    let asked = of(json!({"model_type": "granitemoehybrid", "position_embedding_type": "rope",
        "layer_types": ["mamba", "mamba", "attention", "mamba"]}));
    assert_eq!(rotating(&read_quietly(&asked)), [2]);
    let linear = of(json!({"model_type": "qwen3_next"}));
    assert_eq!(rotating(&read_quietly(&linear)), [3]);
    let null = of(json!({"model_type": "llama", "layer_types":
        ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
        "rope_parameters": {"sliding_attention": {"rope_theta": 1e4}, "full_attention": null}}));
    assert_eq!(rotating(&read_quietly(&null)), [0, 2]);
    let bases = of(json!({"model_type": "granite_swa", "layer_rope_theta": [0, 1e4, 1e4, 5e5]}));
    let model = read_quietly(&bases);
    assert_eq!(rotating(&model), [1, 2, 3]);
    assert_eq!(layer(&model, 3).law, Plain::new(5e5).into());
}

#[test]
fn what_nothing_reads_is_a_warning() {
    let warnings = |config: Value| read(&config).warnings().join("; ");
    let scaling = json!({"rope_type": "linear", "factor": 2.0, "facter": 4.0});
    let config = json!({"model_type": "llama", "head_dim": 64, "rope_scaling": scaling, "rope_thetta": 1e6});
    let said = warnings(config);
    assert!(said.contains("rope_scaling.facter") && said.contains("rope_thetta"), "{said}");
    let both = json!({"model_type": "llama", "head_dim": 64, "rope_theta": 1e4,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}});
    assert!(warnings(both.clone()).contains("10000"));
    assert_eq!(layer(&read(&both), 0).law, Plain::new(1e6).into());
    assert!(warnings(json!({"model_type": "brand_new", "head_dim": 64})).contains("brand_new"));
    assert!(warnings(json!({"head_dim": 64})).contains("model_type"));
    let nested = json!({"model_type": "gemma3_text", "num_hidden_layers": 6, "rope_parameters": {
        "full_attention": {"rope_type": "default", "odd": 1}, "sliding_attention": {}}});
    assert!(warnings(nested).contains("rope_parameters.full_attention.odd"));
}

#[test]
fn without_a_number_of_layers_their_order_goes_on() {
    let model = read_quietly(&json!({"model_type": "gemma3_text"}));
    assert_eq!(model.layers(), None);
    assert_eq!(layer(&model, 11).layer_type.as_deref(), Some("full_attention"));
    assert_eq!(layer(&model, 12).layer_type.as_deref(), Some("sliding_attention"));
    let uniform = read_quietly(&json!({"model_type": "llama", "head_dim": 64}));
    assert_eq!(layer(&uniform, 1000).head_dim, 64);
}

#[test]
fn numbers_that_only_python_has() {
    let text = r#"{"model_type": "llama", "head_dim": 64, "time_step_limit": [0.0, Infinity, -Infinity, NaN],
        "chat": "say \"NaN\", then Infinity \\", "rope_theta": 2e4}"#;
    assert_eq!(ModelRope::from_hugging_face(text).unwrap().layer(0).unwrap().law, Plain::new(2e4).into());
    for word in ["NaN", "Infinity", "-Infinity"] {
        let error = ModelRope::from_hugging_face(&text.replace("2e4", word)).unwrap_err().to_string();
        assert!(error.contains("rope_theta") && error.contains(word), "{error}");
    }
}
