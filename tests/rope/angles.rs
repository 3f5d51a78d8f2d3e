//! Cosines and sines at far positions: within 2e-7 of float64, table or no table, on any driver.

use crate::case::ANGLE;
use crate::common::gpu;
use phasor::frequencies::{Frequencies, Plain, Yarn};
use phasor::reference::rope_table;
use phasor::{Pairing, Positions, Rope, Rotate};

const TO_2_24: [i32; 15] =
    [0, 1, 2, 3, 4095, 4096, 131_071, 1_000_000, (1 << 24) - 1, -1, -2, -4095, -131_071, -1_000_000, -((1 << 24) - 1)];
const EXTREMES: [i32; 7] = [1 << 24, 1 << 30, 1_234_567_890, i32::MAX, i32::MIN, i32::MIN + 1, -1_234_567_890];

/// `cos` and `sin` of `position * w`, with the product exact: what it loses in f64 is turned by afterwards.
fn exact(position: i32, w: f64) -> (f64, f64) {
    let angle = f64::from(position) * w;
    let lost = f64::from(position).mul_add(w, -angle);
    let ((sin, cos), (sin_lost, cos_lost)) = (angle.sin_cos(), lost.sin_cos());
    (cos * cos_lost - sin * sin_lost, sin * cos_lost + cos * sin_lost)
}

/// 2e-7 to position 2^24. Beyond, the kernels' product of position and a frequency's last bits loses some: it counts
/// 2^-32 turns, at most half a position of them, and f32 rounds the position, the last bits and the product.
fn bound(position: i32) -> f64 {
    let unit = std::f64::consts::TAU / f64::from(1u32 << 16).powi(2);
    let beyond = if position.unsigned_abs() < 1 << 24 { 0.0 } else { f64::from(position.unsigned_abs()) };
    ANGLE + 3.0 * (0.5 * beyond) / f64::from(1 << 24) * unit
}

/// Laws of several bases and dims, and frequencies that no law gives but a caller may.
fn encodings() -> phasor::Result<Vec<(String, Frequencies)>> {
    let mut list = Vec::new();
    for base in [1e4, 5e5, 1e6, 1e7] {
        for dim in [2, 6, 64, 128, 256] {
            list.push((format!("base {base}, dim {dim}"), Plain::new(base).frequencies(dim)?));
        }
    }
    list.push(("yarn".into(), Yarn::new(1e4, 16.0, 2048).frequencies(128)?));
    let odd = vec![0.0, -0.333, 6.3, 100.25, 12_345.678, std::f64::consts::TAU, 1e-9, std::f64::consts::FRAC_PI_2];
    list.push(("a caller's own".into(), Frequencies::new(odd, 0.75)?));
    Ok(list)
}

fn assert_exact(name: &str, frequencies: &Frequencies, positions: &[i32], cos: &[f32], sin: &[f32]) {
    let factor = frequencies.attention_factor();
    assert_eq!(cos.len(), positions.len() * frequencies.pairs());
    assert_eq!(sin.len(), cos.len());
    let all = positions.iter().flat_map(|&m| frequencies.inv_freq().iter().map(move |&w| (m, w)));
    for ((m, w), (&cos, &sin)) in all.zip(cos.iter().zip(sin)) {
        let (c, s) = exact(m, w);
        let off = (f64::from(cos) - factor * c).abs().max((f64::from(sin) - factor * s).abs());
        assert!(off <= factor * bound(m), "{name}, position {m}, frequency {w}: off by {off}");
    }
}

/// A table's two halves, as it is laid out: `[rows, {cos, sin}, pairs]`.
fn halves(table: &[f32], pairs: usize) -> (Vec<f32>, Vec<f32>) {
    let rows = || table.chunks(2 * pairs);
    (rows().flat_map(|row| &row[..pairs]).copied().collect(), rows().flat_map(|row| &row[pairs..]).copied().collect())
}

#[test]
fn the_reference_is_exact() -> phasor::Result<()> {
    for (name, frequencies) in encodings()? {
        let factor = frequencies.attention_factor();
        let (cos, sin) = rope_table(&frequencies, TO_2_24);
        let all = TO_2_24.iter().flat_map(|&m| frequencies.inv_freq().iter().map(move |&w| (m, w)));
        for ((m, w), (cos, sin)) in all.zip(cos.iter().zip(&sin)) {
            let (c, s) = exact(m, w);
            // Half a unit in the last place of the angle, and a few of the result.
            let tolerance = factor * ((f64::from(m) * w).abs() * f64::EPSILON / 2.0 + 4.0 * f64::EPSILON);
            assert!((cos - factor * c).abs() <= tolerance, "{name}, position {m}, frequency {w}");
            assert!((sin - factor * s).abs() <= tolerance, "{name}, position {m}, frequency {w}");
        }
    }
    Ok(())
}

#[test]
fn a_table_of_given_positions_is_exact() -> phasor::Result<()> {
    let positions: Vec<i32> = TO_2_24.into_iter().chain(EXTREMES).collect();
    let buffer = gpu().upload_positions(&positions, [1, positions.len()])?;
    for (name, frequencies) in encodings()? {
        let table = Rope::new(gpu(), &frequencies, Pairing::HalfSplit)?.table_for(&buffer)?;
        gpu().submit(|pass| table.record(pass))?;
        let (cos, sin) = halves(&gpu().read_blocking(table.view())?, frequencies.pairs());
        assert_exact(&name, &frequencies, &positions, &cos, &sin);
    }
    Ok(())
}

#[test]
fn a_table_of_a_range_is_exact() -> phasor::Result<()> {
    let (_, frequencies) = encodings()?.swap_remove(3);
    let rope = Rope::new(gpu(), &frequencies, Pairing::HalfSplit)?;
    for start in [0, 4090, 131_000, (1 << 24) - 70, -35, -(1 << 24) + 1, i32::MAX - 69, i32::MIN] {
        let table = rope.table(start, 70)?;
        assert_eq!(table.view().shape(), [70, 2, 1, frequencies.pairs()]);
        gpu().submit(|pass| table.record(pass))?;
        let (cos, sin) = halves(&gpu().read_blocking(table.view())?, frequencies.pairs());
        let positions: Vec<i32> = (0..70).map(|i| start + i).collect();
        assert_exact(&format!("from {start}"), &frequencies, &positions, &cos, &sin);
    }
    Ok(())
}

/// A pair (1, 0) becomes (cos, sin), exactly: the rotation's own products add nothing.
#[test]
fn a_rotation_without_a_table_is_exact() -> phasor::Result<()> {
    let positions: Vec<i32> = TO_2_24.into_iter().chain(EXTREMES).collect();
    let tokens = positions.len();
    let buffer = gpu().upload_positions(&positions, [1, tokens])?;
    for (name, frequencies) in encodings()? {
        let dim = frequencies.rotary_dim();
        let pairs = frequencies.pairs();
        for pairing in [Pairing::Interleaved, Pairing::HalfSplit] {
            let channels = |i: usize| pairing.channels(i as u32, pairs as u32);
            let mut head = vec![0.0; dim];
            (0..pairs).for_each(|i| head[channels(i).0 as usize] = 1.0);
            let view = gpu().upload(&head.repeat(tokens), [1, tokens, 1, dim])?;
            let rope = Rope::new(gpu(), &frequencies, pairing)?;
            let rotate = Rotate::in_place(&view).positions(Positions::PerToken(buffer.clone()));
            let rotation = rope.prepare(&rotate)?;
            gpu().submit(|pass| rotation.record(pass))?;
            let values = gpu().read_blocking(&view)?;
            let rows = || values.chunks(dim).flat_map(|row| (0..pairs).map(move |i| (row, channels(i))));
            let cos: Vec<f32> = rows().map(|(row, (first, _))| row[first as usize]).collect();
            let sin: Vec<f32> = rows().map(|(row, (_, second))| row[second as usize]).collect();
            assert_exact(&format!("{name}, {pairing:?}"), &frequencies, &positions, &cos, &sin);
        }
    }
    Ok(())
}

/// As in proportional encodings: a pair of frequency 0 stays as it is, to the bit.
#[test]
fn a_frequency_of_zero_turns_nothing() -> phasor::Result<()> {
    let rope = Rope::new(gpu(), &Frequencies::new(vec![0.0; 8], 1.0)?, Pairing::HalfSplit)?;
    let values = crate::common::Random::new(11).values(16);
    let view = gpu().upload(&values, [1, 1, 1, 16])?;
    let rotation = rope.prepare(&Rotate::in_place(&view).positions(Positions::Start(i32::MIN)))?;
    gpu().submit(|pass| rotation.record(pass))?;
    assert_eq!(gpu().read_blocking(&view)?, values);
    Ok(())
}
