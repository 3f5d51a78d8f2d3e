//! A model's ropes, from whichever file says them, and which of its layers is meant.

use crate::failure::Failure;
use crate::gguf;
use clap::Args;
use phasor::config::{LayerRope, ModelRope};
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

/// Whose rules the answers follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    HuggingFace,
    Gguf,
}

/// The ropes of a model.
pub struct Model {
    pub file: PathBuf,
    pub format: Format,
    pub ropes: ModelRope,
    /// What looked wrong without making the file impossible.
    pub warnings: Vec<String>,
}

/// Layers with the same rope.
pub struct Group<'a> {
    pub rope: &'a LayerRope,
    /// The file's words for these layers, where it tells kinds apart.
    pub types: Vec<&'a str>,
    pub layers: Vec<usize>,
}

impl ModelFile {
    /// The model, if a file was named.
    pub fn read(&self) -> Result<Option<Model>, Failure> {
        match (&self.config, &self.gguf) {
            (Some(path), _) => Model::from_config(path).map(Some),
            (None, Some(path)) => Model::from_gguf(path).map(Some),
            (None, None) => Ok(None),
        }
    }
}

impl Model {
    fn from_config(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|e| Failure::file(path, e))?;
        let ropes = ModelRope::from_hugging_face(&text).map_err(|e| Failure::file(path, e))?;
        let warnings = ropes.warnings().to_vec();
        Ok(Self { file: path.to_owned(), format: Format::HuggingFace, ropes, warnings })
    }

    fn from_gguf(path: &Path) -> Result<Self, Failure> {
        let (ropes, unread) = gguf::read(path)?;
        let unread = unread
            .into_iter()
            .map(|key| format!("{key} is not read for this architecture and these settings, and changes nothing"));
        let warnings = ropes.warnings().iter().cloned().chain(unread).collect();
        Ok(Self { file: path.to_owned(), format: Format::Gguf, ropes, warnings })
    }

    /// The rope of one layer: the one that is named, or that of all layers that rotate, if they agree.
    pub fn layer(&self, layer: Option<usize>, layer_type: Option<&str>) -> Result<&LayerRope, Failure> {
        let refused = |e| Failure::file(&self.file, e);
        match (layer, layer_type) {
            (Some(layer), _) => self.ropes.layer(layer).map_err(refused),
            (None, Some(name)) => self.ropes.layer_type(name).map_err(refused),
            (None, None) => self.common_layer(),
        }
    }

    fn common_layer(&self) -> Result<&LayerRope, Failure> {
        let groups = self.groups(same_numbers);
        let mut rotating = groups.iter().filter(|group| group.rope.rotates);
        match (rotating.next(), rotating.next()) {
            (Some(only), None) => Ok(only.rope),
            (None, _) => self.ropes.layer(0).map_err(|e| Failure::file(&self.file, e)),
            (Some(_), Some(_)) => {
                let kinds = groups.iter().map(|group| format!("\n  {}: {}", self.layers_of(group), brief(group.rope)));
                let what = format!("the model's layers do not all have the same rope:{}", kinds.collect::<String>());
                Err(Failure::file(&self.file, what)
                    .next("say which with --layer N or --layer-type NAME; `phasor explain` tells them apart in full"))
            }
        }
    }

    /// The layers, those that are the same by some measure together, in the order of the first of each.
    pub fn groups(&self, same: impl Fn(&LayerRope, &LayerRope) -> bool) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for (kind, rope) in self.ropes.kinds().iter().enumerate() {
            let layers = self.ropes.layers_of(kind);
            match groups.iter_mut().find(|group| same(group.rope, rope)) {
                Some(group) => {
                    group.layers.extend(layers);
                    let new = rope.layer_type.as_deref().filter(|name| !group.types.contains(name));
                    group.types.extend(new);
                }
                None => groups.push(Group {
                    rope,
                    types: rope.layer_type.iter().map(String::as_str).collect(),
                    layers: layers.collect(),
                }),
            }
        }
        for group in &mut groups {
            group.layers.sort_unstable();
        }
        groups
    }

    /// A group's layers in words, with the file's words for them.
    pub fn layers_of(&self, group: &Group<'_>) -> String {
        let places = match (self.ropes.layers(), self.cycle()) {
            (Some(count), _) if count == group.layers.len() => match count {
                1 => "the only layer".to_owned(),
                _ => format!("all {count} layers"),
            },
            (Some(_), _) => numbered(&group.layers),
            (None, 1) => "every layer".to_owned(),
            (None, cycle) if cycle == group.layers.len() => "every layer".to_owned(),
            (None, cycle) => format!("{} of every {cycle}", numbered(&group.layers)),
        };
        if group.types.is_empty() { places } else { format!("{places} ({})", group.types.join(", ")) }
    }

    /// After how many layers their kinds begin anew, where the file does not say how many there are.
    fn cycle(&self) -> usize {
        (0..self.ropes.kinds().len()).map(|kind| self.ropes.layers_of(kind).count()).sum()
    }
}

/// Whether two ropes do the same.
pub fn same_numbers(a: &LayerRope, b: &LayerRope) -> bool {
    let bare = |rope: &LayerRope| {
        let mut rope = rope.clone();
        rope.layer_type = None;
        rope.sources.clear();
        rope
    };
    bare(a) == bare(b)
}

/// Whether two ropes do the same, for the same reasons.
pub fn same_rope(a: &LayerRope, b: &LayerRope) -> bool {
    a.sources == b.sources && same_numbers(a, b)
}

/// A rope in a few words: the law, and the numbers that tell it from others.
pub fn brief(rope: &LayerRope) -> String {
    if !rope.rotates {
        return "no rotation (NoPE)".to_owned();
    }
    let said = ["rope_theta", "factor", "alpha"].into_iter().filter_map(|setting| {
        let source = rope.sources.iter().find(|source| source.setting == setting)?;
        Some(format!(", {setting} {}", source.value))
    });
    format!("{}{}", rope.rope_type(), said.collect::<String>())
}

/// `layers 0-4, 6`.
fn numbered(layers: &[usize]) -> String {
    let word = if layers.len() == 1 { "layer" } else { "layers" };
    format!("{word} {}", ranges(layers))
}

/// Ascending numbers, those without a gap between them drawn together: `0-4, 6`.
pub fn ranges(numbers: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &n in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == n => *last = n,
            _ => runs.push((n, n)),
        }
    }
    let run =
        |&(first, last): &(usize, usize)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    runs.iter().map(run).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_without_gaps_are_drawn_together() {
        assert_eq!(ranges(&[0, 1, 2, 3, 4, 6, 8, 9]), "0-4, 6, 8-9");
        assert_eq!(ranges(&[7]), "7");
        assert_eq!(ranges(&[]), "");
        assert_eq!(numbered(&[3]), "layer 3");
        assert_eq!(numbered(&[3, 4]), "layers 3-4");
    }
}
