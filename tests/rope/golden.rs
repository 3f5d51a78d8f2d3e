//! Against values that other programs computed in float32.

use crate::case::{ANGLE, ROTATION};
use crate::common::{Golden, gpu};
use phasor::frequencies::{Frequencies, Law, Magnitude, NtkAware, Plain, Yarn};
use phasor::{Pairing, Rope, Rotate};

/// Half a unit in the last place of 1.
const HALF_ULP: f64 = 1.0 / (1 << 24) as f64;

/// How far a float32 program's own cosine may be off at position `m`, for a pair of frequency `w`.
///
/// It rounds the exponent of `base^-x`, which moves the frequency by `|ln w|` half units in the last place. Power,
/// reciprocal and product with the position, and for a scaled base or YaRN's ramp at most eight operations more, round
/// by half a unit or one each. The cosine itself is good to one unit.
fn angle_of_f32(m: usize, w: f64) -> f64 {
    m as f64 * w * HALF_ULP * (w.ln().abs() + 12.0) + 2.0 * HALF_ULP
}

/// The article's magnitude: a number of its own times `0.1 ln s + 1`.
fn article_yarn(base: f64, factor: f64, original: u32, multiplier: f64) -> Law {
    Yarn { magnitude: Magnitude::Multiplier(multiplier), ..Yarn::new(base, factor, original) }.into()
}

#[test]
fn the_article_s_tables() -> phasor::Result<()> {
    let golden = Golden::article();
    // What the article calls linear has no factor: it is the plain encoding.
    let tables: [(&str, u32, Law); 6] = [
        ("linear_d64_t96", 64, Plain::new(1e4).into()),
        ("linear_d128_t33_b500000", 128, Plain::new(5e5).into()),
        ("ntk_d64_t96_a16", 64, NtkAware::new(1e4, 16.0).into()),
        ("ntk_d128_t33_a4", 128, NtkAware::new(1e4, 4.0).into()),
        ("yarn_d64_o2048_s16_t96", 64, article_yarn(1e4, 16.0, 2048, 0.707)),
        ("yarn_d128_o4096_s8_t33_m1", 128, article_yarn(1e4, 8.0, 4096, 1.0)),
    ];
    assert_eq!(golden.names("tables.").len(), 2 * tables.len(), "each table of the file is compared");
    for (name, dim, law) in tables {
        let frequencies = law.frequencies(dim)?;
        let (shape, cos) = golden.tensor(&format!("tables.{name}.cos"));
        let (_, sin) = golden.tensor(&format!("tables.{name}.sin"));
        let (rows, pairs) = (shape[0], frequencies.pairs());
        assert_eq!(shape[1], pairs, "{name}");
        let table = Rope::new(gpu(), &frequencies, Pairing::Interleaved)?.table(0, rows)?;
        gpu().submit(|pass| table.record(pass))?;
        let got = gpu().read_blocking(table.view())?;
        for (m, row) in got.chunks(2 * pairs).enumerate() {
            for (i, &w) in frequencies.inv_freq().iter().enumerate() {
                let tolerance = frequencies.attention_factor() * (angle_of_f32(m, w) + ANGLE);
                for (got, expected) in [(row[i], cos[m * pairs + i]), (row[pairs + i], sin[m * pairs + i])] {
                    let off = f64::from(got - expected).abs();
                    assert!(off <= tolerance, "{name}, row {m}, pair {i}: {got} instead of {expected}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn the_article_s_rotations() -> phasor::Result<()> {
    let golden = Golden::article();
    for (name, law) in [("linear", Plain::new(1e4).into()), ("yarn", article_yarn(1e4, 16.0, 2048, 0.707))] {
        let frequencies = law.frequencies(32)?;
        let tensor = |part: &str| golden.tensor(&format!("rotate.{name}.{part}"));
        let [q, k] = ["q", "k"].map(|part| (tensor(part), tensor(&format!("{part}_out"))));
        compare(name, &frequencies, Pairing::Interleaved, q, k)?;
    }
    Ok(())
}

#[test]
fn smollm2_s_queries_and_keys() -> phasor::Result<()> {
    let golden = Golden::smollm2();
    let frequencies = Plain::new(1e5).frequencies(64)?;
    for layer in ["layer0", "layer15"] {
        let tensor = |part: &str| golden.tensor(&format!("{layer}.{part}"));
        let [q, k] = ["q", "k"].map(|part| (tensor(part), tensor(&format!("{part}_rotated"))));
        compare(layer, &frequencies, Pairing::HalfSplit, q, k)?;
    }
    Ok(())
}

/// A tensor as a file holds it.
type Tensor = (Vec<usize>, Vec<f32>);

/// Queries and keys, each before and after, rotated with a table and without.
fn compare(
    name: &str,
    frequencies: &Frequencies,
    pairing: Pairing,
    q: (Tensor, Tensor),
    k: (Tensor, Tensor),
) -> phasor::Result<()> {
    let rope = Rope::new(gpu(), frequencies, pairing)?;
    let shape = |tensor: &Tensor| <[usize; 4]>::try_from(tensor.0.as_slice()).expect("four axes");
    let tokens = shape(&q.0)[1];
    let table = rope.table(0, tokens)?;
    gpu().submit(|pass| table.record(pass))?;
    for with_table in [false, true] {
        let views = [gpu().upload(&q.0.1, shape(&q.0))?, gpu().upload(&k.0.1, shape(&k.0))?];
        let rotate = Rotate::in_place(&views[0]).and_in_place(&views[1]);
        let rotation = rope.prepare(&if with_table { rotate.from_table(&table) } else { rotate })?;
        assert_eq!(rotation.dispatches(), 1);
        gpu().submit(|pass| rotation.record(pass))?;
        for ((part, view), (before, after)) in ["q", "k"].iter().zip(&views).zip([&q, &k]) {
            let got = gpu().read_blocking(view)?;
            let pairs = frequencies.pairs();
            let channels = shape(before)[3];
            let heads = shape(before)[2];
            assert_eq!(got.len(), after.1.len());
            for head in 0..got.len() / channels {
                let token = head / heads % tokens;
                for (i, &w) in frequencies.inv_freq().iter().enumerate() {
                    let (first, second) = pairing.channels(i as u32, pairs as u32);
                    let at = [first, second].map(|channel| head * channels + channel as usize);
                    let reach: f64 = at.iter().map(|&at| f64::from(before.1[at].abs())).sum();
                    // The other program rounds its products, sums, cosines and magnitude as ours does.
                    let relative = angle_of_f32(token, w) + ROTATION + 4.0 * HALF_ULP;
                    let tolerance = frequencies.attention_factor() * reach * relative;
                    for at in at {
                        let off = f64::from(got[at] - after.1[at]).abs();
                        assert!(
                            off <= tolerance,
                            "{name}.{part}, element {at}: {} instead of {}",
                            got[at],
                            after.1[at]
                        );
                    }
                }
            }
        }
    }
    Ok(())
}
