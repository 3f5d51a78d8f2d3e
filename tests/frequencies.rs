//! The scaling laws against known numbers, and what they must refuse.

#[path = "common/refused.rs"]
mod refused;

use phasor::frequencies::{
    Axes, Axial, AxialSeries, ClippedRope, Divided, DynamicNtk, FixedNtk, Frequencies, Law, Linear, Llama3, LongRope,
    LongRopePolicy, Magnitude, NtkAware, Plain, Proportional, QueryScale, Yarn, mscale,
};
use phasor::{ErrorKind, Result};
use refused::expect_refused;
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
fn assert_refused<T>(result: Result<T>, field: &str) {
    expect_refused(result, ErrorKind::Setting, field);
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
fn yarn_clamps_its_ramp_beyond_the_last_pair() -> Result<()> {
    // A context so long that even the slowest of 8 pairs turns more than once: the ramp runs from pair 5 to pair 9.
    let (rope, plain) = (Yarn::new(1e4, 16.0, 131_072).frequencies(16)?, Plain::new(1e4).frequencies(16)?);
    for (i, ramp) in [(5, 0.0), (6, 0.25), (7, 0.5)] {
        assert_close(rope.inv_freq()[i], plain.inv_freq()[i] * (1.0 - ramp + ramp / 16.0), 1e-14);
    }
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

    for bad in [f64::NAN, f64::INFINITY, -f64::INFINITY, 1.1e30, -1.1e30] {
        assert_refused(Frequencies::new(vec![1.0, bad], 1.0), "inv_freq[1]");
    }
    // As exact as f64 holds them, the largest still have a fraction of a turn that turns something.
    let largest = Frequencies::new(vec![1e30, -1e30], 1.0).unwrap().turns();
    assert!(largest.iter().all(|turn| turn.phase(1) != 0), "{largest:?}");
    for factor in [0.0, -1.0, 1e-19, 1e19, f64::INFINITY, f64::NAN] {
        assert_refused(Frequencies::new(vec![1.0], factor), "attention_factor");
    }
}

#[test]
fn dynamic_ntk_grows_beyond_the_trained_context() -> Result<()> {
    let law = DynamicNtk::new(1e4, 2.0, 4096);
    let plain = Plain::new(1e4).frequencies(128)?;
    for seq_len in [0, 1, 4095, 4096] {
        assert_eq!(law.frequencies(128, seq_len)?, plain);
    }
    // alpha is 2 * 4 - 1 = 7 at four times the context.
    assert_eq!(law.frequencies(128, 16384)?, NtkAware::new(1e4, 7.0).frequencies(128)?);
    assert_close(law.frequencies(128, 16384)?.inv_freq()[1], 72195.86f64.powf(-2.0 / 128.0), 1e-8);
    assert!(law.frequencies(128, 4097)?.inv_freq()[1] < plain.inv_freq()[1]);
    Ok(())
}

#[test]
fn fixed_ntk_slows_every_pair() -> Result<()> {
    let (plain, fixed) = (Plain::new(1e4).frequencies(16)?, FixedNtk::new(1e4, 16.0).frequencies(16)?);
    assert_close(fixed.inv_freq()[0], std::f64::consts::FRAC_1_SQRT_2, 1e-15);
    assert_close(fixed.inv_freq()[7], plain.inv_freq()[7] / 16.0, 1e-14);
    for (i, (w, p)) in fixed.inv_freq().iter().zip(plain.inv_freq()).enumerate() {
        assert_close(*w, p * 16f64.powf(-2.0 * (i as f64 + 1.0) / 16.0), 1e-14);
    }
    // Spread otherwise: exp(-a (i + 1)^b), a = ln s / (d/2)^b.
    let spread = FixedNtk { mixed_b: 0.625, ..FixedNtk::new(1e4, 16.0) }.frequencies(16)?;
    let a = 16f64.ln() / 8f64.powf(0.625);
    assert_close(spread.inv_freq()[2], plain.inv_freq()[2] * (-a * 3f64.powf(0.625)).exp(), 1e-14);
    Ok(())
}

#[test]
fn llama_3_has_three_bands() -> Result<()> {
    let (plain, llama) = (Plain::new(5e5).frequencies(128)?, Llama3::new(5e5, 8.0, 8192).frequencies(128)?);
    for (i, (w, p)) in llama.inv_freq().iter().zip(plain.inv_freq()).enumerate() {
        match i {
            0..=28 => assert_eq!(w, p, "pair {i}"),
            29..=34 => assert!(w < p && *w > p / 8.0, "pair {i}"),
            _ => assert_eq!(*w, p / 8.0, "pair {i}"),
        }
    }
    let g = (8192.0 * plain.inv_freq()[30] / std::f64::consts::TAU - 1.0) / 3.0;
    assert_close(llama.inv_freq()[30], plain.inv_freq()[30] * ((1.0 - g) / 8.0 + g), 1e-14);
    Ok(())
}

#[test]
fn longrope_chooses_by_the_whole_sequence() -> Result<()> {
    let law = LongRope::new(1e4, vec![1.0; 8], vec![4.0; 8], 4096, 32.0);
    let (short, long) = (law.frequencies(16, 4096)?, law.frequencies(16, 4097)?);
    assert_eq!((short.inv_freq()[0], long.inv_freq()[0]), (1.0, 0.25));
    assert_close(short.attention_factor(), 1.190238, 1e-6);
    assert_eq!(short.attention_factor(), long.attention_factor());
    let fixed = |policy, seq_len| LongRope { policy, ..law.clone() }.frequencies(16, seq_len);
    assert_eq!(fixed(LongRopePolicy::FixedLong, 1)?, long);
    assert_eq!(fixed(LongRopePolicy::FixedShort, 100_000)?, short);
    let stated = LongRope { attention_factor: Some(1.5), ..law.clone() };
    assert_eq!(stated.frequencies(16, 1)?.attention_factor(), 1.5);
    let each = LongRope { short_mscale: Some(1.25), ..stated };
    assert_eq!(each.frequencies(16, 1)?.attention_factor(), 1.25);
    assert_eq!(each.frequencies(16, 5000)?.attention_factor(), 1.5);
    assert_eq!(LongRope { factor: 1.0, ..law }.frequencies(16, 1)?.attention_factor(), 1.0);
    Ok(())
}

#[test]
fn proportional_is_not_partial() -> Result<()> {
    let (plain, law) = (Plain::new(1e6).frequencies(512)?, Proportional::new(1e6, 0.25).frequencies(512)?);
    assert_eq!(law.inv_freq()[..64], plain.inv_freq()[..64]);
    assert!(law.inv_freq()[64..].iter().all(|&w| w == 0.0));
    // Cut down: 0.3 * 20 / 2 is 3.
    let odd = Proportional { factor: 2.0, ..Proportional::new(1e6, 0.3) }.frequencies(20)?;
    assert_eq!(odd.inv_freq().iter().filter(|&&w| w > 0.0).count(), 3);
    assert_eq!(odd.inv_freq()[0], 0.5);
    Ok(())
}

#[test]
fn axial_serves_two_axes() -> Result<()> {
    let half = Plain::new(1e4).frequencies(32)?;
    let same = Axial::new(1e4).frequencies(64)?;
    assert_all_close(&same.inv_freq()[..16], half.inv_freq(), 1e-15);
    assert_all_close(&same.inv_freq()[16..], half.inv_freq(), 1e-15);
    let whole = Plain::new(1e4).frequencies(64)?;
    let alternating = Axial { series: AxialSeries::Alternating, ..Axial::new(1e4) }.frequencies(64)?;
    assert_eq!((alternating.inv_freq()[1], alternating.inv_freq()[17]), (whole.inv_freq()[2], whole.inv_freq()[3]));
    assert_eq!(Axes::axial(32)?.axis_of_pair()[15..17], [0, 1]);
    Ok(())
}

#[test]
fn divided_and_clipped_lie_on_any_law() -> Result<()> {
    let yarn = Yarn::new(1e4, 16.0, 4096);
    let divided = Divided::new(yarn.clone(), vec![1.0, 2.0, 1e30, f64::INFINITY]).frequencies(8, 0)?;
    let whole = yarn.frequencies(8)?;
    assert_eq!(divided.inv_freq(), [whole.inv_freq()[0], whole.inv_freq()[1] / 2.0, 0.0, 0.0]);
    assert_eq!(divided.attention_factor(), whole.attention_factor());

    let (plain, clipped) = (Plain::new(1e4).frequencies(128)?, ClippedRope::new(Plain::new(1e4)).frequencies(128, 0)?);
    assert_eq!(clipped.inv_freq()[..45], plain.inv_freq()[..45], "the clipping begins with a factor of 1");
    assert_eq!(clipped.inv_freq()[63], 0.0);
    assert_close(
        clipped.inv_freq()[53],
        plain.inv_freq()[53] * 0.5 * (1.0 + (std::f64::consts::PI * 9.0 / 19.0).cos()),
        1e-14,
    );
    let one = ClippedRope { pairs: 1, ..ClippedRope::new(Plain::new(1e4)) }.frequencies(128, 0)?;
    assert_eq!((one.inv_freq()[62], one.inv_freq()[63]), (plain.inv_freq()[62], 0.0));
    let hard = ClippedRope { hard: true, ..ClippedRope::new(Plain::new(1e4)) }.frequencies(128, 0)?;
    assert_eq!(hard.inv_freq().iter().filter(|&&w| w == 0.0).count(), 20);
    Ok(())
}

#[test]
fn the_other_laws_refuse_by_name_too() {
    let lists = || LongRope::new(1e4, vec![1.0; 8], vec![4.0; 8], 4096, 32.0);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_refused(FixedNtk::new(1e4, bad).frequencies(64), "factor");
        assert_refused(FixedNtk { mixed_b: bad, ..FixedNtk::new(1e4, 2.0) }.frequencies(64), "mixed_b");
        assert_refused(DynamicNtk::new(1e4, bad, 4096).frequencies(64, 1), "factor");
        assert_refused(Llama3::new(1e4, bad, 4096).frequencies(64), "factor");
        let llama = Llama3::new(1e4, 8.0, 4096);
        assert_refused(Llama3 { low_freq_factor: bad, ..llama.clone() }.frequencies(64), "low_freq_factor");
        assert_refused(Llama3 { high_freq_factor: bad, ..llama }.frequencies(64), "high_freq_factor");
        assert_refused(Proportional { factor: bad, ..Proportional::new(1e4, 0.5) }.frequencies(64), "factor");
        assert_refused(LongRope { factor: bad, ..lists() }.frequencies(16, 1), "factor");
        assert_refused(LongRope { attention_factor: Some(bad), ..lists() }.frequencies(16, 1), "attention_factor");
        assert_refused(LongRope { short_mscale: Some(bad), ..lists() }.frequencies(16, 1), "short_mscale");
        assert_refused(LongRope { long_mscale: Some(bad), ..lists() }.frequencies(16, 9999), "long_mscale");
        assert_refused(LongRope { long_factor: vec![bad; 8], ..lists() }.frequencies(16, 1), "long_factor[0]");
    }
    for bad in [0.0, -1.0, f64::NAN] {
        assert_refused(Divided::new(Plain::new(1e4), vec![1.0, bad]).frequencies(4, 0), "divisors[1]");
    }
    assert_refused(DynamicNtk::new(1e4, 2.0, 0).frequencies(64, 1), "max_position_embeddings");
    assert_refused(DynamicNtk::new(1e4, 2.0, 4096).frequencies(2, 1), "rotary_dim");
    assert_refused(DynamicNtk::new(1e300, 1e9, 1).frequencies(4, u32::MAX), "factor");
    let llama =
        |low_freq_factor, high_freq_factor| Llama3 { low_freq_factor, high_freq_factor, ..Llama3::new(1e4, 8.0, 4096) };
    assert_refused(llama(4.0, 4.0).frequencies(64), "high_freq_factor");
    assert_refused(llama(4.0, 1.0).frequencies(64), "high_freq_factor");
    assert_refused(Llama3::new(1e4, 8.0, 0).frequencies(64), "original_max_position_embeddings");
    assert_refused(lists().frequencies(32, 1), "short_factor");
    assert_refused(LongRope { long_factor: vec![], ..lists() }.frequencies(16, 1), "long_factor");
    for context in [0, 1] {
        let law = LongRope { original_max_position_embeddings: context, ..lists() };
        assert_refused(law.frequencies(16, 1), "original_max_position_embeddings");
    }
    for share in [-0.1, 1.1, f64::NAN] {
        assert_refused(Proportional::new(1e4, share).frequencies(64), "partial_rotary_factor");
    }
    assert_refused(Axial::new(1e4).frequencies(66), "rotary_dim");
    assert_refused(Divided::new(Plain::new(1e4), vec![1.0]).frequencies(4, 0), "divisors");
    assert_refused(ClippedRope::new(Plain::new(1e4)).frequencies(32, 0), "pairs");
}

#[test]
fn axes_share_out_the_pairs() -> Result<()> {
    let counts = |axes: &Axes| {
        (0..axes.count()).map(|axis| axes.axis_of_pair().iter().filter(|&&of| of == axis).count()).collect::<Vec<_>>()
    };
    assert_eq!(counts(&Axes::one(64)), [64]);
    assert_eq!(counts(&Axes::sections(&[16, 24, 24], 64)?), [16, 24, 24]);
    assert_eq!(counts(&Axes::sections(&[16, 16, 16, 16], 64)?), [16; 4]);
    assert_eq!(counts(&Axes::interleaved(&[24, 20, 20], 64)?), [24, 20, 20]);
    assert_eq!(counts(&Axes::interleaved(&[11, 11, 10], 32)?), [11, 11, 10]);
    assert_eq!(counts(&Axes::interleaved(&[30, 20, 14], 64)?), [30, 20, 14]);
    assert_eq!(counts(&Axes::interleaved_glm(&[8, 12, 12], 32)?), [8, 12, 12]);
    assert_eq!(counts(&Axes::ernie(&[22, 22, 20], 64)?), [20, 22, 22]);
    // transformers and ggml differ in two pairs of Qwen3-VL.
    let (theirs, ggml) = (Axes::interleaved(&[24, 20, 20], 64)?, Axes::interleaved_ggml(&[24, 20, 20, 0], 64)?);
    let differing: Vec<_> = (0..64).filter(|&i| theirs.axis_of_pair()[i] != ggml.axis_of_pair()[i]).collect();
    assert_eq!(differing, [61, 62]);
    // After eight rounds time has had its share, and the others go on by turns.
    let glm = Axes::interleaved_glm(&[8, 12, 12], 32)?;
    assert_eq!(glm.axis_of_pair()[21..], [0, 1, 2, 1, 1, 2, 1, 1, 2, 2, 2]);

    assert_refused(Axes::sections(&[16, 24, 24], 63), "mrope_section");
    assert_refused(Axes::sections(&[u32::MAX, u32::MAX], 64), "mrope_section");
    assert_refused(Axes::sections(&[1; 300], 300), "mrope_section");
    assert_refused(Axes::interleaved(&[32, 32], 64), "mrope_section");
    assert_refused(Axes::interleaved(&[16, 16, 16, 16], 64), "mrope_section");
    assert_refused(Axes::new(vec![0, 1, 2], 2), "axis_of_pair[2]");
    assert_refused(Axes::axial(7), "pairs");
    Ok(())
}

#[test]
fn query_scales() {
    let llama = QueryScale { scale: 0.1, window: 8192, shift: 1 };
    assert_eq!((llama.at(0), llama.at(8190)), (1.0, 1.0));
    assert_close(llama.at(8191), 1.0 + 0.1 * 2f64.ln(), 1e-15);
    let mistral = QueryScale { shift: 0, ..llama };
    assert_eq!(mistral.at(8191), 1.0);
    assert_close(mistral.at(16384), 1.0 + 0.1 * 3f64.ln(), 1e-15);
    assert_eq!((mistral.at(-5), QueryScale { window: 0, ..mistral }.at(i32::MIN)), (1.0, 1.0));
}

#[test]
fn a_law_is_what_it_was_made_from() -> Result<()> {
    let laws: [(Law, &str); 12] = [
        (Plain::new(1e4).into(), "default"),
        (Linear::new(1e4, 2.0).into(), "linear"),
        (NtkAware::new(1e4, 2.0).into(), "ntk_alpha"),
        (FixedNtk::new(1e4, 2.0).into(), "ntk"),
        (DynamicNtk::new(1e4, 2.0, 4096).into(), "dynamic"),
        (Yarn::new(1e4, 2.0, 4096).into(), "yarn"),
        (LongRope::new(1e4, vec![1.0; 32], vec![2.0; 32], 4096, 2.0).into(), "longrope"),
        (Llama3::new(1e4, 2.0, 4096).into(), "llama3"),
        (Proportional::new(1e4, 0.5).into(), "proportional"),
        (Axial::new(1e4).into(), "axial"),
        (Divided::new(LongRope::new(1e4, vec![1.0; 32], vec![2.0; 32], 4096, 2.0), vec![1.0; 32]).into(), "longrope"),
        (ClippedRope::new(Linear::new(1e4, 2.0)).into(), "linear"),
    ];
    for (law, name) in laws {
        assert_eq!(law.name(), name);
        assert_eq!(law.frequencies(64)?.rotary_dim(), 64);
        assert_eq!(law.frequencies(64)?.turns().len(), 32);
        assert_eq!(law.frequencies_at(64, 8192)? != law.frequencies(64)?, law.depends_on_length(), "{name}");
        assert_eq!(law.depends_on_length(), matches!(name, "dynamic" | "longrope"));
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
