// Four channels at a time, wherever they lie, and where there are fewer than four left: queries are 0 behind their last
// channel, so that what keys and values repeat there counts for nothing.
@group(0) @binding(1) var<storage, read> q: array<f32>;          // (B, T, H, D)
@group(0) @binding(8) var<storage, read> k: array<f32>;          // (B, S, Hk, D)
@group(0) @binding(9) var<storage, read> v: array<f32>;          // (B, S, Hk, Dv)
@group(0) @binding(10) var<storage, read_write> out: array<f32>; // (B, T, H, Dv)
@group(0) @binding(11) var<storage, read> query: array<f32>;     // (B, T, H, D)
@group(0) @binding(13) var<storage, read> gate_keys: array<f32>; // (B, S, Hk, D)

fn channels_of(word: u32) -> vec4<u32> {
    return vec4(4u * word) + vec4(0u, 1u, 2u, 3u);
}

fn places(ix: u32, word: u32, n_channels: u32, step: u32) -> vec4<u32> {
    return vec4(ix) + min(channels_of(word), vec4(n_channels - 1u)) * step;
}

fn within(word: u32, x: vec4<f32>) -> vec4<f32> {
    return select(vec4(0.0), x, channels_of(word) < vec4(params.channels));
}

fn load_q(ix: u32, word: u32) -> vec4<f32> {
    let at = places(ix, word, params.channels, params.q.channel);
    return within(word, vec4(q[at.x], q[at.y], q[at.z], q[at.w]));
}

fn load_k(ix: u32, word: u32) -> vec4<f32> {
    let at = places(ix, word, params.channels, params.k.channel);
    return vec4(k[at.x], k[at.y], k[at.z], k[at.w]);
}

fn load_v(ix: u32, word: u32) -> vec4<f32> {
    let at = places(ix, word, params.value_channels, params.v.channel);
    return vec4(v[at.x], v[at.y], v[at.z], v[at.w]);
}

fn load_query(ix: u32, word: u32) -> vec4<f32> {
    let at = places(ix, word, params.channels, params.query.channel);
    return within(word, vec4(query[at.x], query[at.y], query[at.z], query[at.w]));
}

fn load_gate_keys(ix: u32, word: u32) -> vec4<f32> {
    let at = places(ix, word, params.channels, params.gate_keys.channel);
    return vec4(gate_keys[at.x], gate_keys[at.y], gate_keys[at.z], gate_keys[at.w]);
}

fn store_out(ix: u32, word: u32, x: vec4<f32>) {
    let channel = 4u * word;
    for (var c = channel; c < min(channel + 4u, params.value_channels); c++) {
        out[ix + c * params.out.channel] = x[c - channel];
    }
}
