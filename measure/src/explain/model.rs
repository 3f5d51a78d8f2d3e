//! A model's ropes, whichever file said them, and which of its layers have which.

use phasor::Result;
use phasor::config::{LayerRope, ModelRope};

/// Whose rules the answers follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A `config.json`, as transformers reads it.
    HuggingFace,
    /// The header of a GGUF file, as llama.cpp reads it.
    Gguf,
}

/// The ropes of a model.
#[derive(Debug, Clone)]
pub struct Model {
    /// The file's name, or what else it is to be called.
    pub file: String,
    /// The kind of file.
    pub format: Format,
    /// What it says.
    pub ropes: ModelRope,
    /// What looked wrong without making the file impossible.
    pub warnings: Vec<String>,
}

/// Layers with the same rope.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    /// Their rope.
    pub rope: &'a LayerRope,
    /// The file's words for these layers, where it tells kinds apart.
    pub types: Vec<&'a str>,
    /// The layers, counted from 0.
    pub layers: Vec<usize>,
}

impl Model {
    /// Reads the text of a `config.json`.
    ///
    /// # Errors
    /// Those of [`ModelRope::from_hugging_face`].
    pub fn from_config(file: impl Into<String>, text: &str) -> Result<Self> {
        let ropes = ModelRope::from_hugging_face(text)?;
        let warnings = ropes.warnings().to_vec();
        Ok(Self { file: file.into(), format: Format::HuggingFace, ropes, warnings })
    }

    /// The layers, those that are the same by some measure together, in the order of the first of each.
    #[must_use]
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
    #[must_use]
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
#[must_use]
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
#[must_use]
pub fn same_rope(a: &LayerRope, b: &LayerRope) -> bool {
    a.sources == b.sources && same_numbers(a, b)
}

/// A rope in a few words: the law, and the numbers that tell it from others.
#[must_use]
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
#[must_use]
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

/// On how many of a rope's axes a token of text has its position: llama.cpp gives it 0 on the last of four.
#[must_use]
pub fn text_axes(format: Format, axes: u8) -> u8 {
    match (format, axes) {
        (Format::Gguf, 4) => 3,
        _ => axes,
    }
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
