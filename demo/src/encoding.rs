//! A rope with everything that a rotation needs, whether a model's file or the command line said so.

use crate::failure::Failure;
use phasor::config::{LayerRope, Spec};
use phasor::frequencies::{Axes, Frequencies, Law, QueryScale};
use phasor::{Pairing, Rotary};
use phasor_measure::explain::{Model, text_axes};

/// One layer's rope.
#[derive(Debug, Clone)]
pub struct Encoding {
    /// The file's words for the model and for the kind of layer.
    pub model_type: Option<String>,
    pub layer_type: Option<String>,
    pub law: Law,
    /// Left open by settings on their own.
    pub pairing: Option<Pairing>,
    pub head_dim: u32,
    pub rotary: Rotary,
    pub axes: Axes,
    /// On how many of the axes a token of text has its position; on the others it is at 0.
    text_axes: u8,
    pub rotates: bool,
    pub softmax_scale_multiplier: f64,
    pub query_scale: Option<QueryScale>,
    pub warnings: Vec<String>,
}

impl Encoding {
    /// Settings on their own, for heads of so many channels, of which `rotary_dim` turn (what the settings say if it is
    /// not given).
    pub fn of_spec(spec: &Spec, head_dim: u32, rotary_dim: Option<u32>) -> Result<Self, Failure> {
        let dim = rotary_dim.unwrap_or_else(|| spec.rotary_dim(head_dim));
        if rotary_dim.is_none() && dim == head_dim && (head_dim == 0 || !head_dim.is_multiple_of(2)) {
            return Err(Failure::new(format!(
                "--head-dim: was {head_dim}, may be an even number from 2 on, as all channels turn"
            ))
            .next("--rotary-dim says how many of them turn, if not all"));
        }
        let rotary = Rotary::new(head_dim, dim, 0)?;
        // Refuses absurd sizes before anything is made of them.
        spec.law().frequencies(dim)?;
        let pairs = rotary.pairs() as usize;
        let axes = match spec.law() {
            Law::Axial(_) => Axes::axial(pairs)?,
            _ => Axes::one(pairs),
        };
        Ok(Self {
            model_type: None,
            layer_type: None,
            law: spec.law().clone(),
            pairing: None,
            head_dim,
            rotary,
            text_axes: axes.count(),
            axes,
            rotates: true,
            softmax_scale_multiplier: 1.0,
            query_scale: None,
            warnings: spec.warnings().to_vec(),
        })
    }

    /// A layer of a model.
    pub fn of_layer(model: &Model, rope: &LayerRope) -> Self {
        Self {
            model_type: Some(model.ropes.model_type().to_owned()),
            layer_type: rope.layer_type.clone(),
            law: rope.law.clone(),
            pairing: Some(rope.pairing),
            head_dim: rope.head_dim,
            rotary: rope.rotary,
            axes: rope.axes.clone(),
            text_axes: text_axes(model.format, rope.axes.count()),
            rotates: rope.rotates,
            softmax_scale_multiplier: rope.softmax_scale_multiplier,
            query_scale: rope.query_scale,
            warnings: model.warnings.clone(),
        }
    }

    /// The frequencies for a sequence of so many tokens in all.
    pub fn frequencies(&self, seq_len: u32) -> Result<Frequencies, Failure> {
        Ok(self.law.frequencies_at(self.rotary.dim(), seq_len)?)
    }

    /// The frequencies where a token has one position: pairs of axes on which text is always at 0 stand still.
    pub fn for_text(&self, whole: &Frequencies) -> Result<Frequencies, Failure> {
        keep(whole, &self.axes, |axis| axis < self.text_axes, whole.attention_factor())
    }

    /// The frequencies of each axis, with the pairs of the others standing still. One after the other they make the
    /// whole rotation; the attention factor comes with the first.
    pub fn by_axis(&self, whole: &Frequencies) -> Result<Vec<Frequencies>, Failure> {
        let factor = |axis: u8| if axis == 0 { whole.attention_factor() } else { 1.0 };
        (0..self.axes.count()).map(|axis| keep(whole, &self.axes, |of| of == axis, factor(axis))).collect()
    }
}

fn keep(whole: &Frequencies, axes: &Axes, kept: impl Fn(u8) -> bool, factor: f64) -> Result<Frequencies, Failure> {
    let pairs = whole.inv_freq().iter().zip(axes.axis_of_pair());
    Ok(Frequencies::new(pairs.map(|(&w, &axis)| if kept(axis) { w } else { 0.0 }).collect(), factor)?)
}
