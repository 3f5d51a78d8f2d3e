//! Which kinds of layers a model has.

use crate::config::json::Value;

use super::models::{Layers, NoPe};
use super::{FULL, File, LINEAR, SLIDING};
use crate::config::layer::check_layers;
use crate::{Error, Result};

/// A base for each layer.
pub(super) const BASES: &str = "layer_rope_theta";

/// What tells the ropes of a model apart.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kind {
    /// The file's or the class's word for it; `None` if all are alike.
    pub layer_type: Option<String>,
    /// Whether the layer's place lets it rotate.
    pub rotates: bool,
    /// The layer's own base, where the file lists one for each.
    pub base: Option<f64>,
}

impl File<'_> {
    /// The kind of each layer, and whether the file says how many there are; if not, the kinds of one cycle.
    pub(super) fn kinds(&self) -> Result<(Vec<Kind>, bool)> {
        let stated = self.layer_count()?;
        let layers = match stated {
            Some(layers) => layers,
            None => self.cycle()?,
        };
        let types = self.layer_types(layers)?;
        let bases = self.config.numbers(BASES)?;
        let rotating = match &bases {
            // Granite's files write 0 for a layer without rope.
            Some(bases) => Some(bases.iter().map(|&base| base != 0.0).collect()),
            None => self.rotating_layers(layers)?,
        };
        self.check_bases(bases.as_deref().unwrap_or_default())?;
        self.check_length(BASES, bases.as_ref().map(Vec::len), layers)?;
        self.check_length("layer_types", types.as_ref().map(Vec::len), layers)?;
        self.check_length("no_rope_layers", rotating.as_ref().map(Vec::len), layers)?;
        let kind = |i: usize| Kind {
            layer_type: types.as_ref().and_then(|types: &Vec<String>| types.get(i).cloned()),
            rotates: rotating.as_ref().and_then(|rotating| rotating.get(i).copied()).unwrap_or(true),
            base: bases.as_ref().and_then(|bases| bases.get(i).copied()).filter(|&base| base != 0.0),
        };
        Ok(((0..layers as usize).map(kind).collect(), stated.is_some()))
    }

    /// How many layers there are, by number or by the length of a list of them.
    fn layer_count(&self) -> Result<Option<u32>> {
        let config = &self.config;
        if let Some((count, key)) = config.count_of(&["num_hidden_layers", "n_layer", "num_layers", "n_layers"])? {
            return check_layers(config.path(key), count).map(Some);
        }
        let listed = match (config.words("layer_types")?, config.counts("no_rope_layers")?) {
            (Some(types), _) => types.len(),
            (None, Some(places)) => places.len(),
            (None, None) => return Ok(None),
        };
        check_layers(config.path("num_hidden_layers"), u32::try_from(listed).unwrap_or(u32::MAX)).map(Some)
    }

    /// After how many layers the class's order begins anew.
    fn cycle(&self) -> Result<u32> {
        const LONGEST: u32 = 1 << 10;
        let unknown = || self.config.missing("num_hidden_layers", "a number of layers, for they are not all alike");
        let order = self.ordered_layers()?.period().ok_or_else(unknown)?;
        let places = match self.model.nope() {
            NoPe::Every(default) => self.config.count("no_rope_layer_interval")?.unwrap_or(default),
            _ => 1,
        };
        order.checked_mul(places).filter(|&cycle| cycle <= LONGEST).ok_or_else(unknown)
    }

    fn check_bases(&self, bases: &[f64]) -> Result<()> {
        match bases.iter().find(|&&base| base != 0.0 && base <= 1.0) {
            Some(bad) => Err(Error::setting(self.config.path(BASES), bad, "numbers above 1, or 0 for no rope")),
            None => Ok(()),
        }
    }

    /// A list that there is must have something for each layer.
    fn check_length(&self, field: &str, given: Option<usize>, layers: u32) -> Result<()> {
        match given.filter(|&given| given < layers as usize) {
            Some(given) => Err(Error::setting(
                self.config.path(field),
                format!("a list of {given}"),
                format!("a list of {layers}, the number of layers"),
            )),
            None => Ok(()),
        }
    }

    /// The type of each layer, as the file lists it or the class orders it; `None` if all are alike.
    fn layer_types(&self, count: u32) -> Result<Option<Vec<String>>> {
        if let Some(listed) = self.config.words("layer_types")? {
            let mut listed: Vec<String> = listed.into_iter().map(str::to_owned).collect();
            if let Some(last) = listed.last_mut().filter(|_| self.model.ends_with_full_attention()) {
                *last = FULL.to_owned();
            }
            return Ok(Some(listed));
        }
        if let Some(ratios) = self.config.counts("compress_ratios")? {
            let compressed = |&ratio: &u32| if ratio == 0 { SLIDING } else { "compressed_attention" };
            return Ok(Some(ratios.iter().map(compressed).map(str::to_owned).collect()));
        }
        let layers = self.ordered_layers()?;
        let other = match layers {
            Layers::Uniform => return Ok(None),
            Layers::Listed => return Err(self.config.missing("layer_types", "a list of the layers' types")),
            Layers::LinearExceptEvery(_) => LINEAR,
            _ => SLIDING,
        };
        let last = self.model.ends_with_full_attention().then(|| count - 1);
        let kind = |i| if layers.is_full(i) || Some(i) == last { FULL } else { other };
        Ok(Some((0..count).map(kind).map(str::to_owned).collect()))
    }

    /// The class's order of layers, with the file's period where it has one.
    fn ordered_layers(&self) -> Result<Layers> {
        let order = self.model.layers();
        Ok(self.period()?.map_or(order, |period| order.with_period(period)))
    }

    /// Every how many layers one has full attention. EXAONE 4 may write it as a word, `LLLG`.
    fn period(&self) -> Result<Option<u32>> {
        if let Some(Value::String(word)) = self.config.get("sliding_window_pattern") {
            return Ok(u32::try_from(word.len()).ok().filter(|&length| length > 0));
        }
        let keys = ["sliding_window_pattern", "global_attn_every_n_layers", "full_attention_interval"];
        Ok(self.config.count_of(&keys)?.map(|(period, _)| period))
    }

    /// For each layer whether its place lets it rotate; `None` if all may.
    fn rotating_layers(&self, count: u32) -> Result<Option<Vec<bool>>> {
        let interval = self.config.count("no_rope_layer_interval")?;
        // The key says the opposite of what it means: 1 is a layer with rope.
        if let Some(listed) = self.config.counts("no_rope_layers")?.filter(|listed| !listed.is_empty()) {
            return Ok(Some(listed.into_iter().map(|has_rope| has_rope != 0).collect()));
        }
        let NoPe::Every(default) = self.model.nope() else { return Ok(None) };
        let interval = interval.unwrap_or(default);
        Ok(Some((1..=count).map(|i| !i.is_multiple_of(interval)).collect()))
    }
}
