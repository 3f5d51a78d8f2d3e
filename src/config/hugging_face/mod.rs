//! `config.json` of Hugging Face: a rope for each layer.
//!
//! Old files have `rope_theta` at the top and `rope_scaling` beside it, newer ones `rope_parameters`, flat or with one
//! object for each type of layer. What a file leaves out, the model's class decides (see `models`). The rules are those
//! of transformers 5.24: a value within the rope's settings wins over one beside them, which wins over the class.

mod candidates;
mod kinds;
mod models;
mod rope;

use self::models::Model;
use super::json::{Map, Value};
use super::layer::ModelRope;
use super::notes::Notes;
use super::object::{self, Object};
use crate::Result;

/// The type of layers that see the whole context.
const FULL: &str = "full_attention";
/// The type of layers that see a window.
const SLIDING: &str = "sliding_attention";
/// The type of layers with a state in place of queries and keys.
const LINEAR: &str = "linear_attention";

impl ModelRope {
    /// Reads a `config.json`.
    ///
    /// The text part of a multimodal model is read. Keys of the rope's settings that nothing reads are
    /// [warnings](ModelRope::warnings).
    ///
    /// # Errors
    /// [`Setting`](crate::ErrorKind::Setting) naming the field by its path in the file, its value, and what it may be.
    pub fn from_hugging_face(text: &str) -> Result<Self> {
        let value = object::parse("config.json", text)?;
        let root = Object::at("", &value)?;
        let part = text_part(&root)?;
        let model_type = match part.as_ref().map(|part| part.word("model_type")).transpose()?.flatten() {
            Some(own) => own,
            None => root.word("model_type")?.unwrap_or_default(),
        };
        let model = Model::of(model_type);
        let class_default = match model.rope_parameters() {
            Some(text) => object::parse("class default", text)?,
            None => Value::Object(Map::new()),
        };
        File::new(part.unwrap_or(root), model_type, &class_default)?.read()
    }
}

/// The part of a multimodal config that has the language model.
fn text_part<'a>(root: &Object<'a>) -> Result<Option<Object<'a>>> {
    if let Some(thinker) = root.object("thinker_config")? {
        return thinker.object("text_config");
    }
    for key in ["text_config", "llm_config", "language_config"] {
        if let Some(part) = root.object(key)? {
            return Ok(Some(part));
        }
    }
    Ok(None)
}

/// Rope settings as a file has them.
enum Settings<'a> {
    /// The same for all layers.
    Flat(Object<'a>),
    /// One object for each type of layer.
    Nested(Object<'a>),
}

/// A config, its class, and the rope settings that hold.
struct File<'a> {
    config: Object<'a>,
    model_type: &'a str,
    model: Model<'a>,
    settings: Settings<'a>,
    /// For layers without settings of their own.
    nothing: Object<'a>,
    notes: Notes,
}

impl<'a> File<'a> {
    fn new(config: Object<'a>, model_type: &'a str, class_default: &'a Value) -> Result<Self> {
        let model = Model::of(model_type);
        let mut notes = Notes::default();
        if !model.is_known() {
            notes.warn(format!(
                "model_type \"{model_type}\" is not known: rope_theta 10000 where the file has none, half-split pairs, and \
                 all layers alike are assumed"
            ));
        }
        let old = config.object("rope_scaling")?.filter(|object| !object.is_empty());
        let new = config.object("rope_parameters")?.filter(|object| !object.is_empty());
        if old.is_some() && new.is_some() {
            notes.warn("rope_scaling and rope_parameters are both there: the first holds");
        }
        let settings = match old.or(new) {
            Some(object) => object,
            None => Object::at(format!("({model_type}'s class default)"), class_default)?,
        };
        let settings = if settings.has_objects() { Settings::Nested(settings) } else { Settings::Flat(settings) };
        Ok(Self { config, model_type, model, settings, nothing: Object::empty("rope_parameters"), notes })
    }

    fn read(mut self) -> Result<ModelRope> {
        let (kinds, counted) = self.kinds()?;
        let mut rope = ModelRope::assemble(self.model_type, kinds, counted, |kind| self.layer(kind))?;
        if let Settings::Flat(flat) = &self.settings {
            self.notes.unread(flat);
        }
        for key in self.config.unread().iter().filter(|key| is_about_rope(key)) {
            self.notes.warn(format!("{key} is not known and changes nothing"));
        }
        rope.context = self.max_position_embeddings()?.map(|(longest, _)| longest);
        rope.warnings = self.notes.warnings;
        Ok(rope)
    }
}

/// Whether a key that nothing has read looks as if something should have.
fn is_about_rope(key: &str) -> bool {
    key.split(['_', '.']).any(|word| matches!(word, "rope" | "mrope" | "rotary"))
}
