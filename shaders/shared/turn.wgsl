// Exact angles: cosine and sine of `position * frequency` for any i32 position, without sin, cos or pow.
//
// The host gives each frequency as the fraction of a turn that a token adds: `whole` in units of 2^-32 turns, and
// `rest`, the signed remainder in the same unit. Wrapping u32 arithmetic then leaves the angle's fraction of a turn,
// however many full turns the position has made. (../../src/frequencies/turn.rs makes the pairs.)

struct CosSin {
    cos: Lane,
    sin: Lane,
}

fn turn_cos_sin(position: i32, whole: LaneU, rest: Lane) -> CosSin {
    // |rest| <= 1/2 and |position| <= 2^31: the product is within i32, and right to one unit for positions below 2^24.
    let phase = LaneU(bitcast<u32>(position)) * whole + bitcast<LaneU>(LaneI(f32(position) * rest));
    // The nearest quarter turn, and what is left of the angle: at most an eighth of a turn to either side.
    let quarter = (phase + LaneU(0x20000000u)) >> LaneU(30u);
    let x = Lane(bitcast<LaneI>(phase - (quarter << LaneU(30u)))) * 1.4629180792671596e-9; // 2 pi / 2^32
    let z = x * x;
    // Minimax on |x| <= pi/4. Every term is small beside the last one added, so that no order of operations and no
    // fused multiply-add moves the result by more than a unit in the last place.
    let s = x + x * z * (-0.16666654611 + z * (8.3321608736e-3 + z * -1.9515295891e-4));
    let c = 1.0 + z * (-0.5 + z * (4.166664568298827e-2 + z * (-1.388731625493765e-3 + z * 2.443315711809948e-5)));
    // Turn (c, s) by the quarters: swapped in odd ones, cosine negative in 1 and 2, sine negative in 2 and 3.
    let odd = (quarter & LaneU(1u)) == LaneU(1u);
    let cos_sign = ((quarter + LaneU(1u)) & LaneU(2u)) << LaneU(30u);
    let sin_sign = (quarter & LaneU(2u)) << LaneU(30u);
    return CosSin(
        bitcast<Lane>(bitcast<LaneU>(select(c, s, odd)) ^ cos_sign),
        bitcast<Lane>(bitcast<LaneU>(select(s, c, odd)) ^ sin_sign),
    );
}
