//! `phasor attention`: attention of a file's tensors, into another.

use crate::encoding::Encoding;
use crate::failure::Failure;
use crate::operand::{Operand, Order, in_memory_order};
use crate::outcome::Outcome;
use crate::rope_args::{Named, PairingArg, RopeArgs, encoding_of, pairing};
use crate::tensors::{self, File, Floats};
use crate::{adapter, failure};
use clap::Args;
use phasor::attention::{Attention as Request, ContextualPe, Fused, Rotation, Unfused};
use phasor::frequencies::Law;
use phasor::reference::{Attended, attention};
use phasor::{ElementType, Gpu, View};
use safetensors::Dtype;
use std::path::PathBuf;

/// Attention of queries, keys and values of a safetensors file, with rotary and contextual encoding (RoPE, CoPE) if wanted
///
/// Reads `q`, `k` and `v` [batch, tokens, heads, channels] (F32, F16 or BF16, each its own; keys and values may have fewer
/// heads and another number of tokens) and writes `out`, in the queries' type, and `lse`, the log-sum-exp of each query's
/// logits, F32 [batch, tokens, heads] (-1e30 where a query sees no key). Arithmetic is f32 on a device and f64 with --cpu.
///
/// With `position_embeddings` [channels, positions], or [heads, channels, positions], in the file, contextual position
/// encoding is added. With `bias`, [batch, heads, tokens, keys] with 1 for what is the same along the first three, that is
/// added to the logits; at or below -1e30, and at minus infinity, it hides a key.
///
/// With a rope, queries and keys are rotated on their way in: key s stands at position s, and the last query at the last
/// key. With --config or --gguf the model's file decides the pairing, and by how much its law stretches the logits.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Attention {
    /// The file to read
    #[arg(value_name = "IN.safetensors")]
    input: PathBuf,

    /// The file to write
    #[arg(value_name = "OUT.safetensors")]
    output: PathBuf,

    #[command(flatten)]
    rope: RopeArgs,

    /// Which two channels make a pair; with --config or --gguf the file says so, and this overrides it
    #[arg(long)]
    pairing: Option<PairingArg>,

    /// Hide keys to the right of a query's own place
    #[arg(long)]
    causal: bool,

    /// A query sees so many keys up to its own place, that one included
    #[arg(long, value_name = "N")]
    window: Option<usize>,

    /// What products of queries and keys are multiplied with [default: 1 / sqrt(channels), times what the model's rope says]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    scale: Option<f64>,

    /// What the contextual bias is multiplied with
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true)]
    cope_scale: f64,

    /// The order of the axes of q, k, v and out
    #[arg(long, default_value = "bthd")]
    layout: Order,

    /// A kernel for each part of the formula, with all logits in memory, instead of one that does without
    #[arg(long, conflicts_with = "cpu")]
    unfused: bool,

    /// Compute in float64 on the CPU instead of on a device
    #[arg(long)]
    cpu: bool,
}

const EXAMPLES: &str = r#"Examples:
  phasor attention qkv.safetensors out.safetensors --causal
  phasor attention qkv.safetensors out.safetensors --causal --config config.json --window 4096
  phasor attention qkv.safetensors out.safetensors --rope '{"rope_theta":500000}' --pairing half-split --cpu"#;

/// The file's tensors.
struct Tensors<T> {
    q: T,
    k: T,
    v: T,
    embeddings: Option<T>,
    bias: Option<T>,
}

impl<T> Tensors<T> {
    fn map<'a, U>(&'a self, of: impl Fn(&'a T) -> phasor::Result<U>) -> phasor::Result<Tensors<U>> {
        Ok(Tensors {
            q: of(&self.q)?,
            k: of(&self.k)?,
            v: of(&self.v)?,
            embeddings: self.embeddings.as_ref().map(&of).transpose()?,
            bias: self.bias.as_ref().map(&of).transpose()?,
        })
    }
}

/// A rope of this request, if there is one.
struct Turn {
    encoding: Encoding,
    rotation: Option<Rotation>,
}

impl Attention {
    pub fn run(&self, adapter: Option<&str>) -> Result<Outcome, Failure> {
        self.expect_finite()?;
        let named = self.rope.named()?;
        let file = File::read(&self.input)?;
        let tensors = self.read(&file)?;
        let [.., channels] = tensors.q.layout.shape();
        let turn = named.map(|named| self.turn(&file, named, &tensors)).transpose()?;
        let stretched = turn.as_ref().map_or(1.0, |turn| turn.encoding.softmax_scale_multiplier);
        let scale = self.scale.unwrap_or(stretched / (channels.max(1) as f64).sqrt());
        let rotation = turn.as_ref().and_then(|turn| turn.rotation.clone());
        let (attended, by) = if self.cpu {
            let wide = tensors.map(|operand| Ok(operand.wide()))?;
            let request = self.request(&wide.map(|wide| wide.tensor())?, scale, rotation);
            (attention(&request)?, "the CPU, in float64".to_owned())
        } else {
            let gpu = adapter::open(adapter)?;
            let views = tensors.map(|operand| operand.view(&gpu))?;
            (self.on_device(&gpu, &self.request(&views, scale, rotation), &tensors)?, gpu.info().name.clone())
        };
        self.write(&tensors, attended)?;
        Ok(Outcome::text(self.told(&tensors, turn.as_ref(), scale, &by)))
    }

    fn expect_finite(&self) -> Result<(), Failure> {
        let numbers = [("--scale", self.scale), ("--cope-scale", Some(self.cope_scale))];
        let mut given = numbers.into_iter().filter_map(|(name, number)| Some((name, number?)));
        let wrong = given.find(|(_, number)| !number.is_finite());
        match wrong {
            Some((name, was)) => Err(Failure::new(format!("{name}: was {was}, may be a finite number"))),
            None => Ok(()),
        }
    }

    fn read(&self, file: &File) -> Result<Tensors<Operand>, Failure> {
        let read = |name| Operand::read(file, name, self.layout);
        Ok(Tensors {
            q: read("q")?,
            k: read("k")?,
            v: read("v")?,
            embeddings: Operand::position_embeddings(file)?,
            bias: Operand::read_if_any(file, "bias", Order::Bhtd)?.map(|bias| bias.finite()),
        })
    }

    fn turn(&self, file: &File, named: Named<'_>, tensors: &Tensors<Operand>) -> Result<Turn, Failure> {
        if matches!(named, Named::Settings(_)) && self.pairing.is_none() {
            return Err(Failure::new("--pairing: was missing, may be interleaved or half-split")
                .next("the checkpoint decides: half-split in Hugging Face's files, interleaved in most GGUF files"));
        }
        let encoding = encoding_of(file, named, tensors.q.layout.shape()[3])?;
        if matches!(encoding.law, Law::Axial(_)) {
            return Err(Failure::new(
                "--rope: was axial, may be a rope of text: `phasor rotate` takes rows and columns",
            ));
        }
        let keys = tensors.k.layout.shape()[1];
        let frequencies = encoding.frequencies(self.rope.seq_len(i64::try_from(keys).unwrap_or(i64::MAX)))?;
        let rotation = Rotation::new(&encoding.for_text(&frequencies)?, pairing(self.pairing, &encoding))
            .from_channel(encoding.rotary.offset() as usize);
        if encoding.query_scale.is_some() {
            failure::say("note: the model's factor on queries by position, which is no rotation, is left out");
        }
        Ok(Turn { rotation: encoding.rotates.then_some(rotation), encoding })
    }

    fn request<T: Clone>(&self, tensors: &Tensors<T>, scale: f64, rotation: Option<Rotation>) -> Request<T> {
        let mut request = Request::new(&tensors.q, &tensors.k, &tensors.v).scale(scale);
        if self.causal {
            request = request.causal();
        }
        if let Some(keys) = self.window {
            request = request.window(keys);
        }
        if let Some(bias) = &tensors.bias {
            request = request.bias(bias);
        }
        if let Some(rotation) = rotation {
            request = request.rotate(rotation);
        }
        match &tensors.embeddings {
            Some(embeddings) => request.cope(ContextualPe::new(embeddings).bias_scale(self.cope_scale)),
            None => request,
        }
    }

    fn on_device(&self, gpu: &Gpu, request: &Request<View>, tensors: &Tensors<Operand>) -> Result<Attended, Failure> {
        let [batch, tokens, heads, _] = tensors.q.layout.shape();
        let zeros = |channels| gpu.zeros(ElementType::F32, [batch, tokens, heads, channels]);
        let (out, lse) = (zeros(tensors.v.layout.shape()[3])?, zeros(1)?);
        let prepared = match self.unfused {
            true => Unfused::new(request, &out).lse(&lse).prepare(gpu)?,
            false => Fused::new(request, &out).lse(&lse).prepare(gpu)?,
        };
        gpu.submit(|pass| prepared.record(pass))?;
        let read = |view| Ok::<Vec<f64>, Failure>(gpu.read_blocking(view)?.into_iter().map(f64::from).collect());
        Ok(Attended { out: read(&out)?, lse: read(&lse)?, gate_sum: Vec::new() })
    }

    fn write(&self, tensors: &Tensors<Operand>, attended: Attended) -> Result<(), Failure> {
        let [batch, tokens, heads, _] = tensors.q.layout.shape();
        // As q is, but with the channels of the values.
        let mut shape = tensors.q.tensor.shape.clone();
        if let (Some(last), Some(of_values)) = (shape.last_mut(), tensors.v.tensor.shape.last()) {
            *last = *of_values;
        }
        let layout = self.layout.layout([shape[0], shape[1], shape[2], shape[3]])?;
        let out = Floats::new(tensors.q.tensor.dtype, shape, in_memory_order(layout, attended.out));
        let lse = Floats::new(Dtype::F32, vec![batch, tokens, heads], attended.lse);
        tensors::write(&self.output, &[("out", &out), ("lse", &lse)])
    }

    fn told(&self, tensors: &Tensors<Operand>, turn: Option<&Turn>, scale: f64, by: &str) -> String {
        let [batch, tokens, heads, channels] = tensors.q.layout.shape();
        let [_, keys, kv_heads, _] = tensors.k.layout.shape();
        let mut text = format!(
            "attention of {batch} x {tokens} queries over {keys} keys, {heads} over {kv_heads} heads of {channels} \
             channels, scale {scale:.6}, on {by}\n"
        );
        if let Some(turn) = turn {
            text += &format!("rotated by {}\n", turn.told());
        }
        if let Some(embeddings) = &tensors.embeddings {
            text += &format!("with contextual encoding of {} positions\n", embeddings.layout.shape()[3]);
        }
        text + &format!("wrote {}\n", self.output.display())
    }
}

impl Turn {
    fn told(&self) -> String {
        let Some(rotation) = &self.rotation else { return "nothing: this layer does not rotate (NoPE)".to_owned() };
        format!("{}, {} pairs", self.encoding.law.name(), rotation.pairing())
    }
}
