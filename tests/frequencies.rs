//! The scaling laws against known numbers, and what they must refuse.

use phasor::frequencies::{Frequencies, Law, Linear, Magnitude, NtkAware, Plain, Yarn, mscale};
use phasor::{Error, Result};
use safetensors::SafeTensors;

#[track_caller]
fn assert_close(got: f64, expected: f64, relative: f64) {
    assert!((got - expected).abs() <= relative * expected.abs(), "{got} instead of {expected}");
}

#[track_caller]
fn assert_all_close(got: &[f64], expected: &[f64], relative: f64) {
    assert_eq!(got.len(), expected.len());
    for (&got, &expected) in got.iter().zip(expected) {
        assert_close(got, expected, relative);
    }
}

/// The error must be about this field.
#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: Result<T>, field: &str) {
    match result {
        Err(Error::Setting { field: named, .. }) => assert_eq!(named, field),
        other => panic!("{field} should have been refused: {other:?}"),
    }
}

/// Computed in float64 from the formulas, printed with 9 digits.
#[test]
fn worked_examples() -> Result<()> {
    let yarn = Yarn::new(1e4, 16.0, 2048).frequencies(16)?;
    let expected = [1.0, 0.316227766, 0.1, 0.0242111883, 0.0053125, 9.3880118e-4, 6.25e-5, 1.97642354e-5];
    assert_all_close(yarn.inv_freq(), &expected, 5e-9);
    let ntk = NtkAware::new(1e4, 16.0).frequencies(16)?;
    let expected =
        [1.0, 0.212805506, 0.0452861832, 0.00963714912, 0.00205083839, 4.364297e-4, 9.28746431e-5, 1.97642354e-5];
    assert_all_close(ntk.inv_freq(), &expected, 5e-8);
    Ok(())
}

#[test]
fn ntk_keeps_the_first_pair_and_divides_the_last() -> Result<()> {
    for (dim, alpha) in [(4, 2.0), (16, 16.0), (128, 1000.0)] {
        let (plain, ntk) = (Plain::new(1e4).frequencies(dim)?, NtkAware::new(1e4, alpha).frequencies(dim)?);
        let last = plain.pairs() - 1;
        assert_eq!(ntk.inv_freq()[0], 1.0);
        assert_close(ntk.inv_freq()[last], plain.inv_freq()[last] / alpha, 1e-14);
    }
    Ok(())
}

#[test]
fn a_factor_of_one_is_plain() -> Result<()> {
    let plain = Plain::new(5e5).frequencies(128)?;
    assert_eq!(Linear::new(5e5, 1.0).frequencies(128)?, plain);
    assert_eq!(NtkAware::new(5e5, 1.0).frequencies(128)?, plain);
    let yarn = Yarn::new(5e5, 1.0, 8192).frequencies(128)?;
    assert_all_close(yarn.inv_freq(), plain.inv_freq(), 1e-15);
    assert_eq!(yarn.attention_factor(), 1.0);
    Ok(())
}

#[test]
fn yarn_has_four_spellings_of_its_magnitude() -> Result<()> {
    let with = |magnitude| Yarn { magnitude, ..Yarn::new(1e4, 40.0, 4096) };
    let ln = 40f64.ln();
    for (magnitude, expected) in [
        (Magnitude::Default, 0.1 * ln + 1.0),
        (Magnitude::Explicit(1.5), 1.5),
        (Magnitude::Multiplier(0.707), 0.707 * (0.1 * ln + 1.0)),
        (Magnitude::MscalePair { mscale: 1.0, mscale_all_dim: 1.0 }, 1.0),
        (Magnitude::MscalePair { mscale: 0.707, mscale_all_dim: 1.0 }, (0.0707 * ln + 1.0) / (0.1 * ln + 1.0)),
    ] {
        assert_close(with(magnitude).frequencies(64)?.attention_factor(), expected, 1e-15);
    }
    // DeepSeek V3 and V2-Lite.
    for (weight, expected) in [(1.0, 1.87385), (0.707, 1.58963)] {
        assert_close(mscale(40.0, weight).powi(2), expected, 3e-6);
    }
    // Nothing is extended: no magnitude either.
    assert_eq!(Yarn::new(1e4, 0.5, 4096).attention_factor()?, 1.0);
    Ok(())
}

#[test]
fn yarn_without_truncation_ramps_between_fractions_of_a_pair() -> Result<()> {
    let law = Yarn { truncate: false, ..Yarn::new(150_000.0, 32.0, 4096) };
    let (rope, plain) = (law.frequencies(64)?, Plain::new(150_000.0).frequencies(64)?);
    // The ramp of gpt-oss, as printed by vLLM: 8.0928 to 17.3980.
    for (i, (w, p)) in rope.inv_freq().iter().zip(plain.inv_freq()).enumerate() {
        let ramp = ((i as f64 - 8.0928) / (17.3980 - 8.0928)).clamp(0.0, 1.0);
        assert_close(*w, p * (1.0 - ramp + ramp / 32.0), 1e-4);
    }
    assert!(rope.inv_freq()[8] == plain.inv_freq()[8] && rope.inv_freq()[9] < plain.inv_freq()[9]);
    Ok(())
}

#[test]
fn yarn_with_a_ramp_of_no_width_is_a_step() -> Result<()> {
    // 6 tokens are less than one turn of the fastest pair: both ends of the ramp are pair 0.
    let (rope, plain) = (Yarn::new(1e4, 16.0, 6).frequencies(16)?, Plain::new(1e4).frequencies(16)?);
    assert_eq!(rope.inv_freq()[0], plain.inv_freq()[0]);
    for (w, p) in rope.inv_freq().iter().zip(plain.inv_freq()).skip(1) {
        assert_close(*w, p / 16.0, 1e-15);
    }
    Ok(())
}

#[test]
fn no_extrapolation_is_linear() -> Result<()> {
    let yarn = Yarn { extrapolation_factor: 0.0, ..Yarn::new(1e4, 8.0, 4096) };
    let linear = Linear::new(1e4, 8.0).frequencies(128)?;
    assert_all_close(yarn.frequencies(128)?.inv_freq(), linear.inv_freq(), 1e-15);
    Ok(())
}

#[test]
fn impossible_settings_are_refused_by_name() {
    for base in [1.0, 0.5, 0.0, -1e4, f64::NAN, f64::INFINITY] {
        assert_refused(Plain::new(base).frequencies(64), "base");
        assert_refused(Linear::new(base, 2.0).frequencies(64), "base");
        assert_refused(NtkAware::new(base, 2.0).frequencies(64), "base");
        assert_refused(Yarn::new(base, 2.0, 4096).frequencies(64), "base");
    }
    for dim in [0, 1, 63, 1 << 20, u32::MAX] {
        assert_refused(Plain::new(1e4).frequencies(dim), "rotary_dim");
        assert_refused(Linear::new(1e4, 2.0).frequencies(dim), "rotary_dim");
        assert_refused(NtkAware::new(1e4, 2.0).frequencies(dim), "rotary_dim");
        assert_refused(Yarn::new(1e4, 2.0, 4096).frequencies(dim), "rotary_dim");
    }
    assert_refused(NtkAware::new(1e4, 2.0).frequencies(2), "rotary_dim");
    for factor in [0.0, -2.0, f64::NAN, f64::INFINITY] {
        assert_refused(Linear::new(1e4, factor).frequencies(64), "factor");
        assert_refused(NtkAware::new(1e4, factor).frequencies(64), "alpha");
        assert_refused(Yarn::new(1e4, factor, 4096).frequencies(64), "factor");
    }
    // The scaled base overflows, or falls to 1 and below.
    assert_refused(NtkAware::new(1e4, 1e300).frequencies(4), "alpha");
    assert_refused(NtkAware::new(1e4, 1e-5).frequencies(64), "alpha");

    let yarn = || Yarn::new(1e4, 16.0, 4096);
    let refuse = |law: Yarn, field| assert_refused(law.frequencies(128), field);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refuse(Yarn { beta_fast: bad, ..yarn() }, "beta_fast");
        refuse(Yarn { beta_slow: bad, ..yarn() }, "beta_slow");
        refuse(Yarn { magnitude: Magnitude::Explicit(bad), ..yarn() }, "attention_factor");
        refuse(Yarn { magnitude: Magnitude::Multiplier(bad), ..yarn() }, "attn_factor");
        let pair = |mscale, mscale_all_dim| Magnitude::MscalePair { mscale, mscale_all_dim };
        refuse(Yarn { magnitude: pair(bad, 1.0), ..yarn() }, "mscale");
        refuse(Yarn { magnitude: pair(1.0, bad), ..yarn() }, "mscale_all_dim");
    }
    refuse(Yarn { beta_fast: 1.0, beta_slow: 32.0, ..yarn() }, "beta_fast");
    refuse(Yarn { extrapolation_factor: 1.5, ..yarn() }, "extrapolation_factor");
    for context in [0, 1, 3] {
        refuse(Yarn { original_max_position_embeddings: context, ..yarn() }, "original_max_position_embeddings");
    }

    assert_refused(Frequencies::new(vec![1.0, f64::NAN], 1.0), "inv_freq[1]");
    assert_refused(Frequencies::new(vec![1.0], 0.0), "attention_factor");
}

#[test]
fn a_law_is_what_it_was_made_from() -> Result<()> {
    let laws: [(Law, &str); 4] = [
        (Plain::new(1e4).into(), "default"),
        (Linear::new(1e4, 2.0).into(), "linear"),
        (NtkAware::new(1e4, 2.0).into(), "ntk_alpha"),
        (Yarn::new(1e4, 2.0, 4096).into(), "yarn"),
    ];
    for (law, name) in laws {
        assert_eq!(law.name(), name);
        assert_eq!(law.frequencies(64)?.rotary_dim(), 64);
        assert_eq!(law.frequencies(64)?.turns().len(), 32);
    }
    Ok(())
}

/// Tables of the article's own functions, computed in float32: cosine and sine for positions from 0 on.
#[test]
fn tables_of_the_article() -> Result<()> {
    let file = SafeTensors::deserialize(include_bytes!("data/article.safetensors")).unwrap();
    let damped = |law: Yarn, by| Yarn { magnitude: Magnitude::Multiplier(by), ..law };
    let cases: [(&str, Law); 6] = [
        ("linear_d64_t96", Plain::new(1e4).into()),
        ("linear_d128_t33_b500000", Plain::new(5e5).into()),
        ("ntk_d64_t96_a16", NtkAware::new(1e4, 16.0).into()),
        ("ntk_d128_t33_a4", NtkAware::new(1e4, 4.0).into()),
        ("yarn_d64_o2048_s16_t96", damped(Yarn::new(1e4, 16.0, 2048), 0.707).into()),
        ("yarn_d128_o4096_s8_t33_m1", damped(Yarn::new(1e4, 8.0, 4096), 1.0).into()),
    ];
    for (name, law) in cases {
        let pairs = file.tensor(&format!("tables.{name}.cos")).unwrap().shape()[1];
        let rope = law.frequencies(2 * pairs as u32)?;
        for (part, of) in [("cos", f64::cos as fn(f64) -> f64), ("sin", f64::sin)] {
            let table = f32s(file.tensor(&format!("tables.{name}.{part}")).unwrap().data());
            for (at, &expected) in table.iter().enumerate() {
                let angle = (at / pairs) as f64 * rope.inv_freq()[at % pairs];
                // float32: each of power, reciprocal, blend and product errs by a few 2^-24 of the angle, and the
                // function's own value by 2^-24 or so of one.
                let tolerance = rope.attention_factor() * (angle * 8.0 + 2.0) * 2f64.powi(-24);
                let off = (of(angle) * rope.attention_factor() - f64::from(expected)).abs();
                assert!(off <= tolerance, "{name}.{part}[{at}]: off by {off:e}, may be {tolerance:e}");
            }
        }
    }
    Ok(())
}

fn f32s(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}
