// Attention of few queries over many keys, first part: logits, and the sums of their gates.
//
//     logits[t, s] = scale * q[t] · k[s] + bias[t, s]    in doublings; HIDDEN where query t does not see key s
//
// A workgroup takes a split of the keys, an invocation four keys at a time, so that queries are read once for the four.
// Twin: src/reference/attention.rs.

override WG_SIZE: u32 = 64u;

@group(0) @binding(15) var<storage, read_write> logits: array<vec4<f32>>; // (B, T, H, S), fours of keys

fn seen_keys(row: Row, batch: u32, key: u32) -> vec4<bool> {
    let keys = vec4(i32(key)) + vec4(0, 1, 2, 3);
    let standing = (keys >= vec4(row.span.x)) & (keys < vec4(row.span.y));
    let at = min(vec4<u32>(keys), vec4(params.keys - 1u));
    let kept = vec4(
        keeps(batch, row.token, row.head, at.x),
        keeps(batch, row.token, row.head, at.y),
        keeps(batch, row.token, row.head, at.z),
        keeps(batch, row.token, row.head, at.w),
    );
    return standing & kept;
}

fn biases(row: Row, batch: u32, key: u32) -> vec4<f32> {
    let at = min(vec4(key) + vec4(0u, 1u, 2u, 3u), vec4(params.keys - 1u));
    let natural = vec4(
        bias_at(batch, row.token, row.head, at.x),
        bias_at(batch, row.token, row.head, at.y),
        bias_at(batch, row.token, row.head, at.z),
        bias_at(batch, row.token, row.head, at.w),
    );
    // A mask may be f32's lowest number, of which there are no more doublings.
    return max(natural, vec4(MASKED)) * LOG2_E;
}

@compute @workgroup_size(WG_SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let task = task_of(group);
    let q_at = places_of_rows(params.q, task);
    begin_counts();
    let first = first_four(task) + lane;
    let n = select(0u, params.run / 4u, is_seen(task));
    for (var i = 0u; i < n; i++) {
        let four = first + i * WG_SIZE;
        let key = 4u * four;
        var products = PerRow();
        var gate_products = PerRow();
        if (i32(key) < task.span.y && i32(key) + 3 >= task.span.x) {
            let keys = keys_of(task, four);
            products = products_with_k(task, q_at, keys);
            gate_products = products_for_gates(task, q_at, keys, products);
        }
        for (var r = 0u; r < ROWS; r++) {
            let row = row_of(task, r);
            if (row.exists && key < params.keys) {
                let bias = biases(row, task.batch, key);
                let x = hide(seen_keys(row, task.batch, key), get_row(products, r) * params.scale + bias);
                logits[place(params.logits, task.batch, row.token, row.head) / 4u + four] = x;
                let see = select(vec4(0.0), bias, GATES_SEE_BIAS);
                count_gates(task, row, r, four, gates(x, get_row(gate_products, r) * params.scale + see));
            }
        }
    }
    store_counts(task, lane);
}

fn products_with_k(task: Task, q_at: vec4<u32>, keys: vec4<u32>) -> PerRow {
    let x = place(params.k, task.batch, keys.x, task.key_head);
    let y = place(params.k, task.batch, keys.y, task.key_head);
    let z_ = place(params.k, task.batch, keys.z, task.key_head);
    let w = place(params.k, task.batch, keys.w, task.key_head);
    let words = (params.channels + 3u) / 4u;
    var sums = PerRow();
    for (var i = 0u; i < (words + 1u) / 2u; i++) {
        sums = add_two(
            sums,
            q_at,
            words_of_two(i),
            k_two(x, i, position_of_key(keys.x)),
            k_two(y, i, position_of_key(keys.y)),
            k_two(z_, i, position_of_key(keys.z)),
            k_two(w, i, position_of_key(keys.w)),
        );
    }
    return sums;
}

// Products with two words of four keys, on top of others.
fn add_two(sums: PerRow, q_at: vec4<u32>, chosen: vec2<u32>, x: Two, y: Two, z_: Two, w: Two) -> PerRow {
    let first = add_products(sums, q_at, chosen.x, mat4x4(x.first, y.first, z_.first, w.first));
    if (chosen.y >= (params.channels + 3u) / 4u) {
        return first;
    }
    return add_products(first, q_at, chosen.y, mat4x4(x.second, y.second, z_.second, w.second));
}
