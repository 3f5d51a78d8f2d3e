//! `phasor rotate`: queries and keys of a file, rotated into another.

use crate::cli::RopeArgs;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::positions::Positions;
use crate::tensors::{self, File, Floats};
use crate::{adapter, report};
use clap::{Args, ValueEnum};
use phasor::frequencies::{Frequencies, Law};
use phasor::{Direction, Gpu, Layout, Pairing, Rope, View, reference};
use std::path::PathBuf;

/// Rotate the queries and keys of a safetensors file
///
/// Reads the tensor `q` and, if it is there, `k` (F32, F16 or BF16; four axes; the same batch, tokens and channels), and
/// writes their rotations under the same names, shapes and types. Arithmetic is f32 on a device and f64 with --cpu.
///
/// An integer tensor `positions` [batch, tokens] in the file says where each token stands and wins over --start. Where
/// frequencies depend on the length of the sequence (dynamic, longrope), it ends with the last position.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Rotate {
    /// The file to read
    #[arg(value_name = "IN.safetensors")]
    input: PathBuf,

    /// The file to write
    #[arg(value_name = "OUT.safetensors")]
    output: PathBuf,

    #[command(flatten)]
    rope: RopeArgs,

    /// Which two channels make a pair
    #[arg(long)]
    pairing: PairingArg,

    /// Undo a rotation: turn the other way, by the inverse of the attention factor
    #[arg(long)]
    inverse: bool,

    /// The order of the axes in the file
    #[arg(long, default_value = "bthd")]
    layout: LayoutArg,

    /// Make the angles in the kernel instead of reading them from a table
    #[arg(long)]
    no_table: bool,

    /// Compute in float64 on the CPU instead of on a device
    #[arg(long)]
    cpu: bool,
}

const EXAMPLES: &str = r#"Examples:
  phasor rotate qk.safetensors rotated.safetensors --rope '{"rope_theta":500000}' --pairing half-split
  phasor rotate rotated.safetensors back.safetensors --rope '{"rope_theta":500000}' --pairing half-split --inverse
  phasor rotate one-token.safetensors out.safetensors --rope '{"rope_type":"linear","factor":4}' \
      --pairing interleaved --start 4095 --layout bhtd"#;

/// The checkpoint decides: the wrong one gives fluent nonsense.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum PairingArg {
    /// Channels 2i and 2i + 1: Meta's Llama files, most GGUF files
    Interleaved,
    /// Channels i and i + half: Hugging Face's files
    HalfSplit,
}

impl From<PairingArg> for Pairing {
    fn from(arg: PairingArg) -> Self {
        match arg {
            PairingArg::Interleaved => Self::Interleaved,
            PairingArg::HalfSplit => Self::HalfSplit,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LayoutArg {
    /// [batch, tokens, heads, channels]
    Bthd,
    /// [batch, heads, tokens, channels]
    Bhtd,
}

impl LayoutArg {
    fn layout(self, shape: [usize; 4]) -> phasor::Result<Layout> {
        match self {
            Self::Bthd => Layout::contiguous(shape),
            Self::Bhtd => {
                let [batch, heads, tokens, channels] = shape;
                Layout::heads_first([batch, tokens, heads, channels])
            }
        }
    }

    fn axes(self) -> &'static str {
        match self {
            Self::Bthd => "[batch, tokens, heads, channels]",
            Self::Bhtd => "[batch, heads, tokens, channels]",
        }
    }
}

/// A tensor of the file and how its elements lie.
struct Operand {
    name: &'static str,
    tensor: Floats,
    layout: Layout,
}

impl Rotate {
    pub fn run(&self, adapter: Option<&str>) -> Result<Outcome, Failure> {
        self.rope.warn();
        let file = File::read(&self.input)?;
        let mut operands = vec![self.operand(&file, "q", file.floats("q")?)?];
        if let Some(k) = file.floats_if_any("k")? {
            operands.push(self.operand(&file, "k", k)?);
        }
        let [batch, tokens, _, channels] = operands[0].layout.shape();
        self.expect_alike(&file, &operands)?;
        let positions = Positions::of(&file, self.rope.start, [batch, tokens])?;
        let frequencies = self.frequencies(&file, channels, positions.end(tokens))?;
        let by = if self.cpu {
            self.on_cpu(&mut operands, &frequencies, &positions)?;
            "the CPU, in float64".to_owned()
        } else {
            let gpu = adapter::open(adapter)?;
            self.on_device(&gpu, &mut operands, &frequencies, &positions)?;
            gpu.info().name.clone()
        };
        let named: Vec<_> = operands.iter().map(|operand| (operand.name, &operand.tensor)).collect();
        tensors::write(&self.output, &named, file.metadata())?;
        Ok(Outcome::text(self.told(&operands, &by)))
    }

    fn operand(&self, file: &File, name: &'static str, tensor: Floats) -> Result<Operand, Failure> {
        let Ok(shape) = <[usize; 4]>::try_from(tensor.shape.as_slice()) else {
            let may_be = format!("four axes, {}", self.layout.axes());
            return Err(file.wrong(name, &format!("{:?}", tensor.shape), &may_be));
        };
        let layout = self.layout.layout(shape)?;
        Ok(Operand { name, tensor, layout })
    }

    fn expect_alike(&self, file: &File, operands: &[Operand]) -> Result<(), Failure> {
        let [batch, tokens, _, channels] = operands[0].layout.shape();
        match operands.iter().find(|o| [0, 1, 3].map(|axis| o.layout.shape()[axis]) != [batch, tokens, channels]) {
            None => Ok(()),
            Some(other) => Err(file
                .wrong(
                    other.name,
                    &format!("{:?}, {}", other.tensor.shape, self.layout.axes()),
                    &format!("one of {batch} batch rows, {tokens} tokens and {channels} channels, as q is"),
                )
                .next("if heads and tokens are the other way round in the file, say so with --layout")),
        }
    }

    fn frequencies(&self, file: &File, channels: usize, end: i64) -> Result<Frequencies, Failure> {
        if let law @ Law::Axial(_) = self.rope.rope.law() {
            let what = format!("--rope: rope_type: was {}, may be any type whose tokens have one position", law.name());
            return Err(Failure::new(what));
        }
        let dim = u32::try_from(channels).ok().filter(|dim| *dim > 0 && dim.is_multiple_of(2));
        let dim =
            dim.ok_or_else(|| file.wrong("q", &format!("heads of {channels} channels"), "an even number of them"))?;
        self.rope.frequencies(dim, None, end)
    }

    fn direction(&self) -> Direction {
        if self.inverse { Direction::Inverse } else { Direction::Forward }
    }

    fn on_cpu(&self, operands: &mut [Operand], frequencies: &Frequencies, at: &Positions) -> Result<(), Failure> {
        for operand in operands {
            let [batch, tokens, ..] = operand.layout.shape();
            let list = at.list([batch, tokens])?;
            let mut wide: Vec<f64> = operand.tensor.values.iter().map(|&x| x.into()).collect();
            let position = |b: usize, t: usize| list.get(b * tokens + t).copied().unwrap_or_default();
            let (pairing, direction) = (self.pairing.into(), self.direction());
            reference::rope_rotate(&mut wide, operand.layout, frequencies, pairing, 0, direction, position)?;
            operand.tensor.values = wide.into_iter().map(|x| x as f32).collect();
        }
        Ok(())
    }

    fn on_device(
        &self,
        gpu: &Gpu,
        operands: &mut [Operand],
        frequencies: &Frequencies,
        at: &Positions,
    ) -> Result<(), Failure> {
        // Flat views move the bytes as they lie in the file; the others are what the kernel sees.
        let flat: Vec<View> = operands
            .iter()
            .map(|o| gpu.upload_as(o.tensor.element(), &o.tensor.values, [1, 1, 1, o.tensor.values.len()]))
            .collect::<phasor::Result<_>>()?;
        let views: Vec<View> = flat
            .iter()
            .zip(operands.iter())
            .map(|(view, o)| View::new(view.buffer(), view.element(), o.layout))
            .collect::<phasor::Result<_>>()?;
        let mut rotate = phasor::Rotate::in_place(&views[0]).direction(self.direction());
        if let Some(k) = views.get(1) {
            rotate = rotate.and_in_place(k);
        }
        let rope = Rope::new(gpu, frequencies, self.pairing.into())?;
        let [batch, tokens, ..] = views[0].shape();
        let table = match at {
            Positions::Start(start) if self.no_table => {
                rotate = rotate.positions(phasor::Positions::Start(*start));
                None
            }
            Positions::Each(list) if self.no_table => {
                rotate = rotate.positions(phasor::Positions::PerToken(gpu.upload_positions(list, [batch, tokens])?));
                None
            }
            Positions::Start(start) => {
                rotate = rotate.positions(phasor::Positions::Start(*start));
                Some(rope.table(*start, tokens).map_err(without_table)?)
            }
            Positions::Each(list) => {
                Some(rope.table_for(&gpu.upload_positions(list, [batch, tokens])?).map_err(without_table)?)
            }
        };
        if let Some(table) = &table {
            rotate = rotate.from_table(table);
        }
        let rotation = rope.prepare(&rotate)?;
        gpu.submit(|pass| {
            if let Some(table) = &table {
                table.record(pass);
            }
            rotation.record(pass);
        })?;
        for (operand, view) in operands.iter_mut().zip(&flat) {
            operand.tensor.values = gpu.read_blocking(view)?;
        }
        Ok(())
    }

    fn told(&self, operands: &[Operand], by: &str) -> String {
        let tensors: Vec<_> = operands
            .iter()
            .map(|o| {
                let size = report::bytes((o.tensor.values.len() * o.tensor.dtype.bitsize() / 8) as u64);
                format!("{} {:?} ({}, {size})", o.name, o.tensor.shape, o.tensor.dtype)
            })
            .collect();
        format!("rotated {} on {by}\nwrote {}\n", tensors.join(" and "), self.output.display())
    }
}

/// A table that does not fit is no reason to give up.
fn without_table(error: phasor::Error) -> Failure {
    Failure::from(error).next("--no-table needs no memory for a table, and has no limit of positions")
}
