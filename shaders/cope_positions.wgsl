// Where each key stands as its query counts, in contextual position encoding.
//
//     position[t, s] = min(sum over u >= s of gate(logits[t, u]), positions - 1)
//
// Golovneva et al., Contextual Position Encoding, 2024. Twin: src/reference/cope.rs.
//
// A workgroup takes one query and goes over its keys from right to left, a tile at a time, with the sum of all gates to
// the right of the tile. In a tile, each invocation sums up a few neighbouring keys, and the sums are scanned over the
// invocations (Hillis and Steele, 1986), from the right.
//
// Positions are written in fixed point: the whole part above `fraction_bits`, the fraction below.

override WG_SIZE: u32 = 64u;
const KEYS_EACH = 4u;

struct Params {
    logits: Place,
    positions: Place,
    gate_sum: Place,
    gate_sum_out: Place,
    keys: u32,
    last: u32, // positions - 1
    fraction_bits: u32,
    pad: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read_write> positions: array<u32>; // (B, T, H, S)

var<workgroup> sh_counts: array<Count, WG_SIZE>;

fn gate_of(ix: u32, key: u32) -> f32 {
    if (key >= params.keys) {
        return 0.0;
    }
    return gate(load_logits(ix + key * params.logits.channel));
}

fn fixed_point(position: Count) -> u32 {
    if (position.whole >= params.last) {
        return params.last << params.fraction_bits;
    }
    return (position.whole << params.fraction_bits) + u32(position.fraction * f32(1u << params.fraction_bits));
}

@compute @workgroup_size(WG_SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let logits_ix = place(params.logits, group.z, group.x, group.y);
    let positions_ix = place(params.positions, group.z, group.x, group.y);
    let tile_size = WG_SIZE * KEYS_EACH;
    var right = gates_to_the_right(group.z, group.x, group.y);

    for (var tile = (params.keys + tile_size - 1u) / tile_size; tile > 0u; tile--) {
        // Each key's count within this invocation's few.
        let first = (tile - 1u) * tile_size + lane * KEYS_EACH;
        let own3 = add(Count(0u, 0.0), Count(0u, gate_of(logits_ix, first + 3u)));
        let own2 = add(own3, Count(0u, gate_of(logits_ix, first + 2u)));
        let own1 = add(own2, Count(0u, gate_of(logits_ix, first + 1u)));
        let own0 = add(own1, Count(0u, gate_of(logits_ix, first)));

        // The counts of the invocations to the right, inclusive.
        sh_counts[lane] = own0;
        workgroupBarrier();
        for (var reach = 1u; reach < WG_SIZE; reach *= 2u) {
            var sum = sh_counts[lane];
            if (lane + reach < WG_SIZE) {
                sum = add(sum, sh_counts[lane + reach]);
            }
            workgroupBarrier();
            sh_counts[lane] = sum;
            workgroupBarrier();
        }
        var beyond = right;
        if (lane + 1u < WG_SIZE) {
            beyond = add(beyond, sh_counts[lane + 1u]);
        }
        right = add(right, sh_counts[0]);
        workgroupBarrier();

        store(positions_ix, first, add(beyond, own0));
        store(positions_ix, first + 1u, add(beyond, own1));
        store(positions_ix, first + 2u, add(beyond, own2));
        store(positions_ix, first + 3u, add(beyond, own3));
    }
    if (lane == 0u) {
        store_gate_sum(group.z, group.x, group.y, right);
    }
}

fn store(ix: u32, key: u32, position: Count) {
    if (key < params.keys) {
        positions[ix + key * params.positions.channel] = fixed_point(position);
    }
}
