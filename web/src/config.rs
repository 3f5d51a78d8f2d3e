//! What a model's `config.json` says about its ropes.

use crate::error::Result;
use crate::frequencies::Frequencies;
use crate::options;
use js_sys::{Array, Object, Reflect};
use wasm_bindgen::prelude::*;

/// The ropes of a model, layer by layer, from Hugging Face's `config.json`. No device is needed.
#[wasm_bindgen]
#[derive(Debug, Clone)]
pub struct ModelRope(phasor::config::ModelRope);

/// All that a file says about the rope of one layer.
#[wasm_bindgen]
#[derive(Debug, Clone)]
pub struct LayerRope(phasor::config::LayerRope);

impl LayerRope {
    pub fn inner(&self) -> &phasor::config::LayerRope {
        &self.0
    }
}

#[wasm_bindgen]
impl ModelRope {
    /// Reads the text of a `config.json`. An impossible setting is an error that names the field by its path in the file.
    #[wasm_bindgen(constructor)]
    pub fn new(#[wasm_bindgen(unchecked_param_type = "string")] config: &JsValue) -> Result<ModelRope> {
        Ok(Self(phasor::config::ModelRope::from_hugging_face(&options::text(config, "config")?)?))
    }

    /// The file's `model_type`.
    #[wasm_bindgen(getter, js_name = modelType)]
    pub fn model_type(&self) -> String {
        self.0.model_type().into()
    }

    /// How many layers there are, where the file says so.
    #[wasm_bindgen(getter)]
    pub fn layers(&self) -> Option<u32> {
        self.0.layers().map(|layers| layers as u32)
    }

    /// The longest sequence, in tokens, that the file says the model is for.
    #[wasm_bindgen(getter)]
    pub fn context(&self) -> Option<u32> {
        self.0.context()
    }

    /// Each different rope once, in the order of its first layer.
    #[wasm_bindgen(getter)]
    pub fn kinds(&self) -> Vec<LayerRope> {
        self.0.kinds().iter().cloned().map(LayerRope).collect()
    }

    /// The layers that have the rope `kinds[kind]`; those of one cycle where the file does not say how many there are.
    #[wasm_bindgen(js_name = layersOf)]
    pub fn layers_of(&self, #[wasm_bindgen(unchecked_param_type = "number")] kind: &JsValue) -> Result<Vec<u32>> {
        let kind = options::count(kind, "kind")?;
        Ok(self.0.layers_of(kind as usize).map(|layer| layer as u32).collect())
    }

    /// The rope of a layer, counted from 0.
    pub fn layer(&self, #[wasm_bindgen(unchecked_param_type = "number")] layer: &JsValue) -> Result<LayerRope> {
        Ok(LayerRope(self.0.layer(options::count(layer, "layer")? as usize)?.clone()))
    }

    /// The rope of the layers of a type, such as `full_attention`.
    #[wasm_bindgen(js_name = layerType)]
    pub fn layer_type(&self, #[wasm_bindgen(unchecked_param_type = "string")] name: &JsValue) -> Result<LayerRope> {
        Ok(LayerRope(self.0.layer_type(&options::text(name, "name")?)?.clone()))
    }

    /// What looked wrong without making the settings impossible.
    #[wasm_bindgen(getter)]
    pub fn warnings(&self) -> Vec<String> {
        self.0.warnings().to_vec()
    }
}

#[wasm_bindgen]
impl LayerRope {
    /// The file's word for the kind of layer, where it tells kinds apart.
    #[wasm_bindgen(getter, js_name = layerType)]
    pub fn layer_type(&self) -> Option<String> {
        self.0.layer_type.clone()
    }

    /// Whether queries and keys of this layer are rotated at all. If not, the rest says what the rope would be.
    #[wasm_bindgen(getter)]
    pub fn rotates(&self) -> bool {
        self.0.rotates
    }

    /// The scaling law's name, in the words of Hugging Face's `rope_type`.
    #[wasm_bindgen(getter, js_name = ropeType)]
    pub fn rope_type(&self) -> String {
        self.0.rope_type().into()
    }

    /// Which channels make a pair.
    #[wasm_bindgen(getter, unchecked_return_type = "Pairing")]
    pub fn pairing(&self) -> String {
        self.0.pairing.name().into()
    }

    /// The channels of the tensor that is rotated.
    #[wasm_bindgen(getter, js_name = headDim)]
    pub fn head_dim(&self) -> u32 {
        self.0.head_dim
    }

    /// How many of them turn.
    #[wasm_bindgen(getter, js_name = rotaryDim)]
    pub fn rotary_dim(&self) -> u32 {
        self.0.rotary.dim()
    }

    /// The first of them that turns.
    #[wasm_bindgen(getter, js_name = rotaryOffset)]
    pub fn rotary_offset(&self) -> u32 {
        self.0.rotary.offset()
    }

    /// For each pair, by which of a token's positions it turns: all 0 for text.
    #[wasm_bindgen(getter)]
    pub fn axes(&self) -> Vec<u8> {
        self.0.axes.axis_of_pair().to_vec()
    }

    /// Whether the frequencies depend on how long the sequence is.
    #[wasm_bindgen(getter, js_name = dependsOnLength)]
    pub fn depends_on_length(&self) -> bool {
        self.0.law.depends_on_length()
    }

    /// What the softmax scale `1 / sqrt(d)` is multiplied by, which is the engine's to apply; 1 if nothing else is said.
    #[wasm_bindgen(getter, js_name = softmaxScaleMultiplier)]
    pub fn softmax_scale_multiplier(&self) -> f64 {
        self.0.softmax_scale_multiplier
    }

    /// The factor on the query at a position, which is the engine's to apply; 1 where the model has none.
    #[wasm_bindgen(js_name = queryScaleAt)]
    pub fn query_scale_at(&self, #[wasm_bindgen(unchecked_param_type = "number")] position: &JsValue) -> Result<f64> {
        let position = options::whole(position, "position")?;
        Ok(self.0.query_scale.map_or(1.0, |scale| scale.at(position)))
    }

    /// The frequencies for a sequence of `seqLen` tokens in all, on which some laws depend; 0, if left out, stands for any
    /// within the context that the model was first trained on.
    pub fn frequencies(
        &self,
        #[wasm_bindgen(js_name = seqLen, unchecked_optional_param_type = "number")] seq_len: &JsValue,
    ) -> Result<Frequencies> {
        Ok(self.0.frequencies(options::count_or_0(seq_len, "seqLen")?)?.into())
    }

    /// Every setting, its value, and where in the file, or by which rule, it came about.
    #[wasm_bindgen(getter, unchecked_return_type = "Source[]")]
    pub fn sources(&self) -> Array {
        self.0
            .sources
            .iter()
            .map(|source| record(&[("setting", &source.setting), ("value", &source.value), ("from", &source.from)]))
            .collect()
    }
}

/// A plain object of texts.
fn record(fields: &[(&str, &str)]) -> Object {
    let object = Object::new();
    for (name, text) in fields {
        // An object that was just made takes any property.
        let _ = Reflect::set(&object, &(*name).into(), &(*text).into());
    }
    object
}
