//! What the page shows of `phasor-measure`: a model's ropes in words, and the check and the measurement of a device.
//!
//! Results are JSON texts, the same that the command prints.

use js_sys::Function;
use phasor::Gpu;
use phasor_measure::explain::{Explanation, Kind, Model, Statement, title, words};
use phasor_measure::{AttentionSizes, Extent, Measurement, Sizes, Step, bench};
use serde::Serialize;
use wasm_bindgen::prelude::*;

/// An explanation with its words.
#[derive(Serialize)]
struct Told<'a> {
    title: String,
    groups: Vec<Group<'a>>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Group<'a> {
    #[serde(flatten)]
    kind: &'a Kind,
    words: Vec<Statement>,
}

/// What a `config.json` says about a model's ropes, in words; where they depend on the length of the sequence, also for
/// `seqLen` tokens. JSON `{title, groups, warnings}`: groups are layers that do the same, each with its `words`, a list
/// `{label, lines}` whose lines are lists of cells.
#[wasm_bindgen]
pub fn explain(
    name: &str,
    config: &str,
    #[wasm_bindgen(js_name = seqLen)] seq_len: Option<u32>,
) -> Result<String, JsError> {
    let explanation = Explanation::of(&Model::from_config(name, config)?, seq_len)?;
    let groups = explanation.groups.iter().map(|kind| Group { kind, words: words(&explanation, kind) });
    json(&Told { title: title(&explanation), groups: groups.collect(), warnings: &explanation.warnings })
}

/// Compares every kernel on the browser's device with the f64 reference, on one task in seven if it is to be quick. `progress` is called with the number of steps
/// done, the number in all, and what comes now. JSON as of `phasor verify --json`.
#[wasm_bindgen]
pub async fn verify(quick: bool, progress: Function) -> Result<String, JsError> {
    let gpu = Gpu::request().await?;
    let extent = if quick { Extent::Some } else { Extent::All };
    json(&phasor_measure::verify(&gpu, extent, &mut |step| tell(&progress, step)).await?)
}

/// Times rotation, attention and decode steps on the browser's device, each beside what bounds it; `progress` as for
/// `verify`. JSON: a list of what `phasor bench --json` prints.
#[wasm_bindgen(js_name = bench)]
pub async fn measure(progress: Function) -> Result<String, JsError> {
    let gpu = Gpu::request().await?;
    let (rotation, attention) = sizes(&gpu);
    let mut measured: Vec<Measurement> = Vec::new();
    measured.push(bench::rotation(&gpu, rotation, &mut |step| tell(&progress, step)).await?);
    for sizes in attention {
        measured.push(bench::attention(&gpu, sizes, &mut |step| tell(&progress, step)).await?);
    }
    json(&measured)
}

/// Those of the command on a GPU; where the CPU stands in for one, such that a visitor need not wait for minutes.
fn sizes(gpu: &Gpu) -> (Sizes, [AttentionSizes; 2]) {
    let (prompt, decode) = (AttentionSizes::prompt, AttentionSizes::decode);
    if !gpu.is_software() {
        return (Sizes::default(), [prompt(2048), decode(32_768)]);
    }
    let few = |sizes| AttentionSizes { rounds: 3, unfused: false, ..sizes };
    (Sizes { tokens: 256, rounds: 5, ..Sizes::default() }, [few(prompt(256)), few(decode(2048))])
}

fn tell(progress: &Function, step: Step<'_>) {
    // A page whose progress fails has a broken display, not a broken device.
    let _ = progress.call3(&JsValue::NULL, &(step.done as f64).into(), &(step.total as f64).into(), &step.name.into());
}

fn json(value: &impl Serialize) -> Result<String, JsError> {
    Ok(serde_json::to_string_pretty(value)?)
}
