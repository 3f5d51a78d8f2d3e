// Attention's logits before any contextual bias, or what contextual gates are made from.
//
//     logits[t, s] = scale * q[t] · k[s] + bias[t, s]    where query t sees key s, else MASKED
//
// Twin: src/reference/attention.rs.
//
// An invocation takes one key and four tokens, so that the key is read once for the four. A key head serves `group`
// query heads in a row.

override WG_SIZE: u32 = 64u;
// Whether the bias hides keys only, and is no part of what is written.
override BIAS_HIDES_ONLY: bool = false;

struct Params {
    q: Place,
    k: Place,
    logits: Place,
    keep: Place,
    bias: Place,
    key_ranges: Place,
    tokens: u32,
    heads: u32,
    channels: u32,
    keys: u32,
    first_head: u32, // of these query heads, counted from the first one of the first key head here
    group: u32,
    // Query t sees keys from visible_start + t to visible_end + t, behind the row's last key if from_row_end is 1.
    visible_start: i32,
    visible_end: i32,
    from_row_end: i32,
    range_starts: u32, // whether key ranges have a start
    scale: f32,
    pad: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(3) var<storage, read_write> logits: array<f32>; // (B, T, H, S)

fn sees(batch: u32, token: u32, head: u32, key: u32) -> bool {
    let range = key_range(batch);
    let by = i32(token) + range.y * params.from_row_end;
    let start = max(range.x, params.visible_start + by);
    let end = min(range.y, params.visible_end + by);
    return i32(key) >= start && i32(key) < end && keeps(batch, token, head, key);
}

fn logit(batch: u32, token: u32, head: u32, key: u32, product: f32) -> f32 {
    let biased = product + bias_at(batch, token, head, key);
    if (biased <= MASKED) {
        return MASKED;
    }
    return select(biased, product, BIAS_HIDES_ONLY);
}

@compute @workgroup_size(WG_SIZE)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let key = id.x;
    let first = id.y * 4u;
    let head = id.z % params.heads;
    let batch = id.z / params.heads;
    if (key >= params.keys || first >= params.tokens) {
        return;
    }
    let tokens = min(vec4(first) + vec4(0u, 1u, 2u, 3u), vec4(params.tokens - 1u));
    let seen = vec4(
        sees(batch, tokens.x, head, key),
        sees(batch, tokens.y, head, key),
        sees(batch, tokens.z, head, key),
        sees(batch, tokens.w, head, key),
    );
    var product = vec4(0.0);
    if (any(seen)) {
        let rows = four_tokens(params.q, batch, head, first, params.tokens);
        let k_ix = place(params.k, batch, key, (params.first_head + head) / params.group);
        for (var c = 0u; c < params.channels; c++) {
            let ix = rows + c * params.q.channel;
            let q = vec4(load_q(ix.x), load_q(ix.y), load_q(ix.z), load_q(ix.w));
            product += q * load_k(k_ix + c * params.k.channel);
        }
        product *= params.scale;
    }
    let scores = vec4(
        logit(batch, tokens.x, head, key, product.x),
        logit(batch, tokens.y, head, key, product.y),
        logit(batch, tokens.z, head, key, product.z),
        logit(batch, tokens.w, head, key, product.w),
    );
    let result = select(vec4(MASKED), scores, seen);
    let out = four_tokens(params.logits, batch, head, first, params.tokens) + key * params.logits.channel;
    logits[out.x] = result.x;
    logits[out.y] = result.y;
    logits[out.z] = result.z;
    logits[out.w] = result.w;
}
