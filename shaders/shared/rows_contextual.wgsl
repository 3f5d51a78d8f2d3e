// Contextual position encoding (Golovneva et al., 2024): keys are visited from right to left and counted on the way. A
// query that has counted to the last position adds the same bias to all keys further left: what is left of them needs
// no gates.

// Whether to count all keys, since somebody asks for the sum.
override COUNT_ALL: bool = false;

fn load_embedding(head: u32, position: u32, word: u32) -> vec4<f32> {
    // Behind the last channel queries are 0, and what is repeated here counts for nothing.
    let channel = min(vec4(4u * word) + vec4(0u, 1u, 2u, 3u), vec4(params.channels - 1u));
    let ix = place(params.embeddings, 0u, 0u, head) + position * params.embeddings.channel;
    let at = vec4(ix) + channel * params.embeddings.token;
    return vec4(load_embeddings(at.x), load_embeddings(at.y), load_embeddings(at.z), load_embeddings(at.w));
}

// Goes over blocks of keys from the right, and returns how many are left on the left.
fn contextual_blocks(keys: KeyBlocks, head: u32, first: u32) -> u32 {
    make_positions(keys.batch, head, first, keys.lanes);
    start_counting_rows(keys.batch);
    var left = n_blocks(keys);
    loop {
        if (left == 0u) {
            break;
        }
        if (!COUNT_ALL && all_lanes(are_rows_saturated())) {
            break;
        }
        left--;
        let key = load_block(keys, left);
        for (var lane = keys.lanes.count; lane > 0u; lane--) {
            gated_key(keys.batch, key + lane - 1u, lane - 1u);
        }
    }
    settle_rows();
    return left;
}

// What the rows make of each position: the lanes load one position each and hand them around.
fn make_positions(batch: u32, head: u32, first: u32, lanes: Lanes) {
    load_contextual_rows(batch, head, first);
    for (var position = 0u; position <= params.last_position; position += lanes.count) {
        load_position(head, min(position + lanes.own, params.last_position));
        for (var lane = 0u; lane < lanes.count; lane++) {
            if (position + lane <= params.last_position) {
                meet_position(batch, head, first, position + lane, lane);
            }
        }
    }
    reload_rows(batch, head, first);
}

fn settled(rows: FourRows, logits: vec4<f32>) -> vec4<f32> {
    return logits + rows.below * params.bias_scale;
}
