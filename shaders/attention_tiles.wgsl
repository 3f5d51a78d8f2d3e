// Attention in linear memory, for GPUs: a workgroup takes a tile of queries of a head and goes over tiles of their keys.
//
//     out[t] = sum over s of softmax(logits[t])[s] * v[s]
//
// Online softmax: Milakov and Gimelshein, 2018; Dao et al., FlashAttention, 2022. Twin: src/reference/attention.rs.
//
// An invocation computes eight queries by four keys of a tile's products, and eight queries by eight channels of its
// output; between the two it owns one query, whose keys it weighs from right to left. Value channels beyond the first 64
// are other workgroups' work. About 14 KiB of workgroup memory.

override WG_SIZE: u32 = 64u; // as many as TILE_ROWS: one invocation to a query
const TILE_ROWS = 64u;
const TILE_KEYS = 32u;
// Channels at a time of the products, and keys at a time of the values, as words of four.
const CHUNK_WORDS = 4u;
const CHUNK_KEYS = 16u;
const OUT_WORDS = 16u;

// Queries of a chunk of channels, (channels, rows), or values of a chunk of keys, (keys, channels).
var<workgroup> sh_words: array<vec4<f32>, 256>;
// Keys of a chunk of channels, (channels, keys).
var<workgroup> sh_keys: array<vec4<f32>, 128>;
// Products, then weights: (keys, rows).
var<workgroup> sh_weights: array<f32, 2048>;
// What the outputs so far are multiplied with before a tile, and at the end.
var<workgroup> sh_before: array<f32, TILE_ROWS>;

// Two groups of four queries, each with four numbers: a number is a column.
struct Eight {
    a: mat4x4<f32>,
    b: mat4x4<f32>,
}

fn outer(rows: vec4<f32>, columns: vec4<f32>) -> mat4x4<f32> {
    return mat4x4(rows * columns.x, rows * columns.y, rows * columns.z, rows * columns.w);
}

@compute @workgroup_size(WG_SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let out_blocks = (params.value_channels + 4u * OUT_WORDS - 1u) / (4u * OUT_WORDS);
    let head = group.y;
    let batch = group.z / out_blocks;
    let first_word = group.z % out_blocks * OUT_WORDS;
    let first_token = group.x * TILE_ROWS;
    let range = key_range(batch);
    // From the first to the last key that any query of the tile sees.
    let last_token = min(first_token + TILE_ROWS, params.tokens) - 1u;
    let first_key = u32(max(span(range, first_token).x, 0));
    let end_key = u32(max(span(range, last_token).y, i32(first_key)));

    var row = begin_row(batch, min(first_token + lane, params.tokens - 1u), head, range);
    // Eight queries by eight channels: (queries 0 to 3, 4 to 7) by (channels 0 to 3, 4 to 7).
    var low = Eight();
    var high = Eight();
    for (var tiles = (end_key - first_key + TILE_KEYS - 1u) / TILE_KEYS; tiles > 0u; tiles--) {
        let key = first_key + (tiles - 1u) * TILE_KEYS;
        let n_keys = min(TILE_KEYS, end_key - key);
        if (GATES_APART) {
            multiply(true, batch, head, first_token, key, n_keys, lane);
            workgroupBarrier();
            keep_gate_products(lane);
            workgroupBarrier();
        }
        multiply(false, batch, head, first_token, key, n_keys, lane);
        workgroupBarrier();
        weigh_tile(&row, batch, key, n_keys, lane);
        workgroupBarrier();
        let before_a = before_of(8u * (lane / 8u));
        let before_b = before_of(8u * (lane / 8u) + 4u);
        low = Eight(scale_rows(low.a, before_a), scale_rows(low.b, before_b));
        high = Eight(scale_rows(high.a, before_a), scale_rows(high.b, before_b));
        for (var chunk = 0u; chunk < TILE_KEYS; chunk += CHUNK_KEYS) {
            load_values(batch, head, first_word, key + chunk, end_key, lane);
            workgroupBarrier();
            for (var i = 0u; i < CHUNK_KEYS; i++) {
                let weights_a = weights_of(chunk + i, 8u * (lane / 8u));
                let weights_b = weights_of(chunk + i, 8u * (lane / 8u) + 4u);
                let value_low = sh_words[i * OUT_WORDS + 2u * (lane % 8u)];
                let value_high = sh_words[i * OUT_WORDS + 2u * (lane % 8u) + 1u];
                low.a += outer(weights_a, value_low);
                low.b += outer(weights_b, value_low);
                high.a += outer(weights_a, value_high);
                high.b += outer(weights_b, value_high);
            }
            workgroupBarrier();
        }
    }

    let some = row.largest > MASKED_DOUBLINGS;
    sh_before[lane] = select(0.0, 1.0 / max(row.sum, 1.0), some);
    if (first_word == 0u && first_token + lane < params.tokens) {
        store_lse(batch, row.token, head, select(MASKED, (row.largest + log2(max(row.sum, 1.0))) * LN_2, some));
        store_gate_sum(batch, row.token, head, row.count);
    }
    workgroupBarrier();
    let first = first_token + 8u * (lane / 8u);
    let word = first_word + 2u * (lane % 8u);
    let after_a = before_of(8u * (lane / 8u));
    let after_b = before_of(8u * (lane / 8u) + 4u);
    store_four(batch, head, first, word, transpose(scale_rows(low.a, after_a)));
    store_four(batch, head, first, word + 1u, transpose(scale_rows(high.a, after_a)));
    store_four(batch, head, first + 4u, word, transpose(scale_rows(low.b, after_b)));
    store_four(batch, head, first + 4u, word + 1u, transpose(scale_rows(high.b, after_b)));
}

// A query's softmax so far, and how far it has counted.
struct TileRow {
    token: u32,
    head: u32,
    // The keys that it sees by where they stand.
    span: vec2<i32>,
    largest: f32,
    sum: f32,
    count: Count,
    below: f32,
    above: f32,
    z: u32,
}

fn begin_row(batch: u32, token: u32, head: u32, range: vec2<i32>) -> TileRow {
    var row: TileRow;
    row.token = token;
    row.head = head;
    row.span = span(range, token);
    row.largest = MASKED_DOUBLINGS;
    start_counting(&row, batch);
    return row;
}

// Turns one query's products with a tile's keys into weights, from right to left.
fn weigh_tile(row: ptr<function, TileRow>, batch: u32, first_key: u32, n_keys: u32, lane: u32) {
    var largest = (*row).largest;
    for (var left = n_keys; left > 0u; left--) {
        let key = first_key + left - 1u;
        let at = (left - 1u) * TILE_ROWS + lane;
        let product = sh_weights[at] * params.scale;
        // A mask may be f32's lowest number, of which there are no more doublings.
        let bias = max(bias_at(batch, (*row).token, (*row).head, key), MASKED) * LOG2_E;
        let standing = i32(key) >= (*row).span.x && i32(key) < (*row).span.y;
        let seen = standing && keeps(batch, (*row).token, (*row).head, key);
        var logit = HIDDEN;
        if (seen && product + bias > MASKED_DOUBLINGS) {
            logit = contextual(row, product, bias, left - 1u);
        }
        sh_weights[at] = logit;
        largest = max(largest, logit);
    }
    sh_before[lane] = exp2((*row).largest - largest);
    var sum = (*row).sum * sh_before[lane];
    for (var i = 0u; i < TILE_KEYS; i++) {
        let at = i * TILE_ROWS + lane;
        var weight = 0.0;
        if (i < n_keys && sh_weights[at] > MASKED_DOUBLINGS) {
            weight = exp2(sh_weights[at] - largest);
        }
        sh_weights[at] = weight;
        sum += weight;
    }
    (*row).largest = largest;
    (*row).sum = sum;
}

fn scale_rows(x: mat4x4<f32>, by: vec4<f32>) -> mat4x4<f32> {
    return mat4x4(x[0] * by, x[1] * by, x[2] * by, x[3] * by);
}

fn before_of(row: u32) -> vec4<f32> {
    return vec4(sh_before[row], sh_before[row + 1u], sh_before[row + 2u], sh_before[row + 3u]);
}

fn weights_of(key: u32, row: u32) -> vec4<f32> {
    let at = key * TILE_ROWS + row;
    return vec4(sh_weights[at], sh_weights[at + 1u], sh_weights[at + 2u], sh_weights[at + 3u]);
}

// A word of four queries' outputs, a query to a column.
fn store_four(batch: u32, head: u32, first: u32, word: u32, x: mat4x4<f32>) {
    if (4u * word >= params.value_channels) {
        return;
    }
    for (var i = 0u; i < 4u && first + i < params.tokens; i++) {
        var columns = x;
        store_out_word(place(params.out, batch, first + i, head), word, columns[i]);
    }
}

// Products of the tile's queries and keys, unscaled. Which keys is up to the caller: those of the logits, or those that
// gates are made from.
fn multiply(of_gates: bool, batch: u32, head: u32, first_token: u32, first_key: u32, n_keys: u32, lane: u32) {
    let words = (params.channels + 3u) / 4u;
    var sums = Eight();
    for (var first_word = 0u; first_word < words; first_word += CHUNK_WORDS) {
        // Each invocation brings two words of some queries and of some keys, in the order in which keys have them.
        for (var i = lane; i < TILE_ROWS * CHUNK_WORDS / 2u; i += WG_SIZE) {
            let token = min(first_token + 2u * i / CHUNK_WORDS, params.tokens - 1u);
            let chosen = words_of_two((first_word + 2u * i % CHUNK_WORDS) / 2u);
            let at = place(params.q, batch, token, head);
            var x = Two();
            if (chosen.x < words) {
                x.first = q_word(at, chosen.x);
            }
            if (chosen.y < words) {
                x.second = q_word(at, chosen.y);
            }
            sh_words[2u * i] = x.first;
            sh_words[2u * i + 1u] = x.second;
        }
        for (var i = lane; i < TILE_KEYS * CHUNK_WORDS / 2u; i += WG_SIZE) {
            let key = first_key + min(2u * i / CHUNK_WORDS, n_keys - 1u);
            let word = first_word + 2u * i % CHUNK_WORDS;
            var x = Two();
            if (word < words) {
                x = key_two(of_gates, batch, key, key_head(head), word / 2u);
            }
            sh_keys[2u * i] = x.first;
            sh_keys[2u * i + 1u] = x.second;
        }
        workgroupBarrier();
        for (var word = 0u; word < CHUNK_WORDS; word++) {
            let keys = transpose(mat4x4(
                sh_keys[(4u * (lane % 8u)) * CHUNK_WORDS + word],
                sh_keys[(4u * (lane % 8u) + 1u) * CHUNK_WORDS + word],
                sh_keys[(4u * (lane % 8u) + 2u) * CHUNK_WORDS + word],
                sh_keys[(4u * (lane % 8u) + 3u) * CHUNK_WORDS + word],
            ));
            let row = 8u * (lane / 8u);
            let a = transpose(queries_of(row, word));
            let b = transpose(queries_of(row + 4u, word));
            sums.a += outer(a[0], keys[0]) + outer(a[1], keys[1]) + outer(a[2], keys[2]) + outer(a[3], keys[3]);
            sums.b += outer(b[0], keys[0]) + outer(b[1], keys[1]) + outer(b[2], keys[2]) + outer(b[3], keys[3]);
        }
        workgroupBarrier();
    }
    let key = 4u * (lane % 8u);
    let row = 8u * (lane / 8u);
    store_products(key, row, sums.a);
    store_products(key, row + 4u, sums.b);
}

fn queries_of(row: u32, word: u32) -> mat4x4<f32> {
    return mat4x4(
        sh_words[row * CHUNK_WORDS + word],
        sh_words[(row + 1u) * CHUNK_WORDS + word],
        sh_words[(row + 2u) * CHUNK_WORDS + word],
        sh_words[(row + 3u) * CHUNK_WORDS + word],
    );
}

fn store_products(key: u32, row: u32, x: mat4x4<f32>) {
    store_column(key, row, x[0]);
    store_column(key + 1u, row, x[1]);
    store_column(key + 2u, row, x[2]);
    store_column(key + 3u, row, x[3]);
}

fn store_column(key: u32, row: u32, x: vec4<f32>) {
    let at = key * TILE_ROWS + row;
    sh_weights[at] = x.x;
    sh_weights[at + 1u] = x.y;
    sh_weights[at + 2u] = x.z;
    sh_weights[at + 3u] = x.w;
}

fn load_values(batch: u32, head: u32, first_word: u32, first_key: u32, end_key: u32, lane: u32) {
    let words = (params.value_channels + 3u) / 4u;
    for (var i = lane; i < CHUNK_KEYS * OUT_WORDS; i += WG_SIZE) {
        let key = first_key + i / OUT_WORDS;
        var x = vec4(0.0);
        // What nobody weighs may be anything: it must not come near the sums.
        if (key < end_key && first_word + i % OUT_WORDS < words) {
            x = v_word(place(params.v, batch, key, key_head(head)), first_word + i % OUT_WORDS);
        }
        sh_words[i] = x;
    }
}
