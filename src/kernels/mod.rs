//! One file per shader: its bindings, its parameters, its grid. Pure planning, testable without a device.

pub(crate) mod attention_decode;
pub(crate) mod attention_merge;
pub(crate) mod attention_rows;
pub(crate) mod attention_scores;
pub(crate) mod attention_tiles;
pub(crate) mod attention_turned;
pub(crate) mod attention_values;
pub(crate) mod cope_interpolate;
pub(crate) mod cope_logits;
pub(crate) mod cope_positions;
pub(crate) mod fused;
pub(crate) mod grid;
pub(crate) mod modules;
pub(crate) mod place;
pub(crate) mod plan;
pub(crate) mod projection;
pub(crate) mod region;
pub(crate) mod rope_rotate;
pub(crate) mod rope_table;
pub(crate) mod rotation;
pub(crate) mod softmax;
pub(crate) mod step;
#[cfg(any(test, target_family = "wasm"))]
pub(crate) mod stripped;
pub(crate) mod words;

use crate::gpu::Shader;

/// Every finished shader, each text once with the constants of a common case and once with those of a case that needs
/// all of its branches.
pub(crate) fn all() -> Vec<Shader> {
    rope_table::all()
        .chain(rope_rotate::all())
        .chain(cope_logits::all())
        .chain(cope_positions::all())
        .chain(cope_interpolate::all())
        .chain(attention_turned::all())
        .chain(attention_decode::all())
        .chain(attention_merge::all())
        .chain(attention_rows::all())
        .chain(attention_tiles::all())
        .chain(attention_scores::all())
        .chain(softmax::all())
        .chain(attention_values::all())
        .chain(projection::all())
        .collect()
}
