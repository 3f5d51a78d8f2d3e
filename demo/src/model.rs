//! A model's ropes, from whichever file says them, and which of its layers is meant.

use crate::failure::Failure;
use crate::gguf;
use clap::Args;
use phasor::config::LayerRope;
use phasor_measure::explain::{Format, Model, brief, same_numbers};
use std::path::{Path, PathBuf};

/// The file that says what a model's ropes are.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct ModelFile {
    /// Take the rope from a model's config.json (Hugging Face)
    #[arg(long, value_name = "config.json")]
    config: Option<PathBuf>,

    /// Take the rope from a GGUF file (llama.cpp); only its header is read
    #[arg(long, value_name = "FILE.gguf")]
    gguf: Option<PathBuf>,
}

impl ModelFile {
    /// The model, if a file was named.
    pub fn read(&self) -> Result<Option<Model>, Failure> {
        match (&self.config, &self.gguf) {
            (Some(path), _) => from_config(path).map(Some),
            (None, Some(path)) => from_gguf(path).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Refuses to write over it.
    pub fn expect_other(&self, output: &Path) -> Result<(), Failure> {
        self.config.iter().chain(&self.gguf).try_for_each(|input| Failure::if_same(output, input))
    }
}

fn from_config(path: &Path) -> Result<Model, Failure> {
    let text = std::fs::read_to_string(path).map_err(|e| Failure::file(path, e))?;
    Model::from_config(path.display().to_string(), &text).map_err(|e| Failure::file(path, e))
}

fn from_gguf(path: &Path) -> Result<Model, Failure> {
    let (ropes, unread) = gguf::read(path)?;
    let unread = unread
        .into_iter()
        .map(|key| format!("{key} is not read for this architecture and these settings, and changes nothing"));
    let warnings = ropes.warnings().iter().cloned().chain(unread).collect();
    Ok(Model { file: path.display().to_string(), format: Format::Gguf, ropes, warnings })
}

/// The rope of one layer: the one that is named, or that of all layers that rotate, if they agree.
pub fn layer<'a>(model: &'a Model, layer: Option<usize>, layer_type: Option<&str>) -> Result<&'a LayerRope, Failure> {
    let refused = |e| failure(model, e);
    match (layer, layer_type) {
        (Some(layer), _) => model.ropes.layer(layer).map_err(refused),
        (None, Some(name)) => model.ropes.layer_type(name).map_err(refused),
        (None, None) => common_layer(model),
    }
}

fn common_layer(model: &Model) -> Result<&LayerRope, Failure> {
    let groups = model.groups(same_numbers);
    let mut rotating = groups.iter().filter(|group| group.rope.rotates);
    match (rotating.next(), rotating.next()) {
        (Some(only), None) => Ok(only.rope),
        (None, _) => model.ropes.layer(0).map_err(|e| failure(model, e)),
        (Some(_), Some(_)) => {
            let kinds = groups.iter().map(|group| format!("\n  {}: {}", model.layers_of(group), brief(group.rope)));
            let what = format!("the model's layers do not all have the same rope:{}", kinds.collect::<String>());
            Err(failure(model, what)
                .next("say which with --layer N or --layer-type NAME; `phasor explain` tells them apart in full"))
        }
    }
}

fn failure(model: &Model, problem: impl std::fmt::Display) -> Failure {
    Failure::file(Path::new(&model.file), problem)
}
