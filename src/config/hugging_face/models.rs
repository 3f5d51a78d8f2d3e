//! What a `config.json` leaves to the model's class: one table for each property, keyed by `model_type`.
//!
//! The numbers are the class defaults of transformers 5.24. A type that is in no table is taken for the most common
//! kind: base 10,000, every channel turning, half-split, all layers alike; the reader warns about it.

use crate::Pairing;

/// A model type, without the suffix of a text part: `gemma3_text` is the text part of `gemma3`, and has the same rope.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model<'a>(&'a str);

/// Which type of attention the layers have, where the file does not list it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layers {
    /// All alike.
    Uniform,
    /// Every `n`-th is full attention, the others have a sliding window.
    FullEvery(u32),
    /// The first of every `n` is full attention, the others have a sliding window.
    FullFirst(u32),
    /// The first and every `n`-th are full attention, the others have a sliding window.
    FullFirstAndEvery(u32),
    /// Every `n`-th is full attention, the others are linear attention, which has no rope.
    LinearExceptEvery(u32),
    /// As the file lists them, and files always do.
    Listed,
}

impl Layers {
    /// The same order with another period, as files may state it.
    pub fn with_period(self, period: u32) -> Self {
        match self {
            Self::Uniform | Self::Listed => self,
            Self::FullEvery(_) => Self::FullEvery(period),
            Self::FullFirst(_) => Self::FullFirst(period),
            Self::FullFirstAndEvery(_) => Self::FullFirstAndEvery(period),
            Self::LinearExceptEvery(_) => Self::LinearExceptEvery(period),
        }
    }

    /// After how many layers the order begins anew; `None` if it does not.
    pub fn period(self) -> Option<u32> {
        match self {
            Self::Uniform => Some(1),
            Self::FullEvery(period) | Self::FullFirst(period) | Self::LinearExceptEvery(period) => Some(period),
            Self::FullFirstAndEvery(_) | Self::Listed => None,
        }
    }

    /// Whether a layer has full attention.
    pub fn is_full(self, layer: u32) -> bool {
        match self {
            Self::Uniform | Self::Listed => true,
            Self::FullEvery(period) | Self::LinearExceptEvery(period) => (layer + 1).is_multiple_of(period),
            Self::FullFirst(period) => layer.is_multiple_of(period),
            Self::FullFirstAndEvery(period) => layer == 0 || (layer + 1).is_multiple_of(period),
        }
    }
}

/// Which layers do not rotate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoPe {
    /// All rotate.
    Nowhere,
    /// Every `n`-th, unless the file lists them.
    Every(u32),
    /// Those with full attention.
    FullAttention,
    /// Those with full attention, if others have a sliding window.
    FullAttentionBesideSliding,
    /// None rotates.
    Everywhere,
    /// None rotates unless the file says `"position_embedding_type": "rope"`.
    UnlessAsked,
}

/// How several position axes are spread over the pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AxisPattern {
    /// Consecutive sections.
    Sections,
    /// Taking turns.
    Interleaved,
    /// ERNIE's order.
    Ernie,
}

impl<'a> Model<'a> {
    /// The model of a `model_type`.
    pub fn of(model_type: &'a str) -> Self {
        let whole = model_type.strip_suffix("_model").unwrap_or(model_type);
        Self(whole.strip_suffix("_text").unwrap_or(model_type))
    }

    /// Whether any table or the list of plain models has it.
    pub fn is_known(self) -> bool {
        PLAIN.contains(&self.0)
            || self.rope_theta() != 10_000.0
            || self.partial_rotary_factor() != 1.0
            || self.head_dim().is_some()
            || self.pairing() != Pairing::HalfSplit
            || self.layers() != Layers::Uniform
            || self.nope() != NoPe::Nowhere
            || self.rotary_dim().is_some()
            || self.axes().is_some()
    }

    /// The base.
    pub fn rope_theta(self) -> f64 {
        match self.0 {
            "nomic_bert" => 1_000.0,
            "jina_embeddings_v3" => 20_000.0,
            "fuyu" => 25_000.0,
            "helium" => 100_000.0,
            "gpt_oss" | "openai_privacy_filter" => 150_000.0,
            "gte" | "modernbert" | "modernbert-decoder" => 160_000.0,
            "bitnet" | "cohere" | "csm" | "ernie4_5" | "ernie4_5_moe" | "ernie4_5_vl_moe" | "evolla" | "exaone"
            | "flex_olmo" | "laguna" | "llama4" | "mllama" | "olmo3" | "paddleocr_vl" | "qwen3_vl" | "qwen3_vl_moe" => {
                500_000.0
            }
            "cwm" | "emu3" | "gemma3" | "gemma3n" | "gemma4" | "gemma4_unified" | "lfm2" | "lfm2_moe" | "lfm3"
            | "minimax" | "ministral3" | "mixtral" | "phimoe" | "qwen2_vl" | "qwen2_5_vl" | "qwen2_5_omni"
            | "qwen3_omni_moe" | "solar_open" | "t5gemma2" => 1_000_000.0,
            "smollm3" => 2_000_000.0,
            "mimo_v2_flash" | "minimax_m2" | "minimax_m3_vl" => 5_000_000.0,
            "sarvam_moe" => 8_000_000.0,
            "bailing_hybrid" => 6_000_000.0,
            "longcat_flash" => 10_000_000.0,
            "hy_v3" => 11_158_840.0,
            "apertus" | "apertus1p5" => 12_000_000.0,
            _ => 10_000.0,
        }
    }

    /// The base of layers with a sliding window, where it is not the base of all.
    pub fn local_rope_theta(self) -> Option<f64> {
        match self.0 {
            "gemma3" | "gemma3n" | "gemma4" | "gemma4_unified" | "lfm3" | "mimo_v2_flash" | "modernbert"
            | "modernbert-decoder" | "t5gemma2" | "laguna" => Some(10_000.0),
            _ => None,
        }
    }

    /// The share of channels that turn.
    pub fn partial_rotary_factor(self) -> f64 {
        match self.0 {
            "gpt_neox" | "qwen3_next" | "qwen3_5" | "qwen3_5_moe" | "stablelm" => 0.25,
            "mimo_v2_flash" => 0.334,
            "bamba" | "chatglm" | "fuyu" | "glm" | "glm4" | "glm4_moe" | "glm4v_moe" | "glmasr" | "nemotron"
            | "persimmon" | "phi" | "recurrent_gemma" => 0.5,
            "moonshine_streaming" => 0.8,
            "moonshine" => 0.9,
            _ => 1.0,
        }
    }

    /// How many channels turn, where the class says it as a number.
    pub fn rotary_dim(self) -> Option<u32> {
        matches!(self.0, "gptj" | "codegen").then_some(64)
    }

    /// The channels of a head; where this is `None`, hidden size over heads.
    pub fn head_dim(self) -> Option<u32> {
        match self.0 {
            "gpt_oss" | "openai_privacy_filter" => Some(64),
            _ if self.is_mla() => Some(if matches!(self.0, "axk2" | "minicpm3") { 32 } else { 64 }),
            "afmoe" | "cwm" | "ernie4_5" | "glm" | "glm4" | "helium" | "hy_v3" | "internlm3" | "jetmoe" | "laguna"
            | "lfm3" | "llama4" | "mellum" | "minimax_m2" | "minimax_m3_vl" | "ministral3" | "paddleocr_vl"
            | "qwen3" | "qwen3_vl" | "seed_oss" | "solar_open" => Some(128),
            "mimo_v2_flash" => Some(192),
            "gemma" | "gemma2" | "gemma3" | "gemma3n" | "gemma4" | "gemma4_unified" | "qwen3_5" | "qwen3_5_moe"
            | "qwen3_next" | "t5gemma" | "t5gemma2" | "vaultgemma" => Some(256),
            "deepseek_v4" => Some(512),
            _ => None,
        }
    }

    /// The channels of a head in layers with full attention, where they have heads of their own.
    pub fn global_head_dim(self) -> Option<u32> {
        matches!(self.0, "gemma4" | "gemma4_unified").then_some(512)
    }

    /// Whether it has multi-head latent attention: `qk_rope_head_dim` channels of query and key turn, all of them, and
    /// are joined with others that do not.
    pub fn is_mla(self) -> bool {
        matches!(
            self.0,
            "axk1"
                | "axk2"
                | "bailing_hybrid"
                | "deepseek_v2"
                | "deepseek_v3"
                | "deepseek_v32"
                | "glm4_moe_lite"
                | "glm_moe_dsa"
                | "hy_v4"
                | "kimi_k2"
                | "kimi_linear"
                | "longcat_flash"
                | "minicpm3"
                | "mistral4"
                | "youtu"
        )
    }

    /// Whether the channels that turn are the last of the head instead of the first.
    pub fn rotates_the_end(self) -> bool {
        self.0 == "deepseek_v4"
    }

    /// Whether a rope type of `yarn` means LongRoPE, as in the oldest Phi-3 files.
    pub fn calls_longrope_yarn(self) -> bool {
        matches!(self.0, "phi3" | "phi4_multimodal" | "phi4mm")
    }

    /// Which channels make a pair in Hugging Face's checkpoints. Where both exist, the file's `rope_interleave` decides.
    pub fn pairing(self) -> Pairing {
        match self.0 {
            "axk1"
            | "axk2"
            | "bailing_hybrid"
            | "chatglm"
            | "codegen"
            | "cohere"
            | "cohere2"
            | "deepseek_v2"
            | "deepseek_v3"
            | "deepseek_v32"
            | "deepseek_v4"
            | "ernie4_5"
            | "ernie4_5_moe"
            | "ernie4_5_vl_moe"
            | "glm"
            | "glm4"
            | "glm4_moe_lite"
            | "glm4v"
            | "glm_moe_dsa"
            | "glm_ocr"
            | "gptj"
            | "helium"
            | "kimi_k2"
            | "llama4"
            | "longcat_flash"
            | "mistral4"
            | "moonshine"
            | "moonshine_streaming"
            | "openai_privacy_filter"
            | "roformer"
            | "youtu" => Pairing::Interleaved,
            _ => Pairing::HalfSplit,
        }
    }

    /// The kinds of layers.
    pub fn layers(self) -> Layers {
        match self.0 {
            "gemma2" | "gpt_oss" | "t5gemma" | "vaultgemma" => Layers::FullEvery(2),
            "afmoe" | "cohere2" | "exaone4" | "exaone_moe" | "olmo3" => Layers::FullEvery(4),
            "gemma3n" => Layers::FullEvery(5),
            "gemma3" | "gemma4" | "gemma4_unified" | "t5gemma2" => Layers::FullEvery(6),
            "modernbert" | "modernbert-decoder" => Layers::FullFirst(3),
            "cwm" | "granite_swa" | "granitemoe_swa" => Layers::FullFirst(4),
            "mimo_v2_flash" => Layers::FullFirstAndEvery(6),
            "lfm3" | "mellum" => Layers::Listed,
            "qwen3_next" | "qwen3_5" | "qwen3_5_moe" => Layers::LinearExceptEvery(4),
            _ => Layers::Uniform,
        }
    }

    /// Whether the last layer has full attention whatever the file says.
    pub fn ends_with_full_attention(self) -> bool {
        matches!(self.0, "gemma4" | "gemma4_unified")
    }

    /// Whether scaling in the old style is meant for layers with full attention alone.
    pub fn scales_full_attention_only(self) -> bool {
        matches!(self.0, "gemma3" | "gemma3n" | "gemma4" | "gemma4_unified" | "olmo3" | "t5gemma2")
    }

    /// The layers that do not rotate.
    pub fn nope(self) -> NoPe {
        match self.0 {
            "llama4" | "smollm3" => NoPe::Every(4),
            "afmoe" | "cohere2" => NoPe::FullAttention,
            "exaone4" | "exaone_moe" => NoPe::FullAttentionBesideSliding,
            "bloom" | "gpt2" | "gpt_neo" | "jamba" | "kimi_linear" | "mamba" | "mamba2" | "mpt" | "nemotron_h"
            | "opt" | "t5" => NoPe::Everywhere,
            "granitemoehybrid" => NoPe::UnlessAsked,
            _ => NoPe::Nowhere,
        }
    }

    /// Whether queries of layers without rope are scaled by their position.
    pub fn scales_queries_without_rope(self) -> bool {
        self.0 == "llama4"
    }

    /// Several position axes: their pattern, and the sections where the file has none.
    pub fn axes(self) -> Option<(AxisPattern, &'static [u32])> {
        match self.0 {
            "paddleocr_vl" | "qwen2_5_omni" | "qwen2_5_vl" | "qwen2_vl" => Some((AxisPattern::Sections, &[16, 24, 24])),
            "glm4v" | "glm4v_moe" | "glm_ocr" => Some((AxisPattern::Sections, &[8, 12, 12])),
            "qwen3_omni_moe" | "qwen3_vl" | "qwen3_vl_moe" => Some((AxisPattern::Interleaved, &[24, 20, 20])),
            "qwen3_5" | "qwen3_5_moe" => Some((AxisPattern::Interleaved, &[11, 11, 10])),
            "ernie4_5_vl_moe" => Some((AxisPattern::Ernie, &[22, 22, 20])),
            _ => None,
        }
    }

    /// Rope settings of the class, as JSON, for files that have none at all.
    pub fn rope_parameters(self) -> Option<&'static str> {
        match self.0 {
            "gemma4" | "gemma4_unified" => Some(
                r#"{"sliding_attention": {"rope_type": "default", "rope_theta": 1e4}, "full_attention":
                    {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25}}"#,
            ),
            "lfm3" => Some(
                r#"{"sliding_attention": {"rope_type": "default", "rope_theta": 1e4}, "full_attention":
                    {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.5}}"#,
            ),
            "laguna" => Some(
                r#"{"sliding_attention": {"rope_type": "default", "rope_theta": 1e4}, "full_attention":
                    {"rope_type": "default", "rope_theta": 5e5, "partial_rotary_factor": 0.5}}"#,
            ),
            "apertus" | "apertus1p5" => Some(
                r#"{"rope_type": "llama3", "rope_theta": 12e6, "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
                    "original_max_position_embeddings": 8192}"#,
            ),
            "cwm" => Some(
                r#"{"rope_type": "llama3", "rope_theta": 1e6, "factor": 16, "low_freq_factor": 1, "high_freq_factor": 4,
                    "original_max_position_embeddings": 8192}"#,
            ),
            "gpt_oss" | "openai_privacy_filter" => Some(
                r#"{"rope_type": "yarn", "rope_theta": 15e4, "factor": 32, "truncate": false,
                    "original_max_position_embeddings": 4096}"#,
            ),
            "ministral3" => Some(
                r#"{"rope_type": "yarn", "rope_theta": 1e6, "factor": 16, "original_max_position_embeddings": 16384,
                    "mscale": 1, "mscale_all_dim": 1, "llama_4_scaling_beta": 0.1}"#,
            ),
            "mistral4" => Some(
                r#"{"rope_type": "yarn", "rope_theta": 1e4, "factor": 128, "original_max_position_embeddings": 8192,
                    "mscale": 1, "mscale_all_dim": 1, "llama_4_scaling_beta": 0.1}"#,
            ),
            _ => None,
        }
    }
}

/// Models that are in no table because all of the common defaults are right for them.
const PLAIN: &[&str] = &[
    "arcee",
    "aria",
    "chameleon",
    "deepseek",
    "diffllama",
    "doge",
    "dots1",
    "esmc",
    "eurobert",
    "falcon",
    "falcon_h1",
    "gpt_neox_japanese",
    "granite",
    "granitemoe",
    "granitemoeshared",
    "hunyuan_v1_dense",
    "hunyuan_v1_moe",
    "hunyuan_vl",
    "hyperclovax",
    "idefics",
    "internlm2",
    "iquestcoder",
    "jais2",
    "jetmoe",
    "llama",
    "mimi",
    "minicpm",
    "ministral",
    "mistral",
    "moshi",
    "nanochat",
    "olmo",
    "olmo2",
    "olmo_hybrid",
    "olmoe",
    "phi3",
    "phi4_multimodal",
    "phi4mm",
    "qwen",
    "qwen2",
    "qwen2_moe",
    "qwen3_moe",
    "starcoder2",
];
