//! Frequencies: what a scaling law comes to.

use crate::error::Result;
use crate::options;
use phasor::config::Spec;
use phasor::frequencies::Plain;
use wasm_bindgen::prelude::*;

/// One inverse frequency for each pair of channels, and the factor on cosine and sine. No device is needed.
///
/// Pair `i` of a token at position `m` turns by `m * inverse[i]` radians.
#[wasm_bindgen]
#[derive(Debug, Clone)]
pub struct Frequencies(phasor::frequencies::Frequencies);

impl From<phasor::frequencies::Frequencies> for Frequencies {
    fn from(frequencies: phasor::frequencies::Frequencies) -> Self {
        Self(frequencies)
    }
}

impl Frequencies {
    pub fn inner(&self) -> &phasor::frequencies::Frequencies {
        &self.0
    }
}

#[wasm_bindgen]
impl Frequencies {
    /// Frequencies of one's own, in radians per token; `attentionFactor` is 1 if left out.
    #[wasm_bindgen(constructor)]
    pub fn new(
        #[wasm_bindgen(unchecked_param_type = "Float64Array | number[]")] inverse: &JsValue,
        #[wasm_bindgen(js_name = attentionFactor, unchecked_optional_param_type = "number")] attention_factor: &JsValue,
    ) -> Result<Frequencies> {
        let inverse = options::read("doubles", inverse, "inverse")?.doubles();
        let factor = options::number("factor", attention_factor, "attentionFactor")?;
        Ok(Self(phasor::frequencies::Frequencies::new(inverse, factor)?))
    }

    /// `base^(-2i / rotaryDim)`, as in the paper.
    pub fn plain(
        #[wasm_bindgen(unchecked_param_type = "number")] base: &JsValue,
        #[wasm_bindgen(js_name = rotaryDim, unchecked_param_type = "number")] rotary_dim: &JsValue,
    ) -> Result<Frequencies> {
        let base = options::number("real", base, "base")?;
        Ok(Self(Plain::new(base).frequencies(options::count(rotary_dim, "rotaryDim")?)?))
    }

    /// From a rope's settings as JSON text, in the words of Hugging Face's `rope_parameters`:
    /// `{"rope_type": "yarn", "factor": 16, "rope_theta": 10000, "original_max_position_embeddings": 2048}`. `seqLen`, 0 if
    /// left out, is the length of the sequence, on which some laws depend.
    #[wasm_bindgen(js_name = fromSettings)]
    pub fn from_settings(
        #[wasm_bindgen(unchecked_param_type = "string")] settings: &JsValue,
        #[wasm_bindgen(js_name = headDim, unchecked_param_type = "number")] head_dim: &JsValue,
        #[wasm_bindgen(js_name = seqLen, unchecked_optional_param_type = "number")] seq_len: &JsValue,
    ) -> Result<Frequencies> {
        let spec = Spec::parse(&options::text(settings, "settings")?)?;
        let rotary_dim = spec.rotary_dim(options::count(head_dim, "headDim")?);
        Ok(Self(spec.law().frequencies_at(rotary_dim, options::count_or_0(seq_len, "seqLen")?)?))
    }

    /// Radians per token, a number for each pair.
    #[wasm_bindgen(getter)]
    pub fn inverse(&self) -> Vec<f64> {
        self.0.inv_freq().to_vec()
    }

    /// The factor on cosine and sine.
    #[wasm_bindgen(getter, js_name = attentionFactor)]
    pub fn attention_factor(&self) -> f64 {
        self.0.attention_factor()
    }

    /// How many channels turn: two for each pair.
    #[wasm_bindgen(getter, js_name = rotaryDim)]
    pub fn rotary_dim(&self) -> u32 {
        self.0.rotary_dim() as u32
    }
}
