// The contextual bias: what a query makes of a key's position, between whole positions.
//
//     out[t, s] = scale * ((1 - w) * z[t, floor p] + w * z[t, ceil p]),    p = position[t, s], w = p - floor p
//
// Golovneva et al., Contextual Position Encoding, 2024. Twin: src/reference/cope.rs.

override WG_SIZE: u32 = 64u;
// Whether the bias is added to the logits that `out` holds, those that are masked left as they are.
override ADD: bool = false;

struct Params {
    positions: Place,
    z: Place,
    out: Place,
    tokens: u32,
    heads: u32,
    keys: u32,
    last: u32, // positions - 1
    fraction_bits: u32,
    fraction_unit: f32, // 2^-fraction_bits
    scale: f32,
    pad: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
// Only read; writable since they may lie in one scratch buffer with what is written.
@group(0) @binding(1) var<storage, read_write> positions: array<u32>; // (B, T, H, S)
@group(0) @binding(2) var<storage, read_write> z: array<f32>;         // (B, T, H, N)

@compute @workgroup_size(WG_SIZE)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let key = id.x;
    let token = id.y;
    let head = id.z % params.heads;
    let batch = id.z / params.heads;
    if (key >= params.keys || token >= params.tokens) {
        return;
    }
    let position = positions[place(params.positions, batch, token, head) + key * params.positions.channel];
    let whole = position >> params.fraction_bits;
    let w = f32(position & ((1u << params.fraction_bits) - 1u)) * params.fraction_unit;
    let z_ix = place(params.z, batch, token, head);
    let below = z[z_ix + whole * params.z.channel];
    let above = z[z_ix + min(whole + 1u, params.last) * params.z.channel];
    let bias = params.scale * (below + w * (above - below));
    let out_ix = place(params.out, batch, token, head) + key * params.out.channel;
    if (!ADD) {
        store_out(out_ix, bias);
        return;
    }
    let logit = load_out(out_ix);
    if (logit > MASKED) {
        store_out(out_ix, logit + bias);
    }
}
