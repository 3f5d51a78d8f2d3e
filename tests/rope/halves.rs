//! Elements of 16 bits: how they are rounded, what passes through, and that halves of one word keep apart.

use crate::case::ROTATION;
use crate::common::{Golden, Random, gpu};
use crate::raw::{Raw, bits, frequencies, may_be_stored, narrow, rank, run, widen};
use phasor::ElementType::{BF16, F16, F32};
use phasor::frequencies::{Frequencies, Plain};
use phasor::reference::rope_rotate;
use phasor::{CacheRows, Direction, ElementType, Layout, Pairing, Positions, Rope, Rotate, View};

const HALVES: [ElementType; 2] = [F16, BF16];
const PAIRINGS: [Pairing; 2] = [Pairing::Interleaved, Pairing::HalfSplit];

/// A rotation of one tensor, as the reference has it: for each element `[b, t, h, c]` what it becomes and how far off a
/// kernel may be before it stores it.
fn expected(
    values: &[f64],
    shape: [usize; 4],
    frequencies: &Frequencies,
    pairing: Pairing,
    position: impl Fn(usize, usize) -> i32,
) -> phasor::Result<Vec<(f64, f64)>> {
    let layout = Layout::contiguous(shape)?;
    let mut turned = values.to_vec();
    rope_rotate(&mut turned, layout, frequencies, pairing, 0, Direction::Forward, position)?;
    let mut slack = vec![0.0; values.len()];
    let pairs = frequencies.pairs() as u32;
    for head in (0..values.len()).step_by(shape[3]) {
        for pair in 0..pairs {
            let (first, second) = pairing.channels(pair, pairs);
            let at = [first, second].map(|channel| head + channel as usize);
            let reach = values[at[0]].abs() + values[at[1]].abs();
            at.iter().for_each(|&at| slack[at] = frequencies.attention_factor() * reach * ROTATION);
        }
    }
    Ok(turned.into_iter().zip(slack).collect())
}

/// Numbers of many sizes, none so small that f16 has only subnormal ones.
fn values(n: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..n).map(|i| random.value() * 2f32.powi(i as i32 % 15 - 4)).collect()
}

#[test]
fn what_is_stored_is_a_neighbour_of_the_exact_number() -> phasor::Result<()> {
    // The vector path, and the one for any layout.
    for (channels, rotary_dim) in [(64, 64), (32, 24), (15, 14), (7, 2)] {
        let shape = [2, 5, 3, channels];
        let frequencies = frequencies(rotary_dim, 1.25)?;
        for (pairing, element) in PAIRINGS.into_iter().flat_map(|pairing| HALVES.map(|element| (pairing, element))) {
            for from in [F32, F16, BF16] {
                let q = gpu().upload_as(from, &values(shape.iter().product(), 1), shape)?;
                let before: Vec<f64> = gpu().read_blocking(&q)?.into_iter().map(f64::from).collect();
                let out = if from == element { q.clone() } else { gpu().zeros(element, shape)? };
                let rope = Rope::new(gpu(), &frequencies, pairing)?;
                assert_eq!(run(gpu(), &rope, &Rotate::into(&q, &out).positions(Positions::Start(40)))?, 1);
                let exact = expected(&before, shape, &frequencies, pairing, |_, t| 40 + t as i32)?;
                for (i, (got, (value, slack))) in gpu().read_blocking(&out)?.into_iter().zip(exact).enumerate() {
                    let may_be = may_be_stored(element, value, slack);
                    assert!(
                        may_be.contains(&f64::from(got)),
                        "{from} to {element}, {pairing:?}, element {i}: {got} for {value}, not within {may_be:?}"
                    );
                }
            }
        }
    }
    Ok(())
}

/// At position 0 nothing turns, so that only the conversion is left. Channels as a caller gives them, out of place.
fn converted(from: &Raw, n: usize, [element, to]: [ElementType; 2], channels: usize) -> phasor::Result<Vec<u32>> {
    let shape = [1, n / channels, 1, channels];
    let q = from.view(element, Layout::contiguous(shape)?)?;
    let out = gpu().zeros(to, shape)?;
    let rope = Rope::new(gpu(), &frequencies(channels, 1.0)?, Pairing::HalfSplit)?;
    run(gpu(), &rope, &Rotate::into(&q, &out).positions(Positions::Same(0)))?;
    bits(gpu(), &out)
}

/// Channels to a head that make the vector path, and those that make the other.
const LANES: [usize; 2] = [32, 2];

#[test]
fn bf16_is_rounded_to_the_nearest_and_ties_to_even() -> phasor::Result<()> {
    let mut random = Random::new(2);
    let tie = |i: u32| (0x3f00 + i) << 16 | 0x8000;
    let edges = [f32::MAX.to_bits(), f32::MIN.to_bits(), 0x7f7f_7fff, 0x7f7f_8000, 0, 0x8000_0000, 1f32.to_bits()];
    let ties = (0..256).flat_map(|i| [tie(i) - 1, tie(i), tie(i) + 1, tie(i) | 0x8000_0000]);
    let any = (0..4096).map(|_| random.bits()).filter(|&bits| f32::from_bits(bits).is_normal());
    let mut list: Vec<u32> = edges.into_iter().chain(ties).chain(any).collect();
    list.resize(list.len().next_multiple_of(32), 1f32.to_bits());
    let raw = Raw::words(gpu(), &list)?;
    for channels in LANES {
        for (&before, got) in list.iter().zip(converted(&raw, list.len(), [F32, BF16], channels)?) {
            let nearest = u32::from(narrow(BF16, f32::from_bits(before))) << 16;
            // x + 0 * y may make a positive zero of a negative one.
            assert!(
                got == nearest || before << 1 == 0 && got << 1 == 0,
                "{before:#x} became {got:#x}, not {nearest:#x}"
            );
        }
    }
    Ok(())
}

#[test]
fn f16_keeps_what_it_can_hold_and_rounds_to_a_neighbour() -> phasor::Result<()> {
    let mut list: Vec<f32> = (0..2000).map(|i| (i as f32 * 0.377 - 300.0).exp2().clamp(1e-4, 65_504.0)).collect();
    list.extend([65_504.0, -65_504.0, 65_503.9, 1.0 / 3.0, 2049.0, 2051.0, 6.11e-5]);
    list.extend(values(1024, 3));
    list.resize(list.len().next_multiple_of(32), 1.0);
    let raw = Raw::words(gpu(), &list.iter().map(|x| x.to_bits()).collect::<Vec<_>>())?;
    for channels in LANES {
        for (&before, got) in list.iter().zip(converted(&raw, list.len(), [F32, F16], channels)?) {
            let may_be = may_be_stored(F16, before.into(), 0.0);
            assert!(may_be.contains(&f32::from_bits(got).into()), "{before} became {}", f32::from_bits(got));
        }
    }
    Ok(())
}

/// Every finite number of 16 bits comes out of a conversion as itself, or as zero where it is subnormal.
#[test]
fn every_number_of_16_bits_is_read_and_written_exactly() -> phasor::Result<()> {
    for element in HALVES {
        let finite: Vec<u16> = (0..=u16::MAX).filter(|&half| widen(element, half).is_finite()).collect();
        let raw = Raw::halves(gpu(), &finite)?;
        let normal = if element == F16 { half::f16::MIN_POSITIVE.to_f32() } else { f32::MIN_POSITIVE };
        for (to, channels) in [F32, element].into_iter().flat_map(|to| LANES.map(|channels| (to, channels))) {
            for (&half, got) in finite.iter().zip(converted(&raw, finite.len(), [element, to], channels)?) {
                let (value, got) = (widen(element, half), f32::from_bits(got));
                let flushed = value.abs() < normal && got == 0.0;
                assert!(got == value || flushed, "{element} to {to}: {half:#x} is {value}, not {got}");
            }
        }
    }
    Ok(())
}

/// What does not turn is copied to the bit: subnormal numbers, infinities, NaNs with whatever they carry.
#[test]
fn channels_that_do_not_turn_keep_every_bit() -> phasor::Result<()> {
    // 256 channels of a head pass, in 256 heads every pattern of 16 bits once.
    for (rotary_dim, first) in [(8, 0), (8, 256), (8, 100), (2, 0), (6, 13)] {
        let channels = 256 + rotary_dim;
        let turning = first..first + rotary_dim;
        let shape = [2, 32, 4, channels];
        let cache = [2, 33, 4, channels];
        let layout = Layout::contiguous(shape)?;
        let rope = Rope::new(gpu(), &frequencies(rotary_dim, 1.0)?, Pairing::HalfSplit)?.from_channel(first);
        let rows = CacheRows::StartPerRow(gpu().upload_positions(&[1], [1, 1])?);
        for element in HALVES {
            let mut pattern = 0..=u16::MAX;
            let list: Vec<u16> = (0..layout.elements())
                .map(|i| if turning.contains(&(i % channels)) { narrow(element, 1.0) } else { pattern.next().unwrap() })
                .collect();
            let n = list.len();
            let zeros = |n: usize| Raw::halves(gpu(), &vec![0; n]);
            let whole = Raw::halves(gpu(), &list)?;
            let q = whole.view(element, layout)?;
            let (alone, queries, keys, stored) = (zeros(n)?, zeros(n)?, zeros(n)?, zeros(n / 32 * 33)?);
            let arena = Raw::halves(gpu(), &[list.clone(), vec![0; n]].concat())?;
            run(gpu(), &rope, &Rotate::into(&q, &alone.view(element, layout)?))?;
            let both = Rotate::into(&q, &queries.view(element, layout)?).and_into(&q, &keys.view(element, layout)?);
            assert_eq!(run(gpu(), &rope, &both)?, 1);
            run(
                gpu(),
                &rope,
                &Rotate::into_cache(&q, &stored.view(element, Layout::contiguous(cache)?)?, rows.clone()),
            )?;
            let behind = arena.view(element, layout.offset_by(n)?)?;
            run(gpu(), &rope, &Rotate::into(&arena.view(element, layout)?, &behind))?;
            run(gpu(), &rope, &Rotate::in_place(&q))?;
            let row = 4 * channels;
            let kept: Vec<u16> = stored.read_halves()?.chunks(33 * row).flat_map(|b| b[row..].to_vec()).collect();
            for (way, got) in [
                ("in place", whole.read_halves()?),
                ("q to another buffer", alone.read_halves()?),
                ("q beside k", queries.read_halves()?),
                ("k", keys.read_halves()?),
                ("within a buffer", arena.read_halves()?[n..].to_vec()),
                ("to a cache", kept),
            ] {
                let passing = |i: &usize| !turning.contains(&(i % channels));
                let changed: Vec<_> = (0..n).filter(passing).filter(|&i| got[i] != list[i]).collect();
                let first = changed.first().map(|&i| format!("{:#06x} became {:#06x}", list[i], got[i]));
                assert!(
                    changed.is_empty(),
                    "{element} {way}, {turning:?} turning: {} changed, {first:?}",
                    changed.len()
                );
            }
        }
    }
    Ok(())
}

/// The same of 32 bits: sizes, signs and payloads of every kind.
#[test]
fn channels_of_f32_that_do_not_turn_keep_every_bit() -> phasor::Result<()> {
    let mut random = Random::new(5);
    for (channels, rotary_dim) in [(64, 8), (63, 6)] {
        let shape = [1, 16, 2, channels];
        let list: Vec<u32> = (0..shape.iter().product::<usize>())
            .map(|i| match i % channels {
                channel if channel < rotary_dim => 1f32.to_bits(),
                channel if channel % 3 == 0 => 0x7f80_0000 | random.bits(),
                _ => random.bits(),
            })
            .collect();
        let q = Raw::words(gpu(), &list)?.view(F32, Layout::contiguous(shape)?)?;
        let out = gpu().zeros(F32, shape)?;
        run(gpu(), &Rope::new(gpu(), &frequencies(rotary_dim, 1.0)?, Pairing::Interleaved)?, &Rotate::into(&q, &out))?;
        for (i, (got, before)) in bits(gpu(), &out)?.into_iter().zip(list).enumerate() {
            assert!(i % channels < rotary_dim || got == before, "element {i}: {before:#x} became {got:#x}");
        }
    }
    Ok(())
}

/// Queries in the lower half of each word, keys in the upper half: in one dispatch if both are of one type.
#[test]
fn queries_and_keys_may_share_every_word() -> phasor::Result<()> {
    let shape = [2, 7, 3, 10];
    let woven = |offset| Layout::strided(shape, [420, 60, 20, 2], offset);
    let frequencies = frequencies(8, 1.25)?;
    let mut random = Random::new(6);
    for pairing in PAIRINGS {
        let rope = Rope::new(gpu(), &frequencies, pairing)?.from_channel(1);
        for (elements, dispatches) in [([F16, F16], 1), ([BF16, BF16], 1), ([F16, BF16], 2), ([BF16, F16], 2)] {
            // Whatever does not turn may be anything, margins of a word and a half included.
            let mut before: Vec<u16> = (0..3 + 840 + 3).map(|_| random.bits() as u16).collect();
            let layouts = [woven(3)?, woven(4)?];
            for (layout, element) in layouts.into_iter().zip(elements) {
                let turning = layout.places().enumerate().filter(|(i, _)| (1..9).contains(&(i % 10)));
                turning.for_each(|(_, place)| before[place] = narrow(element, random.value()));
            }
            let raw = Raw::halves(gpu(), &before)?;
            let [q, k] = [0, 1].map(|i| raw.view(elements[i], layouts[i]));
            let rotate = Rotate::in_place(&q?).and_in_place(&k?).positions(Positions::Start(90));
            assert_eq!(run(gpu(), &rope, &rotate)?, dispatches, "{elements:?}");
            let after = raw.read_halves()?;
            let mut turned = vec![false; before.len()];
            for (layout, element) in layouts.into_iter().zip(elements) {
                let within: Vec<usize> = layout
                    .places()
                    .enumerate()
                    .filter(|(i, _)| (1..9).contains(&(i % 10)))
                    .map(|(_, place)| place)
                    .collect();
                let values: Vec<f64> = within.iter().map(|&place| widen(element, before[place]).into()).collect();
                let exact = expected(&values, [2, 7, 3, 8], &frequencies, pairing, |_, t| 90 + t as i32)?;
                for (&place, (value, slack)) in within.iter().zip(exact) {
                    turned[place] = true;
                    let may_be = may_be_stored(element, value, slack);
                    let got = widen(element, after[place]);
                    assert!(may_be.contains(&got.into()), "{elements:?}, half {place}: {got} for {value}");
                }
            }
            let strays: Vec<_> = (0..before.len()).filter(|&i| !turned[i] && after[i] != before[i]).collect();
            assert!(strays.is_empty(), "{elements:?}: halves {strays:?} were touched");
        }
    }
    Ok(())
}

/// Queries and keys each of a type of their own, before and after: the same as each of them alone, to the bit.
#[test]
fn queries_and_keys_of_different_types() -> phasor::Result<()> {
    let types = [F32, F16, BF16];
    for (channels, rotary_dim) in [(32, 32), (9, 6)] {
        let rope = Rope::new(gpu(), &frequencies(rotary_dim, 1.25)?, Pairing::Interleaved)?;
        let shapes = [[2, 3, 4, channels], [2, 3, 2, channels]];
        let upload = |element, i: usize| gpu().upload_as(element, &values(shapes[i].iter().product(), 9), shapes[i]);
        let at = |rotate: Rotate| rotate.positions(Positions::Start(7));
        let alone = |element, to, i: usize| -> phasor::Result<Vec<u32>> {
            let out = gpu().zeros(to, shapes[i])?;
            run(gpu(), &rope, &at(Rotate::into(&upload(element, i)?, &out)))?;
            bits(gpu(), &out)
        };
        for (q_type, k_type) in types.into_iter().flat_map(|q| types.map(|k| (q, k))).filter(|(q, k)| q != k) {
            let (q, k) = (upload(q_type, 0)?, upload(k_type, 1)?);
            for (q_to, k_to) in [(F32, F32), (F16, BF16), (k_type, q_type), (q_type, k_type)] {
                let (q_out, k_out) = (gpu().zeros(q_to, shapes[0])?, gpu().zeros(k_to, shapes[1])?);
                assert_eq!(run(gpu(), &rope, &at(Rotate::into(&q, &q_out).and_into(&k, &k_out)))?, 1);
                let said = format!("q {q_type} to {q_to}, k {k_type} to {k_to}, {channels} channels");
                assert_eq!(bits(gpu(), &q_out)?, alone(q_type, q_to, 0)?, "q of {said}");
                assert_eq!(bits(gpu(), &k_out)?, alone(k_type, k_to, 1)?, "k of {said}");
            }
            assert_eq!(run(gpu(), &rope, &at(Rotate::in_place(&q).and_in_place(&k)))?, 1);
            assert_eq!(bits(gpu(), &q)?, alone(q_type, q_type, 0)?, "q {q_type} in place beside {k_type}");
            assert_eq!(bits(gpu(), &k)?, alone(k_type, k_type, 1)?, "k {k_type} in place beside {q_type}");
        }
    }
    Ok(())
}

/// The article's rotation of 16-bit numbers in PyTorch: the same bits, or their neighbours.
#[test]
fn the_article_s_rotations_of_16_bits() -> phasor::Result<()> {
    use safetensors::Dtype;
    let golden = Golden::article();
    let rope = Rope::new(gpu(), &Plain::new(1e4).frequencies(32)?, Pairing::Interleaved)?;
    for (name, element, dtype) in [("float16", F16, Dtype::F16), ("bfloat16", BF16, Dtype::BF16)] {
        let tensor = |part: &str| golden.halves(&format!("rotate.{name}.{part}"), dtype);
        let views = ["q", "k"].map(|part| {
            let (shape, halves) = tensor(part);
            let raw = Raw::halves(gpu(), &halves)?;
            let layout = Layout::contiguous(shape.try_into().expect("four axes"))?;
            phasor::Result::Ok((raw.view(element, layout)?, raw))
        });
        let [q, k] = views;
        let ((q, q_raw), (k, k_raw)) = (q?, k?);
        assert_eq!(run(gpu(), &rope, &Rotate::in_place(&q).and_in_place(&k))?, 1);
        for (part, raw) in [("q_out", q_raw), ("k_out", k_raw)] {
            let (_, theirs) = tensor(part);
            let ours = raw.read_halves()?;
            assert_eq!(ours.len(), theirs.len());
            for (i, (&ours, &theirs)) in ours.iter().zip(&theirs).enumerate() {
                let units = (rank(ours) - rank(theirs)).abs();
                let [a, b] = [ours, theirs].map(|half| widen(element, half));
                assert!(units <= 1, "{name}.{part}, element {i}: {a}, {units} units from {b}");
            }
        }
    }
    Ok(())
}

/// A view of words' halves may end in the middle of a word, and begin there.
#[test]
fn a_tensor_may_be_a_single_half_of_its_words() -> phasor::Result<()> {
    let rope = Rope::new(gpu(), &Frequencies::new(vec![std::f64::consts::PI], 1.0)?, Pairing::HalfSplit)?;
    for element in HALVES {
        let one = narrow(element, 1.0);
        let raw = Raw::halves(gpu(), &[0xffff, one, one, 0x7f01])?;
        let q: View = raw.view(element, Layout::contiguous([1, 1, 1, 2])?.offset_by(1)?)?;
        run(gpu(), &rope, &Rotate::in_place(&q).positions(Positions::Start(1)))?;
        let [first, a, b, last] = raw.read_halves()?[..] else { unreachable!("four halves") };
        assert_eq!([first, last], [0xffff, 0x7f01]);
        assert!([a, b].iter().all(|&half| (widen(element, half) + 1.0).abs() <= 1.0 / 256.0), "half a turn");
    }
    Ok(())
}
