// Cosine and sine made in place, from the turns of shared/turn.wgsl: no table, no limit of positions.
// Turns come by fours, the last four padded with pairs that do not turn.
@group(0) @binding(1) var<storage, read> turns: array<LaneU>; // (ceil(pairs / 4), {whole, rest as bits}, 4)

const LANES_IN_FOUR = 4u / LANE_PAIRS;

fn cos_sin(lane: u32, lanes: u32, position: i32) -> CosSin {
    let ix = lane / LANES_IN_FOUR * 2u * LANES_IN_FOUR + lane % LANES_IN_FOUR;
    return turn_cos_sin(position, turns[ix], bitcast<Lane>(turns[ix + LANES_IN_FOUR]));
}
