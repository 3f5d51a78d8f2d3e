// Cosine and sine made in place, from the turns of shared/turn.wgsl: no table, no limit of positions.
// Turns come by fours, the last four padded with pairs that do not turn.
@group(0) @binding(1) var<storage, read> turns: array<LaneU>; // (ceil(pairs / 4), {whole, rest as bits, axis}, 4)

const LANES_IN_FOUR = 4u / LANE_PAIRS;

fn turn_ix(lane: u32) -> u32 {
    return lane / LANES_IN_FOUR * 3u * LANES_IN_FOUR + lane % LANES_IN_FOUR;
}

fn cos_sin(lane: u32, lanes: u32, position: LaneI) -> CosSin {
    let ix = turn_ix(lane);
    return turn_cos_sin(position, turns[ix], bitcast<Lane>(turns[ix + LANES_IN_FOUR]));
}

// Which of a token's positions each pair of a lane turns by.
fn axes_of(lane: u32) -> LaneU {
    return turns[turn_ix(lane) + 2u * LANES_IN_FOUR];
}
