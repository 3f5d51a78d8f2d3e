// The sum of values, each weighed by what softmax made of its key's logit.
//
//     out[t, c] = sum over s of weights[t, s] * v[s, c]
//
// Twin: src/reference/attention.rs.
//
// An invocation takes one channel and four tokens, so that a value is read once for the four. Keys come in runs, one
// dispatch each; all but the first add to what is there.

override WG_SIZE: u32 = 64u;

struct Params {
    weights: Place,
    v: Place,
    out: Place,
    tokens: u32,
    heads: u32,
    channels: u32,
    first_key: u32,
    end_key: u32,
    first_head: u32, // of these query heads, counted from the first one of the first value head here
    group: u32,
    pad: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
// Only read; writable since it lies in a scratch buffer.
@group(0) @binding(1) var<storage, read_write> weights: array<f32>; // (B, T, H, S)

@compute @workgroup_size(WG_SIZE)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let channel = id.x;
    let first = id.y * 4u;
    let head = id.z % params.heads;
    let batch = id.z / params.heads;
    if (channel >= params.channels || first >= params.tokens) {
        return;
    }
    let rows = four_tokens(params.weights, batch, head, first, params.tokens);
    let v_ix = place(params.v, batch, 0u, (params.first_head + head) / params.group) + channel * params.v.channel;
    let out_ix = four_tokens(params.out, batch, head, first, params.tokens) + channel * params.out.channel;
    var sum = vec4(0.0);
    if (params.first_key > 0u) {
        sum = vec4(load_out(out_ix.x), load_out(out_ix.y), load_out(out_ix.z), load_out(out_ix.w));
    }
    for (var key = params.first_key; key < params.end_key; key++) {
        let ix = rows + key * params.weights.channel;
        let weight = vec4(weights[ix.x], weights[ix.y], weights[ix.z], weights[ix.w]);
        let value = load_v(v_ix + key * params.v.token);
        // A value that a query does not weigh may be anything, even no number.
        sum += select(weight * value, vec4(0.0), weight == vec4(0.0));
    }
    store_out(out_ix.x, sum.x);
    store_out(out_ix.y, sum.y);
    store_out(out_ix.z, sum.z);
    store_out(out_ix.w, sum.w);
}
