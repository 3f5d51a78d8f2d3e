//! `phasor info`: which devices there are, and what phasor would do on each.

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::report;
use clap::Args;
use phasor::frequencies::Plain;
use phasor::gpu::Shader;
use phasor::{ElementType, Gpu, Pairing, Rope};
use phasor_measure::Device;
use pollster::block_on;
use serde::Serialize;
use serde_json::{Value, json};

/// List the devices, their features and limits that matter, and the kernel variants they would run
///
/// The number in front of a device can be given to --adapter, as can a part of its name. The one with the star is taken
/// if --adapter is not given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phasor info\n  phasor info --json | jq '.adapters[].device.name'")]
pub struct Info {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One adapter and what it can do.
#[derive(Debug, Serialize)]
struct Adapter {
    index: usize,
    /// Whether it is taken if none is named.
    default: bool,
    device: Device,
    /// What phasor uses or reports, and whether it is there.
    features: Vec<(&'static str, bool)>,
    limits: Vec<(&'static str, u64)>,
    /// The variant for each common kind of work, or why there is none.
    variants: Result<Vec<Use>, String>,
}

/// A kind of work and the variant that does it.
#[derive(Debug, Serialize)]
struct Use {
    work: &'static str,
    shader: String,
    workgroup: [u32; 3],
    constants: Value,
}

impl Info {
    pub fn run(&self, wanted: Option<&str>) -> Result<Outcome, Failure> {
        let default = match wanted {
            // Refuses a name that no adapter has.
            Some(_) => Some(crate::adapter::open(wanted)?.info().clone()),
            None => Gpu::request_blocking().ok().map(|gpu| gpu.info().clone()),
        };
        let adapters: Vec<_> = block_on(phasor::gpu::adapters())
            .iter()
            .enumerate()
            .map(|(index, adapter)| look_at(index, adapter, default.as_ref()))
            .collect();
        let well = !adapters.is_empty();
        if self.json {
            return Ok(
                Outcome::json(&json!({ "version": env!("CARGO_PKG_VERSION"), "adapters": adapters }))?.well(well)
            );
        }
        if let Some(error) = adapters.is_empty().then(Gpu::request_blocking).and_then(Result::err) {
            return Err(error.into());
        }
        Ok(Outcome::text(adapters.iter().map(Adapter::told).collect::<Vec<_>>().join("\n")))
    }
}

fn look_at(index: usize, adapter: &wgpu::Adapter, default: Option<&wgpu::AdapterInfo>) -> Adapter {
    let (info, features, limits) = (adapter.get_info(), adapter.features(), adapter.limits());
    Adapter {
        index,
        default: default == Some(&info),
        device: Device::from(&info),
        features: vec![
            ("timestamp-query", features.contains(wgpu::Features::TIMESTAMP_QUERY)),
            ("shader-f16", features.contains(wgpu::Features::SHADER_F16)),
            ("subgroups", features.contains(wgpu::Features::SUBGROUP)),
        ],
        limits: vec![
            ("max_storage_buffer_binding_size", limits.max_storage_buffer_binding_size),
            ("max_buffer_size", limits.max_buffer_size),
            ("min_storage_buffer_offset_alignment", limits.min_storage_buffer_offset_alignment.into()),
            ("max_compute_invocations_per_workgroup", limits.max_compute_invocations_per_workgroup.into()),
            ("max_compute_workgroups_per_dimension", limits.max_compute_workgroups_per_dimension.into()),
            ("max_compute_workgroup_storage_size", limits.max_compute_workgroup_storage_size.into()),
        ],
        variants: variants(adapter).map_err(|e| e.to_string()),
    }
}

/// What would run for 32 query heads and 8 key heads of 128 channels.
fn variants(adapter: &wgpu::Adapter) -> phasor::Result<Vec<Use>> {
    let gpu = Gpu::on_blocking(adapter)?;
    let rope = Rope::new(&gpu, &Plain::new(10_000.0).frequencies(128)?, Pairing::HalfSplit)?;
    let table = rope.table(0, 512)?;
    let [q, k] = [32, 8].map(|heads| gpu.zeros(ElementType::F32, [1, 512, heads, 128]));
    let (q, k) = (q?, k?);
    let prefill = phasor::Rotate::in_place(&q).and_in_place(&k);
    let (one_q, one_k) = (q.tokens(0..1)?, k.tokens(0..1)?);
    let step = phasor::Rotate::in_place(&one_q).and_in_place(&one_k);
    let rotations = [
        ("prefill, 512 tokens", prefill.clone()),
        ("prefill, 512 tokens, from a table", prefill.from_table(&table)),
        ("decode, 1 token", step.clone()),
        ("decode, 1 token, from a table", step.from_table(&table)),
    ];
    let mut uses: Vec<_> = table.shader().map(|shader| Use::new("the table itself", shader)).into_iter().collect();
    for (work, rotate) in rotations {
        uses.extend(rope.prepare(&rotate)?.shaders().map(|shader| Use::new(work, shader)));
    }
    Ok(uses)
}

impl Use {
    fn new(work: &'static str, shader: &Shader) -> Self {
        let constants = shader.constants.iter().map(|&(name, value)| (name.to_owned(), json!(value))).collect();
        Self { work, shader: shader.name.clone(), workgroup: shader.workgroup, constants: Value::Object(constants) }
    }
}

impl Adapter {
    fn told(&self) -> String {
        let device = &self.device;
        let star = if self.default { "*" } else { " " };
        let mut text = format!("{star}{}  {}\n", self.index, device.name);
        let there =
            |want: bool| self.features.iter().filter(|f| f.1 == want).map(|f| f.0).collect::<Vec<_>>().join(", ");
        let or_none = |list: String| if list.is_empty() { "none".to_owned() } else { list };
        let facts = [
            ("kind", device.kind.clone()),
            ("backend", device.backend.clone()),
            ("driver", or_none(device.driver.clone())),
            ("features", or_none(there(true))),
            ("not there", or_none(there(false))),
        ];
        let facts = facts.into_iter().chain(self.limits.iter().map(|&(name, value)| (name, value.to_string())));
        text += &indented(&report::columns(&[], facts.map(|(name, value)| vec![name.to_owned(), value]), &[]));
        text += "    kernels for 32 + 8 heads of 128 channels\n";
        text += &match &self.variants {
            Err(error) => format!("      none: {error}\n"),
            Ok(uses) => indented(&indented(&report::columns(
                &[],
                uses.iter().map(|one| vec![one.work.to_owned(), one.shader.clone(), format!("{:?}", one.workgroup)]),
                &[],
            ))),
        };
        text
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("   {line}\n")).collect()
}
