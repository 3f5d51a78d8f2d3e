// Attention in linear memory, for devices whose invocations have much memory of their own (drivers that run on CPU
// cores): each invocation owns some queries of a head and goes over all of their keys.
//
//     out[t] = sum over s of softmax(logits[t])[s] * v[s]
//
// Online softmax: Milakov and Gimelshein, 2018; Dao et al., FlashAttention, 2022. Twin: src/reference/attention.rs.
//
// The lanes of a subgroup load a key each and hand them around. An invocation's queries and sums lie in variables of
// their own, and what goes over them is written out (src/kernels/attention_rows/unrolled.rs): a software driver keeps
// arrays that a loop indexes in memory, element by element.

// Queries of the workgroup's invocations follow each other.
override WG_SIZE: u32 = 8u;

fn attend(group: vec3<u32>, index: u32, lanes: Lanes) {
    let head = group.y;
    let batch = group.z;
    let first = (group.x * WG_SIZE + index) * ROWS;
    let range = key_range(batch);
    // From the first to the last key that any query of the workgroup sees.
    let first_token = group.x * WG_SIZE * ROWS;
    let last_token = min(first_token + WG_SIZE * ROWS, params.tokens) - 1u;
    let first_key = span(range, first_token).x;
    let n_keys = u32(max(span(range, last_token).y - first_key, 0));
    let keys = KeyBlocks(batch, key_head(head), u32(max(first_key, 0)), n_keys, lanes);

    load_rows(batch, head, first, range);
    // What is left of the keys when the contextual bias has become the same for all that follow.
    let left = contextual_blocks(keys, head, first);
    for (var block = 0u; block < left; block++) {
        let key = load_block(keys, block);
        for (var lane = 0u; lane < lanes.count; lane++) {
            plain_key(batch, key + lane, lane);
        }
    }
    finish_rows(batch, head, first);
}

// Keys by as many as there are lanes.
struct KeyBlocks {
    batch: u32,
    head: u32,
    first: u32,
    count: u32,
    lanes: Lanes,
}

fn n_blocks(keys: KeyBlocks) -> u32 {
    return (keys.count + keys.lanes.count - 1u) / keys.lanes.count;
}

// Loads each lane's key and value; the key of lane 0. Behind the last key the last one comes again, and is not seen.
fn load_block(keys: KeyBlocks, block: u32) -> u32 {
    let before = block * keys.lanes.count;
    load_key(keys.batch, keys.head, keys.first + min(before + keys.lanes.own, keys.count - 1u));
    return keys.first + before;
}

fn token_of(row: u32) -> u32 {
    return min(row, params.tokens - 1u);
}

fn tokens_of(first: u32) -> vec4<u32> {
    return min(vec4(first) + vec4(0u, 1u, 2u, 3u), vec4(params.tokens - 1u));
}

// What is left to do for row `i` of four: its output's factor, and what stands beside the output.
fn finish_row(rows: FourRows, i: u32, batch: u32) -> f32 {
    let some = rows.largest[i] > MASKED_DOUBLINGS;
    let lse = (rows.largest[i] + log2(max(rows.sum[i], 1.0))) * LN_2;
    store_lse(batch, rows.token[i], rows.head[i], select(MASKED, lse, some));
    store_gate_sum(batch, rows.token[i], rows.head[i], Count(rows.whole[i], rows.fraction[i]));
    return select(0.0, 1.0 / max(rows.sum[i], 1.0), some);
}
