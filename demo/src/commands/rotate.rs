//! `phasor rotate`: queries and keys of a file, rotated into another.

use crate::encoding::Encoding;
use crate::failure::Failure;
use crate::operand::{Operand, Order, in_memory_order};
use crate::outcome::Outcome;
use crate::positions::Positions;
use crate::rope_args::{Named, PairingArg, RopeArgs, encoding_of, pairing};
use crate::tensors::File;
use crate::whole::whole;
use crate::{adapter, report};
use clap::Args;
use phasor::frequencies::{Frequencies, Law};
use phasor::{Direction, ElementType, Gpu, Layout, Pairing, Rope, View, reference};
use std::path::PathBuf;

/// Rotate the queries and keys of a safetensors file
///
/// Reads the tensor `q` and, if it is there, `k` (F32, F16 or BF16, each its own; four axes; the same batch, tokens and
/// channels), and writes their rotations under the same names, shapes and types; all else in the file is written as it was. Arithmetic is f32 on a device and f64
/// with --cpu; both round once, to the tensor's type.
///
/// An integer tensor `positions` [batch, tokens] in the file says where each token stands and wins over --start. Where
/// the rope has several axes (pictures, video) it may be [batch, tokens, axes]; else text is meant, with one position for
/// all axes. Where frequencies depend on the length of the sequence (dynamic, longrope), it ends with the last position,
/// unless --seq-len says otherwise.
///
/// With --config or --gguf the model's file decides everything, the pairing too. A layer that does not rotate (NoPE)
/// leaves the tensors as they are.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = RopeArgs::required())]
pub struct Rotate {
    /// The file to read
    #[arg(value_name = "IN.safetensors")]
    input: PathBuf,

    /// The file to write; it may be the one that is read, which is then rotated in place
    #[arg(value_name = "OUT.safetensors")]
    output: PathBuf,

    #[command(flatten)]
    rope: RopeArgs,

    /// The position of the first token; may be negative
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<i32>)]
    start: i32,

    /// Which two channels make a pair; with --config or --gguf the file says so, and this overrides it
    #[arg(long, required_unless_present = "ModelFile")]
    pairing: Option<PairingArg>,

    /// Undo a rotation: turn the other way, by the inverse of the attention factor
    #[arg(long)]
    inverse: bool,

    /// The order of the axes in the file
    #[arg(long, default_value = "bthd")]
    layout: Order,

    /// Make the angles in the kernel instead of reading them from a table
    #[arg(long)]
    no_table: bool,

    /// Compute in float64 on the CPU instead of on a device
    #[arg(long)]
    cpu: bool,
}

const EXAMPLES: &str = r#"Examples:
  phasor rotate qk.safetensors rotated.safetensors --config config.json
  phasor rotate qk.safetensors rotated.safetensors --gguf model.gguf --layer 5 --start 4095
  phasor rotate qk.safetensors rotated.safetensors --rope '{"rope_theta":500000}' --pairing half-split
  phasor rotate rotated.safetensors back.safetensors --rope '{"rope_theta":500000}' --pairing half-split --inverse
  phasor rotate one-token.safetensors out.safetensors --rope '{"rope_type":"linear","factor":4}' \
      --pairing interleaved --start 4095 --layout bhtd"#;

/// What to turn by, and where.
struct Turn {
    encoding: Encoding,
    frequencies: Frequencies,
    pairing: Pairing,
    positions: Positions,
}

impl Rotate {
    pub fn run(&self, adapter: Option<&str>) -> Result<Outcome, Failure> {
        let named = self.rope.expect_named()?;
        let file = File::read(&self.input)?;
        self.rope.expect_other(&self.output)?;
        let mut operands = vec![Operand::read(&file, "q", self.layout)?];
        operands.extend(Operand::read_if_any(&file, "k", self.layout)?);
        self.expect_alike(&file, &operands)?;
        let turn = self.turn(&file, named, operands[0].layout.shape())?;
        let by = if !turn.encoding.rotates {
            None
        } else if self.cpu {
            self.on_cpu(&mut operands, &turn)?;
            Some("the CPU, in float64".to_owned())
        } else {
            let gpu = adapter::open(adapter)?;
            self.on_device(&gpu, &mut operands, &turn)?;
            Some(gpu.info().name.clone())
        };
        let named: Vec<_> = operands.iter().map(|operand| (operand.name.as_str(), &operand.tensor)).collect();
        file.write_with(&self.output, &named)?;
        Ok(Outcome::text(self.told(&operands, &turn, by)))
    }

    fn turn(&self, file: &File, named: Named<'_>, [batch, tokens, _, channels]: [usize; 4]) -> Result<Turn, Failure> {
        let encoding = encoding_of(file, named, channels)?;
        let positions = Positions::of(file, self.start, [batch, tokens], encoding.axes.count().into())?;
        if matches!(encoding.law, Law::Axial(_)) && positions.axes() == 1 {
            let was = "one number for a token";
            let may_be = format!("[{batch}, {tokens}, 2]: a row and a column, which rope_type axial turns by");
            return Err(file.wrong("positions", was, &may_be));
        }
        let frequencies = encoding.frequencies(self.rope.seq_len(positions.end(tokens)))?;
        let frequencies = if positions.axes() == 1 { encoding.for_text(&frequencies)? } else { frequencies };
        Ok(Turn { pairing: pairing(self.pairing, &encoding), encoding, frequencies, positions })
    }

    fn expect_alike(&self, file: &File, operands: &[Operand]) -> Result<(), Failure> {
        let [batch, tokens, _, channels] = operands[0].layout.shape();
        match operands.iter().find(|o| [0, 1, 3].map(|axis| o.layout.shape()[axis]) != [batch, tokens, channels]) {
            None => Ok(()),
            Some(other) => Err(file
                .wrong(
                    &other.name,
                    &format!("{:?}, {}", other.tensor.shape, self.layout.axes()),
                    &format!("one of {batch} batch rows, {tokens} tokens and {channels} channels, as q is"),
                )
                .next("if heads and tokens are the other way round in the file, say so with --layout")),
        }
    }

    fn direction(&self) -> Direction {
        if self.inverse { Direction::Inverse } else { Direction::Forward }
    }

    fn on_cpu(&self, operands: &mut [Operand], turn: &Turn) -> Result<(), Failure> {
        let passes = match turn.positions.axes() {
            1 => vec![turn.frequencies.clone()],
            _ => turn.encoding.by_axis(&turn.frequencies)?,
        };
        let first_channel = turn.encoding.rotary.offset() as usize;
        for operand in operands.iter_mut().filter(|operand| !operand.layout.is_empty()) {
            let [batch, tokens, ..] = operand.layout.shape();
            let mut wide: Vec<f64> = operand.tensor.values().into_iter().map(f64::from).collect();
            for (axis, frequencies) in passes.iter().enumerate() {
                let list = turn.positions.list(axis, [batch, tokens])?;
                let position = |b: usize, t: usize| list.get(b * tokens + t).copied().unwrap_or_default();
                reference::rope_rotate(
                    &mut wide,
                    operand.layout,
                    frequencies,
                    turn.pairing,
                    first_channel,
                    self.direction(),
                    position,
                )?;
            }
            operand.tensor.replace(wide);
        }
        Ok(())
    }

    fn on_device(&self, gpu: &Gpu, operands: &mut [Operand], turn: &Turn) -> Result<(), Failure> {
        if operands.iter().all(|operand| operand.layout.is_empty()) {
            return Ok(());
        }
        let views = operands.iter().map(|operand| operand.view(gpu)).collect::<phasor::Result<Vec<_>>>()?;
        let mut rotate = phasor::Rotate::in_place(&views[0]).direction(self.direction());
        if let Some(k) = views.get(1) {
            rotate = rotate.and_in_place(k);
        }
        let first_channel = turn.encoding.rotary.offset() as usize;
        let mut rope = Rope::new(gpu, &turn.frequencies, turn.pairing)?.from_channel(first_channel);
        if turn.positions.axes() > 1 {
            rope = rope.with_axes(&turn.encoding.axes)?;
        }
        let [batch, tokens, ..] = views[0].shape();
        let table = match &turn.positions {
            Positions::Start(start) => {
                rotate = rotate.positions(phasor::Positions::Start(*start));
                if self.no_table { None } else { Some(rope.table(*start, tokens).map_err(without_table)?) }
            }
            Positions::Each { numbers, axes } => {
                let uploaded = uploaded(gpu, numbers, [batch, tokens, *axes])?;
                if self.no_table {
                    rotate = rotate.positions(phasor::Positions::PerToken(uploaded));
                    None
                } else {
                    Some(rope.table_for(&uploaded).map_err(without_table)?)
                }
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
        for (operand, view) in operands.iter_mut().zip(&views) {
            let rotated = gpu.read_blocking(view)?.into_iter().map(f64::from);
            operand.tensor.replace(in_memory_order(operand.layout, rotated));
        }
        Ok(())
    }

    /// What was done; `by` is what did it, if the layer rotates at all.
    fn told(&self, operands: &[Operand], turn: &Turn, by: Option<String>) -> String {
        let tensors: Vec<_> = operands
            .iter()
            .map(|o| {
                let size = report::bytes(o.tensor.bytes());
                format!("{} {:?} ({}, {size})", o.name, o.tensor.shape, o.tensor.dtype)
            })
            .collect();
        let tensors = tensors.join(" and ");
        let done = match by {
            Some(by) => format!("rotated {tensors} on {by}\nby {}", turn.told()),
            None => format!("copied {tensors}: this layer does not rotate (NoPE)"),
        };
        format!("{done}\nwrote {}\n", self.output.display())
    }
}

impl Turn {
    /// The rope in a line.
    fn told(&self) -> String {
        let encoding = &self.encoding;
        let rotary = encoding.rotary;
        let mut told = format!("{}, {} pairs", encoding.law.name(), self.pairing);
        if rotary.dim() < encoding.head_dim {
            let channels = rotary.channels();
            told += &format!(", channels {} to {} of {}", channels.start, channels.end - 1, encoding.head_dim);
        }
        if let Some(layer_type) = &encoding.layer_type {
            told += &format!(", as {layer_type}");
        }
        if encoding.query_scale.is_some() {
            told += "; the model's factor on queries, which is no rotation, is left to the caller";
        }
        told
    }
}

/// Positions on the device, as a view `[batch, tokens, axes, 1]`.
fn uploaded(gpu: &Gpu, numbers: &[i32], [batch, tokens, axes]: [usize; 3]) -> Result<View, Failure> {
    let flat = gpu.upload_positions(numbers, [batch, tokens * axes])?;
    Ok(View::new(flat.buffer(), ElementType::I32, Layout::contiguous([batch, tokens, axes, 1])?)?)
}

/// A table that does not fit is no reason to give up.
fn without_table(error: phasor::Error) -> Failure {
    Failure::from(error).next("--no-table needs no memory for a table, and has no limit of positions")
}
