// Cosines and sines of a range of positions, or of the positions in a buffer, one row for each.
//
//     table[row, {cos, sin}, i] = attention_factor * cosine and sine of position(row) * inv_freq[i]
//
// Exact to about 1e-7 at any position (shared/turn.wgsl). Twin: src/reference/rope_table.rs.

override WG_X: u32 = 16u;
override WG_Y: u32 = 4u;
// Whether pairs turn by different ones of a row's positions.
override AXES: bool = false;

struct Params {
    rows: u32,
    pairs: u32,
    start: i32,      // position(row) = positions[row] + start + row * start_step
    start_step: i32,
    scale: f32,      // the attention factor
    first_row: u32,  // where this dispatch begins
    position: u32,       // where row 0's position lies,
    position_row: u32,   // how far the next row's is from it
    position_axis: u32,  // and the next axis'
    pad0: u32,
    pad1: u32,
    pad2: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(3) var<storage, read_write> table: array<Lane>; // (rows, {cos, sin}, pairs)

@compute @workgroup_size(WG_X, WG_Y, 1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let lanes = params.pairs / LANE_PAIRS;
    let lane = id.x;
    let row = id.y + params.first_row;
    if (lane >= lanes || row >= params.rows) {
        return;
    }
    var position_ix = LaneU(params.position + row * params.position_row);
    if (AXES) {
        position_ix += axes_of(lane) * params.position_axis;
    }
    let position = positions_at(position_ix) + LaneI(params.start + i32(row) * params.start_step);
    let angle = cos_sin(lane, lanes, position);
    table[row * 2u * lanes + lane] = angle.cos * params.scale;
    table[row * 2u * lanes + lanes + lane] = angle.sin * params.scale;
}
