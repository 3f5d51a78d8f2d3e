// Exact angles: cosine and sine of `position * frequency` for any i32 position, without sin, cos or pow.
//
// The host gives each frequency as the fraction of a turn that a token adds: `whole` in units of 2^-32 turns, and
// `rest`, the signed remainder in the same unit. Wrapping u32 arithmetic then leaves the angle's fraction of a turn,
// however many full turns the position has made. (../../src/frequencies/turn.rs makes the pairs.)

struct CosSin {
    cos: Lane,
    sin: Lane,
}

fn turn_cos_sin(position: LaneI, whole: LaneU, rest: Lane) -> CosSin {
    // |rest| <= 1/2 and |position| <= 2^31: the product is within i32, and right to one unit for positions below 2^24.
    let phase = bitcast<LaneU>(position) * whole + bitcast<LaneU>(LaneI(Lane(position) * rest));
    // The nearest quarter turn, and what is left of the angle: at most an eighth of a turn to either side.
    let quarter = (phase + LaneU(0x20000000u)) >> LaneU(30u);
    let t = Lane(bitcast<LaneI>(phase - (quarter << LaneU(30u)))) * 2.3283064365386963e-10; // 2^-32, exact
    let z = t * t;
    // Minimax in turns on |t| <= 1/8: 8.5e-8 at worst, f32 rounding included. Every term is small beside the one it is
    // added to, so that no order of operations and no fused multiply-add makes it worse.
    let s = t * (6.2831855 + z * (-41.341686 + z * (81.59384 + z * -75.445656)));
    let c = 1.0 + z * (-19.739208 + z * (64.93932 + z * (-85.44714 + z * 59.34207)));
    // Turn (c, s) by the quarters: swapped in odd ones, cosine negative in 1 and 2, sine negative in 2 and 3.
    let odd = (quarter & LaneU(1u)) == LaneU(1u);
    let cos_sign = ((quarter + LaneU(1u)) & LaneU(2u)) << LaneU(30u);
    let sin_sign = (quarter & LaneU(2u)) << LaneU(30u);
    return CosSin(
        bitcast<Lane>(bitcast<LaneU>(select(c, s, odd)) ^ cos_sign),
        bitcast<Lane>(bitcast<LaneU>(select(s, c, odd)) ^ sin_sign),
    );
}
