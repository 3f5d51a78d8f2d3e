//! Keys that are rotated already and are to stand elsewhere, or under another law.

use crate::case::ROTATION;
use crate::common::{Random, gpu};
use crate::raw::{frequencies, positions, run};
use phasor::ElementType::{BF16, F16, F32};
use phasor::frequencies::{Axes, DynamicNtk, Frequencies, LongRope, Yarn};
use phasor::{ElementType, Layout, Pairing, Positions, Rope, Rotate, View};

const SHAPE: [usize; 4] = [3, 5, 2, 32];
const PAIRINGS: [Pairing; 2] = [Pairing::Interleaved, Pairing::HalfSplit];

fn keys(element: ElementType) -> phasor::Result<View> {
    gpu().upload_as(element, &Random::new(41).values(SHAPE.iter().product()), SHAPE)
}

fn turn(rope: &Rope, keys: &View, at: Positions) -> phasor::Result<()> {
    run(gpu(), rope, &Rotate::in_place(keys).positions(at)).map(|_| ())
}

/// A law with a magnitude that would be seen if it came twice, or not at all.
fn yarn() -> phasor::Result<Frequencies> {
    let law = Yarn::new(1e4, 16.0, 2048).frequencies(32)?;
    assert!(law.attention_factor() > 1.2);
    Ok(law)
}

/// Two rotations of channels of at most 2 come to the same as one, whose magnitude is given.
///
/// With `r = |x0| + |x1|` of at most 4, each rotation is off by ROTATION times the magnitude times the sum of what it is
/// given. After the first that sum is at most sqrt(2) times r, and the second turns the first one's errors of two
/// channels into one of at most sqrt(2) times as much. The single rotation adds its own.
///
/// What is stored in between and at the end, by both, is a neighbour of what was computed.
fn assert_alike(said: &str, twice: &View, once: &View, magnitude: f64) -> phasor::Result<()> {
    let unit = match once.element() {
        F16 => 1.0 / 1024.0,
        BF16 => 1.0 / 128.0,
        _ => 0.0,
    };
    let root = 2f64.sqrt();
    let tolerance = 4.0 * magnitude * ((1.0 + 2.0 * root) * ROTATION + (2.0 + root) * unit);
    for (i, (a, b)) in gpu().read_blocking(twice)?.iter().zip(gpu().read_blocking(once)?).enumerate() {
        assert!(f64::from((a - b).abs()) <= tolerance, "{said}, element {i}: {a} instead of {b}");
    }
    Ok(())
}

#[test]
fn a_shift_is_a_rotation_at_the_place_where_it_leads() -> phasor::Result<()> {
    let law = yarn()?;
    for pairing in PAIRINGS {
        let rope = Rope::new(gpu(), &law, pairing)?;
        let moving = rope.clone().without_attention_factor();
        for element in [F32, F16, BF16] {
            for by in [1, -1, 128, -128, -4096, 1 << 20, 0] {
                let (moved, there) = (keys(element)?, keys(element)?);
                turn(&rope, &moved, Positions::Start(9000))?;
                turn(&moving, &moved, Positions::Same(by))?;
                turn(&rope, &there, Positions::Start(9000 + by))?;
                assert_alike(&format!("{pairing:?}, {element}, by {by}"), &moved, &there, law.attention_factor())?;
            }
        }
    }
    Ok(())
}

/// From a table of one row, which the moving encoding made.
#[test]
fn a_shift_may_come_from_a_table() -> phasor::Result<()> {
    let law = yarn()?;
    let rope = Rope::new(gpu(), &law, Pairing::HalfSplit)?;
    let moving = rope.clone().without_attention_factor();
    let table = moving.table(-700, 1)?;
    gpu().submit(|pass| table.record(pass))?;
    let (moved, there) = (keys(F32)?, keys(F32)?);
    turn(&rope, &moved, Positions::Start(1000))?;
    run(gpu(), &moving, &Rotate::in_place(&moved).positions(Positions::Same(-700)).from_table(&table))?;
    turn(&rope, &there, Positions::Start(300))?;
    assert_alike("from a table", &moved, &there, law.attention_factor())
}

/// Each row of the batch by its own distance: one forward, one back, one not at all.
#[test]
fn rows_may_move_by_distances_of_their_own() -> phasor::Result<()> {
    let law = yarn()?;
    let by = [-512, 0, 77];
    for pairing in PAIRINGS {
        let rope = Rope::new(gpu(), &law, pairing)?;
        let moving = rope.clone().without_attention_factor();
        let (moved, there) = (keys(F32)?, keys(F32)?);
        turn(&rope, &moved, Positions::Start(600))?;
        turn(&moving, &moved, Positions::PerToken(gpu().upload_positions(&by, [3, 1])?))?;
        let starts = gpu().upload_positions(&by.map(|by| 600 + by), [3, 1])?;
        turn(&rope, &there, Positions::StartPerRow(starts))?;
        assert_alike(&format!("{pairing:?}"), &moved, &there, law.attention_factor())?;
    }
    Ok(())
}

/// The oldest tokens of a cache are dropped: those behind them move, all others keep every bit.
#[test]
fn part_of_a_cache_may_move() -> phasor::Result<()> {
    let law = yarn()?;
    let rope = Rope::new(gpu(), &law, Pairing::HalfSplit)?;
    for element in [F32, F16, BF16] {
        let (cache, there) = (keys(element)?, keys(element)?);
        turn(&rope, &cache, Positions::Start(0))?;
        let kept = [cache.tokens(0..2)?, cache.tokens(4..5)?];
        let before = [gpu().read_blocking(&kept[0])?, gpu().read_blocking(&kept[1])?];
        turn(&rope.clone().without_attention_factor(), &cache.tokens(2..4)?, Positions::Same(-2))?;
        assert_eq!([gpu().read_blocking(&kept[0])?, gpu().read_blocking(&kept[1])?], before, "{element}");
        turn(&rope, &there.tokens(2..4)?, Positions::Start(0))?;
        let said = format!("{element}");
        assert_alike(&said, &cache.tokens(2..4)?, &there.tokens(2..4)?, law.attention_factor())?;
    }
    Ok(())
}

/// A picture's tokens move along each axis by another distance.
#[test]
fn tokens_with_several_axes_may_move() -> phasor::Result<()> {
    let law = yarn()?;
    let rope = Rope::new(gpu(), &law, Pairing::HalfSplit)?.with_axes(&Axes::sections(&[6, 5, 5], 16)?)?;
    let (start, by) = ([900, 40, 70], [-300, 0, 5]);
    let one = |list: [i32; 3]| positions(gpu(), Layout::contiguous([1, 1, 3, 1])?, list);
    let (moved, there) = (keys(F32)?, keys(F32)?);
    turn(&rope, &moved, Positions::StartPerRow(one(start)?))?;
    turn(&rope.clone().without_attention_factor(), &moved, Positions::PerToken(one(by)?))?;
    turn(&rope, &there, Positions::StartPerRow(one([600, 40, 75])?))?;
    assert_alike("along three axes", &moved, &there, law.attention_factor())
}

/// Pairs of laws that a sequence passes through as it grows, each with its name.
fn changes() -> phasor::Result<Vec<(&'static str, Frequencies, Frequencies)>> {
    let long_rope = LongRope {
        short_mscale: Some(1.1),
        long_mscale: Some(1.3),
        ..LongRope::new(
            1e4,
            (0..16).map(|i| 1.0 + 0.01 * f64::from(i)).collect(),
            (0..16).map(|i| 1.0 + 2.5 * f64::from(i)).collect(),
            4096,
            32.0,
        )
    };
    let dynamic = DynamicNtk::new(1e4, 4.0, 2048);
    Ok(vec![
        ("LongRoPE", long_rope.frequencies(32, 4096)?, long_rope.frequencies(32, 4097)?),
        ("dynamic NTK", dynamic.frequencies(32, 2048)?, dynamic.frequencies(32, 9000)?),
        ("dynamic NTK, grown again", dynamic.frequencies(32, 9000)?, dynamic.frequencies(32, 9001)?),
        ("to YaRN", frequencies(32, 1.0)?, yarn()?),
    ])
}

#[test]
fn keys_of_one_law_become_another_s() -> phasor::Result<()> {
    let scattered = [0, 1, 4095, 77, 2047, 3, 4096, 1000, 12, 9, 500, 60, 2, 31, 4000];
    for (name, short, long) in changes()? {
        assert_ne!(short, long, "{name}");
        for (pairing, element) in PAIRINGS.into_iter().flat_map(|pairing| [F32, F16].map(|element| (pairing, element)))
        {
            for (from, to) in [(&short, &long), (&long, &short)] {
                for per_token in [false, true] {
                    let at = || match per_token {
                        false => Positions::Start(3000),
                        true => Positions::PerToken(gpu().upload_positions(&scattered, [3, 5]).unwrap()),
                    };
                    let (changed, there) = (keys(element)?, keys(element)?);
                    turn(&Rope::new(gpu(), from, pairing)?, &changed, at())?;
                    turn(&Rope::between(gpu(), from, to, pairing)?, &changed, at())?;
                    turn(&Rope::new(gpu(), to, pairing)?, &there, at())?;
                    // The keys' magnitude between the two rotations may be the larger one.
                    let magnitude = from.attention_factor().max(to.attention_factor());
                    assert_alike(&format!("{name}, {pairing:?}, {element}"), &changed, &there, magnitude)?;
                }
            }
        }
    }
    Ok(())
}
