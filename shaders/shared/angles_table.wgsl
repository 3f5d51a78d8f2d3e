// Cosine and sine from a table that rope_table.wgsl made.
@group(0) @binding(1) var<storage, read> table: array<Lane>; // (rows, {cos, sin}, pairs)

fn cos_sin(lane: u32, lanes: u32, position: LaneI) -> CosSin {
    // The host checks every row that it knows. One that a buffer names and the table lacks leaves its token as it is.
    let row = u32(first_of(position));
    let n_rows = arrayLength(&table) / (2u * lanes);
    if (POSITIONS && row >= n_rows) {
        return CosSin(Lane(1.0 / params.cos_scale), Lane(0.0));
    }
    let ix = row * 2u * lanes + lane;
    return CosSin(table[ix], table[ix + lanes]);
}

// A row serves all axes.
fn axes_of(lane: u32) -> LaneU {
    return LaneU();
}
