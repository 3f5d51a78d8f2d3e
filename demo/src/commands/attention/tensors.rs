//! Attention of the queries, keys and values of a file.

use super::{Attention, Turn};
use crate::adapter;
use crate::failure::Failure;
use crate::operand::{Operand, Order, in_memory_order};
use crate::outcome::Outcome;
use crate::tensors::{self, File, Floats};
use phasor::attention::{Attention as Request, Fused, Unfused};
use phasor::reference::{Attended, attention};
use phasor::{ElementType, Gpu, View};
use safetensors::Dtype;

/// The file's tensors.
struct Tensors<T> {
    q: T,
    k: T,
    v: T,
    embeddings: Option<T>,
    bias: Option<T>,
}

pub fn run(asked: &Attention, file: &File, adapter: Option<&str>) -> Result<Outcome, Failure> {
    let tensors = Tensors::read(asked, file)?;
    let [batch, tokens, heads, channels] = tensors.q.layout.shape();
    let [_, keys, kv_heads, _] = tensors.k.layout.shape();
    let turn = Turn::of(asked, file, channels, keys)?;
    let scale = asked.scale(channels, turn.as_ref());
    let (attended, by) = if asked.cpu {
        let wide = tensors.map(|operand| Ok(operand.wide()))?;
        let request = wide.map(|wide| wide.tensor())?.request(asked, scale, turn.as_ref());
        (attention(&request)?, "the CPU, in float64".to_owned())
    } else {
        let gpu = adapter::open(adapter)?;
        let request = tensors.map(|operand| operand.view(&gpu))?.request(asked, scale, turn.as_ref());
        (tensors.on_device(asked, &gpu, &request)?, gpu.info().name.clone())
    };
    tensors.write(asked, attended)?;
    let attention = format!(
        "attention of {batch} x {tokens} queries over {keys} keys, {heads} over {kv_heads} heads of {channels} channels, \
         scale {scale:.6}"
    );
    let positions = tensors.embeddings.as_ref().map(|embeddings| embeddings.layout.shape()[3]);
    Ok(asked.told(&attention, turn.as_ref(), positions, &by))
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

impl<T: Clone> Tensors<T> {
    fn request(&self, asked: &Attention, scale: f64, turn: Option<&Turn>) -> Request<T> {
        let mut request = asked.settings(Request::new(&self.q, &self.k, &self.v), scale, turn);
        if let Some(bias) = &self.bias {
            request = request.bias(bias);
        }
        match &self.embeddings {
            Some(embeddings) => request.cope(asked.contextual(embeddings)),
            None => request,
        }
    }
}

impl Tensors<Operand> {
    fn read(asked: &Attention, file: &File) -> Result<Self, Failure> {
        let read = |name| Operand::read(file, name, asked.layout);
        Ok(Self {
            q: read("q")?,
            k: read("k")?,
            v: read("v")?,
            embeddings: Operand::position_embeddings(file, "position_embeddings")?,
            bias: Operand::read_if_any(file, "bias", Order::Bhtd)?.map(|bias| bias.finite()),
        })
    }

    fn on_device(&self, asked: &Attention, gpu: &Gpu, request: &Request<View>) -> Result<Attended, Failure> {
        let [batch, tokens, heads, _] = self.q.layout.shape();
        let zeros = |channels| gpu.zeros(ElementType::F32, [batch, tokens, heads, channels]);
        let (out, lse) = (zeros(self.v.layout.shape()[3])?, zeros(1)?);
        let prepared = match asked.unfused {
            true => Unfused::new(request, &out).lse(&lse).prepare(gpu)?,
            false => Fused::new(request, &out).lse(&lse).prepare(gpu)?,
        };
        gpu.submit(|pass| prepared.record(pass))?;
        let read = |view| Ok::<Vec<f64>, Failure>(gpu.read_blocking(view)?.into_iter().map(f64::from).collect());
        Ok(Attended { out: read(&out)?, lse: read(&lse)?, gate_sum: Vec::new() })
    }

    fn write(&self, asked: &Attention, attended: Attended) -> Result<(), Failure> {
        let [batch, tokens, heads, _] = self.q.layout.shape();
        let channels = self.v.layout.shape()[3];
        let shape = match asked.layout {
            Order::Bthd => [batch, tokens, heads, channels],
            Order::Bhtd => [batch, heads, tokens, channels],
        };
        let out = in_memory_order(asked.layout.layout(shape)?, attended.out);
        let out = Floats::new(self.q.tensor.dtype, shape.to_vec(), out);
        let lse = Floats::new(Dtype::F32, vec![batch, tokens, heads], attended.lse);
        tensors::write(&asked.output, &[("out", &out), ("lse", &lse)])
    }
}
