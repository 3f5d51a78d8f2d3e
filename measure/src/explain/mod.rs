//! A model's ropes in words: what each layer does, and where each number came from.

mod law;
mod model;
mod pairs;
mod words;

pub use model::{Format, Group, Model, brief, same_numbers, same_rope, text_axes};
pub use pairs::{Band, Fate, Scaling};
pub use words::{Statement, title, words};

use phasor::config::LayerRope;
use phasor::frequencies::QueryScale;
use phasor::{Pairing, Result};
use serde::{Serialize, Serializer};

/// All that there is to say about a model's ropes.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// The file's name.
    pub file: String,
    /// The file's word for the architecture.
    pub model_type: String,
    /// How many layers there are, where the file says so.
    pub layers: Option<usize>,
    /// The longest sequence that the file says the model is for.
    pub context: Option<u32>,
    /// Each kind of layer, in the order of its first layer.
    pub groups: Vec<Kind>,
    /// What looked wrong without making the file impossible.
    pub warnings: Vec<String>,
}

/// Layers that do the same, for the same reasons.
#[derive(Debug, Serialize)]
pub struct Kind {
    /// Which layers, in words.
    pub which: String,
    /// What they do, in a few words.
    pub what: String,
    /// The same, counted from 0.
    pub layers: Vec<usize>,
    /// The file's words for them, where it tells kinds apart.
    pub layer_types: Vec<String>,
    /// Whether queries and keys are rotated; if not, nothing below says anything about this model.
    pub rotates: bool,
    /// The scaling law, in the words of Hugging Face's `rope_type`.
    pub rope_type: &'static str,
    /// Which two channels make a pair.
    #[serde(serialize_with = "name")]
    pub pairing: Pairing,
    /// The channels of the tensor that is rotated.
    pub head_dim: u32,
    /// How many of them turn.
    pub rotary_dim: u32,
    /// The first that turns.
    pub rotary_offset: u32,
    /// The frequencies as a formula, a line each.
    pub formula: Vec<String>,
    /// Whether the pairs between fast and slow ones are called blended.
    #[serde(skip)]
    pub blends: bool,
    /// At each length that makes a difference.
    pub scaling: Vec<Scaling>,
    /// How the attention factor is made, where it is not simply stated.
    pub attention_formula: Option<String>,
    /// What the softmax scale is multiplied by.
    pub softmax_scale_multiplier: f64,
    /// The factor on the query at position m, as a formula.
    pub query_scale: Option<String>,
    /// The pairs of each axis, where there are several.
    pub axes: Vec<Vec<usize>>,
    /// On how many of the axes a token of text has its position.
    pub text_axes: u8,
    /// Each setting, with where it came from.
    pub numbers: Vec<Number>,
    /// Where other programs are known to do something else.
    pub elsewhere: Vec<&'static str>,
}

/// A setting, and where it came from.
#[derive(Debug, Serialize)]
pub struct Number {
    /// Its name.
    pub setting: String,
    /// What it is.
    pub value: String,
    /// The key in the file, or the rule.
    pub from: String,
}

impl Explanation {
    /// Explains a model; the frequencies that depend on the length also for a sequence of `seq_len` tokens.
    ///
    /// # Errors
    /// Those of the laws: settings from which no frequencies can be made.
    pub fn of(model: &Model, seq_len: Option<u32>) -> Result<Self> {
        let groups = model.groups(same_rope);
        Ok(Self {
            file: model.file.clone(),
            model_type: model.ropes.model_type().to_owned(),
            layers: model.ropes.layers(),
            context: model.ropes.context(),
            groups: groups.iter().map(|group| Kind::of(model, group, seq_len)).collect::<Result<_>>()?,
            warnings: model.warnings.clone(),
        })
    }
}

impl Kind {
    fn of(model: &Model, group: &Group<'_>, seq_len: Option<u32>) -> Result<Self> {
        let rope = group.rope;
        let lengths = law::lengths(&rope.law, rope.rotary, seq_len);
        let dim = rope.rotary.dim();
        let scaling = lengths.into_iter().map(|(n, holds)| Scaling::of(&rope.law, dim, n, holds));
        Ok(Self {
            which: model.layers_of(group),
            what: brief(rope),
            layers: group.layers.clone(),
            layer_types: group.types.iter().map(|&name| name.to_owned()).collect(),
            rotates: rope.rotates,
            rope_type: rope.rope_type(),
            pairing: rope.pairing,
            head_dim: rope.head_dim,
            rotary_dim: dim,
            rotary_offset: rope.rotary.offset(),
            formula: law::formula(&rope.law, rope.rotary),
            blends: law::blends(&rope.law),
            scaling: scaling.collect::<Result<_>>()?,
            attention_formula: law::attention(&rope.law),
            softmax_scale_multiplier: rope.softmax_scale_multiplier,
            query_scale: rope.query_scale.map(query_scale),
            axes: pairs_of_axes(rope),
            text_axes: text_axes(model.format, rope.axes.count()),
            numbers: numbers(rope),
            elsewhere: elsewhere(model, rope),
        })
    }
}

fn name<S: Serializer>(pairing: &Pairing, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(pairing.name())
}

fn query_scale(QueryScale { scale, window, shift }: QueryScale) -> String {
    let position = if shift == 0 { "m".to_owned() } else { format!("(m + {shift})") };
    format!("1 + {scale} ln(1 + floor({position} / {window}))")
}

/// The pairs of each axis; nothing where there is but one.
fn pairs_of_axes(rope: &LayerRope) -> Vec<Vec<usize>> {
    let of = |axis| {
        let pairs = rope.axes.axis_of_pair().iter().enumerate();
        pairs.filter(|&(_, &of)| of == axis).map(|(pair, _)| pair).collect()
    };
    if rope.axes.count() == 1 { Vec::new() } else { (0..rope.axes.count()).map(of).collect() }
}

/// The settings with where they came from: what the reader of the file noted, then what the law takes by default.
fn numbers(rope: &LayerRope) -> Vec<Number> {
    let stated = rope.sources.iter().map(|source| Number {
        setting: source.setting.clone(),
        value: source.value.clone(),
        from: source.from.clone(),
    });
    if !rope.rotates {
        return stated.filter(|number| matches!(number.setting.as_str(), "rotates" | "query_scale")).collect();
    }
    let missing = law::defaults(&rope.law).into_iter();
    let missing = missing.filter(|(setting, _)| rope.sources.iter().all(|source| source.setting != *setting));
    let missing = missing.map(|(setting, value)| Number {
        setting: setting.to_owned(),
        value,
        from: "the default of the law".to_owned(),
    });
    stated.chain(missing).collect()
}

fn elsewhere(model: &Model, rope: &LayerRope) -> Vec<&'static str> {
    if !rope.rotates {
        return Vec::new();
    }
    let writes_half_split = model.format == Format::HuggingFace
        && model.ropes.model_type() == "deepseek_v3"
        && rope.pairing == Pairing::Interleaved;
    let layout = writes_half_split.then_some(
        "transformers reads these pairs interleaved and writes them half-split: logits are the same, but rotated tensors \
         are to be compared only after the same reordering.",
    );
    law::elsewhere(&rope.law).into_iter().chain(layout).collect()
}
