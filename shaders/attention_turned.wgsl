// Rotary encoding of queries or keys on their way into attention, into scratch memory: for what is loaded again and again.
//
//     turned[t] = magnitude * R(position + t) x[t]
//
// Su et al., RoFormer, 2021. Twin: src/reference/rope_rotate.rs.
//
// An invocation takes one channel of some tokens.

override WG_SIZE: u32 = 64u;
const TOKENS = 32u;

struct Params {
    x: Place,
    turned: Place,
    key_ranges: Place,
    tokens: u32,
    heads: u32,
    channels: u32,
    keys: u32,
    position: i32, // of token 0, behind the row's last key if from_row_end is 1
    from_row_end: i32,
    range_starts: u32, // whether key ranges have a start
    pad: u32,
    rotation: Rotation,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read_write> turned: array<f32>; // (B, T, H, D)

@compute @workgroup_size(WG_SIZE)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let channel = id.x;
    let head = id.z % params.heads;
    let batch = id.z / params.heads;
    if (channel >= params.channels) {
        return;
    }
    let position = params.position + key_range(batch).y * params.from_row_end;
    let partner = partner_of(channel);
    for (var token = id.y * TOKENS; token < min((id.y + 1u) * TOKENS, params.tokens); token++) {
        let ix = place(params.x, batch, token, head);
        let x = load_x(ix + channel * params.x.channel);
        let other = load_x(ix + partner * params.x.channel);
        let to = place(params.turned, batch, token, head) + channel * params.turned.channel;
        turned[to] = turned_channel(channel, position + i32(token), x, other);
    }
}
