//! The article's whole attention module, its attention made by the f64 reference and by the unfused pipeline, and a real
//! model's attention through the reference.

use crate::case::{Both, assert_near};
use crate::common::Golden;
use crate::request::{Cope, Request};
use phasor::attention::Attention;
use phasor::reference::{Attended, Tensor, attention, projection};
use phasor::{Layout, Pairing};

/// Turns by the cosines and sines that the file holds, `[positions, pairs]`.
fn rotate(x: &mut [f64], layout: Layout, cos: &Both, sin: &Both) {
    let [batch, tokens, heads, channels] = layout.shape();
    let pairs = channels / 2;
    for (b, t, h) in (0..batch).flat_map(|b| (0..tokens).flat_map(move |t| (0..heads).map(move |h| (b, t, h)))) {
        for pair in 0..pairs {
            let (first, second) = Pairing::Interleaved.channels(pair as u32, pairs as u32);
            let (i, j) = (layout.at([b, t, h, first as usize]), layout.at([b, t, h, second as usize]));
            let (c, s) = (cos.wide[t * pairs + pair], sin.wide[t * pairs + pair]);
            (x[i], x[j]) = (x[i] * c - x[j] * s, x[i] * s + x[j] * c);
        }
    }
}

/// Projections, rotation, contextual attention and the output's projection.
fn module(golden: &Golden, name: &str, [heads, kv_heads]: [usize; 2], attend: fn(&Request) -> Attended) -> Vec<f64> {
    let (shape, _) = golden.tensor(&format!("{name}.inputs"));
    let (batch, tokens, width) = (shape[0], shape[1], shape[2]);
    let channels = width / heads;
    let inputs = Both::shaped(golden, &format!("{name}.inputs"), [batch, tokens, 1, width]);
    let linear = |x: &Tensor<'_>, layer: &str| {
        let weight = Both::matrix(golden, &format!("{name}.weights.{layer}.weight"));
        let bias = format!("{name}.weights.{layer}.bias");
        let bias = golden.names(&bias).first().map(|bias| Both::matrix(golden, bias));
        projection(x, &weight.tensor(), bias.as_ref().map(Both::tensor).as_ref()).unwrap()
    };
    let q_layout = Layout::contiguous([batch, tokens, heads, channels]).unwrap();
    let kv_layout = Layout::contiguous([batch, tokens, kv_heads, channels]).unwrap();
    let [mut q, mut k, v] = ["query_proj", "key_proj", "value_proj"].map(|layer| linear(&inputs.tensor(), layer));
    let [cos, sin] = ["cos", "sin"].map(|table| Both::matrix(golden, &format!("{name}.{table}")));
    rotate(&mut q, q_layout, &cos, &sin);
    rotate(&mut k, kv_layout, &cos, &sin);
    let embeddings = Both::matrix(golden, &format!("{name}.weights.cope.position_embeddings"));
    let [q, k, v] = [(q, q_layout), (k, kv_layout), (v, kv_layout)]
        .map(|(x, layout)| Both::new(x.into_iter().map(|x| x as f32).collect(), layout));
    let request = Request { causal: true, cope: Some(Cope::new(embeddings)), ..Request::new(q, k, v) };
    linear(&Tensor::new(&attend(&request).out, q_layout).unwrap(), "output_proj")
}

#[test]
fn the_articles_module() {
    let golden = Golden::article();
    for (name, heads) in [("mha_yarn", [4, 4]), ("gqa", [6, 2]), ("mqa_long", [4, 1])] {
        let name = format!("attention.{name}");
        let (_, out) = golden.tensor(&format!("{name}.out"));
        let out: Vec<_> = out.into_iter().map(f64::from).collect();
        // Numbers of about 1, rounded to f32 in a dozen operations with sums of up to 70 terms.
        for attend in [Request::reference, Request::unfused] {
            assert_near(&name, &module(&golden, &name, heads, attend), &out, 5e-6);
        }
    }
}

#[test]
fn the_reference_is_smollm2s_attention() {
    let golden = Golden::smollm2();
    for layer in ["layer0", "layer15"] {
        let get = |name: &str, heads| Both::shaped(&golden, &format!("{layer}.{name}"), [1, 49, heads, 64]);
        let (q, k, v) = (get("q_rotated", 9), get("k_rotated", 3), get("v", 3));
        let expected = get("attention", 9);
        let attended = attention(&Attention::new(&q.tensor(), &k.tensor(), &v.tensor()).causal()).unwrap();
        assert_near(layer, &attended.out, &expected.wide, 2e-5);
    }
}
