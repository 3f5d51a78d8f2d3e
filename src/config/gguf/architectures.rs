//! What a GGUF file leaves to its architecture: one table for each property, keyed by `general.architecture`.
//!
//! The pairing is nowhere in the file. The tables are those of llama.cpp (`llama_model_rope_type` and the loaders in
//! `src/models`), as packaged in `llama-cpp-sys-2` 0.1.161.

/// How an architecture rotates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rotation {
    /// Not at all.
    None,
    /// Neighbours make a pair: `NORM`.
    Interleaved,
    /// Channels half a rotary dim apart make a pair: `NEOX`.
    HalfSplit,
    /// Half-split, by several axes in sections: `MROPE`.
    Sections,
    /// Half-split, by several axes taking turns: `IMROPE`.
    InterleavedSections,
    /// Half-split by several axes in sections if the file has sections, else interleaved.
    SectionsOrInterleaved,
    /// Half-split, by several axes in sections if the file has sections.
    SectionsOrHalfSplit,
}

/// How an architecture rotates; `None` if llama.cpp does not know it.
pub(super) fn rotation(architecture: &str) -> Option<Rotation> {
    let tables = [
        (NONE, Rotation::None),
        (INTERLEAVED, Rotation::Interleaved),
        (HALF_SPLIT, Rotation::HalfSplit),
        (&["qwen2vl", "paddleocr"], Rotation::Sections),
        (
            &["qwen3vl", "qwen3vlmoe", "qwen35", "qwen35moe", "clef", "qwen4exp", "qwen3tts"],
            Rotation::InterleavedSections,
        ),
        (&["bailingmoe3", "glm4"], Rotation::SectionsOrInterleaved),
        (&["glm4moe", "hunyuan_vl", "dflash"], Rotation::SectionsOrHalfSplit),
    ];
    tables.into_iter().find(|(names, _)| names.contains(&architecture)).map(|(_, rotation)| rotation)
}

/// Which layers have a sliding window, where the file states no pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Windows {
    /// Every how many layers one sees the whole context.
    pub period: u32,
    /// Whether it is the first of them and not the last.
    pub full_first: bool,
}

/// The order of layers with a sliding window, for files that have one.
pub(super) fn windows(architecture: &str) -> Option<Windows> {
    let (period, full_first) = match architecture {
        "gemma2" | "gpt-oss" => (2, false),
        "modern-bert" => (3, true),
        "afmoe" | "cohere2" | "exaone-moe" | "exaone4" | "llama4" | "mellum" | "muse-glimmer" | "olmo2" => (4, false),
        "cohere2moe" | "laguna" | "smallthinker" => (4, true),
        "gemma3n" => (5, false),
        "gemma-embedding" | "gemma3" => (6, false),
        "plamo3" => (8, false),
        _ => return None,
    };
    Some(Windows { period, full_first })
}

/// Whether layers with a sliding window have the base of the others, unless the file gives them their own. Elsewhere
/// they have 10,000.
pub(super) fn windows_share_base(architecture: &str) -> bool {
    windows_share_scale(architecture) || matches!(architecture, "laguna" | "muse-glimmer" | "olmo2")
}

/// Whether layers with a sliding window are scaled like the others. Elsewhere they are not scaled.
pub(super) fn windows_share_scale(architecture: &str) -> bool {
    matches!(
        architecture,
        "afmoe"
            | "cohere2"
            | "cohere2moe"
            | "dflash"
            | "exaone-moe"
            | "exaone4"
            | "gemma2"
            | "gpt-oss"
            | "llama4"
            | "mellum"
            | "smallthinker"
            | "spark2_5"
    )
}

/// Every how many layers one does not rotate.
pub(super) fn nope_period(architecture: &str) -> Option<u32> {
    matches!(architecture, "afmoe" | "llama4" | "smollm3").then_some(4)
}

/// Whether only layers with a sliding window rotate, if there are any.
pub(super) fn only_windows_rotate(architecture: &str) -> bool {
    matches!(architecture, "cohere2" | "cohere2moe" | "exaone4" | "exaone-moe" | "muse-glimmer" | "smallthinker")
}

/// Whether `rope_freqs` is for layers without a sliding window alone.
pub(super) fn divisors_spare_windows(architecture: &str) -> bool {
    matches!(architecture, "gemma4" | "gemma4-assistant" | "step35")
}

/// Whether it has multi-head latent attention in DeepSeek's way: what turns is a tensor of its own, and the softmax
/// scale is corrected.
pub(super) fn is_deepseek(architecture: &str) -> bool {
    matches!(architecture, "deepseek2" | "deepseek32" | "glm-dsa" | "mistral4")
}

/// What `yarn_log_multiplier` was multiplied by when the file was written; `None` if it is not read.
pub(super) fn log_multiplier_unit(architecture: &str) -> Option<f64> {
    match architecture {
        "deepseek2" | "deepseek32" | "mistral4" => Some(0.1),
        "mistral3" => Some(1.0),
        _ => None,
    }
}

/// Whether the file's YaRN betas are read.
pub(super) fn reads_betas(architecture: &str) -> bool {
    matches!(architecture, "grok" | "mistral3")
}

const NONE: &[&str] = &[
    "arwkv7",
    "bloom",
    "clip",
    "glm5-next",
    "gpt2",
    "gptj",
    "jais",
    "jamba",
    "jina-bert-v2",
    "kimi-k3",
    "kimi-linear",
    "mamba",
    "mamba2",
    "mpt",
    "nemotron_h",
    "nemotron_h_moe",
    "refact",
    "rwkv6",
    "rwkv6qwen2",
    "rwkv7",
    "t5",
    "t5encoder",
    "wavtokenizer-dec",
];

const INTERLEAVED: &[&str] = &[
    "arcee",
    "arctic",
    "baichuan",
    "bailingmoe",
    "chameleon",
    "chatglm",
    "cohere2",
    "cohere2moe",
    "command-r",
    "deci",
    "deepseek",
    "deepseek2",
    "deepseek2-ocr",
    "deepseek32",
    "deepseek4",
    "dots3note",
    "eagle3",
    "ernie4_5",
    "ernie4_5-moe",
    "glm-dsa",
    "granite",
    "granite_swa",
    "granitehybrid",
    "granitemoe",
    "graniteswitch",
    "hy_v4",
    "internlm2",
    "llada",
    "llama",
    "llama-embed",
    "llama4",
    "maincoder",
    "minicpm",
    "mistral3",
    "mistral4",
    "muse-glimmer",
    "nanbeige",
    "neo-bert",
    "olmo",
    "plm",
    "pockettts",
    "smollm3",
    "starcoder",
    "xverse",
];

const HALF_SPLIT: &[&str] = &[
    "afmoe",
    "apertus",
    "bailingmoe2",
    "bert",
    "bitnet",
    "codeshell",
    "cogvlm",
    "dbrx",
    "dots1",
    "dream",
    "eurobert",
    "exaone",
    "exaone-moe",
    "exaone4",
    "falcon",
    "falcon-h1",
    "gemma",
    "gemma-embedding",
    "gemma2",
    "gemma3",
    "gemma3n",
    "gemma4",
    "gemma4-assistant",
    "gpt-oss",
    "gptneox",
    "grok",
    "grovemoe",
    "hrm_text",
    "hunyuan-dense",
    "hunyuan-moe",
    "hy_v3",
    "jais2",
    "jina-bert-v3",
    "laguna",
    "lfm2",
    "lfm2moe",
    "llada-moe",
    "maple",
    "mellum",
    "mimo2",
    "minicpm3",
    "minimax-01",
    "minimax-m2",
    "minimax-m3",
    "modern-bert",
    "nemotron",
    "nomic-bert",
    "nomic-bert-moe",
    "olmo2",
    "olmoe",
    "openelm",
    "orion",
    "pangu-embedded",
    "phi2",
    "phi3",
    "phimoe",
    "plamo",
    "plamo2",
    "plamo3",
    "qwen",
    "qwen2",
    "qwen2moe",
    "qwen3",
    "qwen3moe",
    "qwen3next",
    "rnd1",
    "seed_oss",
    "smallthinker",
    "spark2_5",
    "stablelm",
    "starcoder2",
    "step35",
    "talkie",
];
