//! The article's contextual encoding, run in PyTorch in f32.

use crate::case::{Both, assert_near, wide};
use crate::common::{Golden, gpu};
use phasor::{ContextualBias, ElementType, reference};

struct Case {
    name: String,
    query: Both,
    logits: Both,
    position_embeddings: Both,
    out: Both,
}

fn cases() -> Vec<Case> {
    let golden = Golden::article();
    let names: Vec<_> =
        golden.names("cope.").into_iter().filter_map(|name| name.strip_suffix(".out").map(str::to_string)).collect();
    assert_eq!(names.len(), 5, "{names:?}");
    names
        .into_iter()
        .map(|name| Case {
            query: Both::heads_first(&golden, &format!("{name}.query")),
            logits: Both::heads_first(&golden, &format!("{name}.logits")),
            position_embeddings: Both::matrix(&golden, &format!("{name}.position_embeddings")),
            out: Both::heads_first(&golden, &format!("{name}.out")),
            name,
        })
        .collect()
}

impl Case {
    /// What the other program's f32 may be off by: it sums up to `keys` gates one after the other, each sum rounded to
    /// 2^-24 of at most `keys`, and a position's error is worth the largest step of `q·E`; its products of `channels`
    /// terms are rounded likewise.
    fn tolerance(&self) -> f64 {
        let [.., channels] = self.query.layout.shape();
        let [.., keys] = self.logits.layout.shape();
        let z = reference::cope_logits(&self.query.tensor(), &self.position_embeddings.tensor()).unwrap();
        let largest = z.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        let unit = 2f64.powi(-24);
        let position = (keys * keys) as f64 * unit;
        2.0 * largest * position.min(1.0) + largest * channels as f64 * unit
    }
}

#[test]
fn the_reference_is_the_articles_forward() {
    for case in cases() {
        let Case { query, logits, position_embeddings, out, .. } = &case;
        let got = reference::cope(&query.tensor(), &logits.tensor(), &position_embeddings.tensor()).unwrap();
        assert_near(&case.name, &got, &out.in_order(), case.tolerance());
    }
}

#[test]
fn the_kernels_are_the_articles_forward() {
    for case in cases() {
        let Case { query, logits, position_embeddings, out, .. } = &case;
        let output = gpu().zeros(ElementType::F32, out.layout.shape()).unwrap();
        let bias = ContextualBias::new(&query.view(), &logits.view(), &position_embeddings.view(), &output);
        let prepared = bias.prepare(gpu()).unwrap();
        gpu().submit(|pass| prepared.record(pass)).unwrap();
        let got = wide(&gpu().read_blocking(&output).unwrap());
        assert_near(&case.name, &got, &out.in_order(), case.tolerance());
        let exact = reference::cope(&query.tensor(), &logits.tensor(), &position_embeddings.tensor()).unwrap();
        // Against f64 there is only the kernels' own error: sums of gates that do not grow with the number of keys.
        assert_near(&case.name, &got, &exact, 2e-5);
    }
}
