// Four channels at a time, each four of them one word of their buffer.
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;          // (B, T, H, D)
@group(0) @binding(8) var<storage, read> k: array<vec4<f32>>;          // (B, S, Hk, D)
@group(0) @binding(9) var<storage, read> v: array<vec4<f32>>;          // (B, S, Hk, Dv)
@group(0) @binding(10) var<storage, read_write> out: array<vec4<f32>>; // (B, T, H, Dv)
@group(0) @binding(11) var<storage, read> query: array<vec4<f32>>;     // (B, T, H, D)
@group(0) @binding(13) var<storage, read> gate_keys: array<vec4<f32>>; // (B, S, Hk, D)

fn load_q(ix: u32, word: u32) -> vec4<f32> {
    return q[ix + word];
}

fn load_k(ix: u32, word: u32) -> vec4<f32> {
    return k[ix + word];
}

fn load_v(ix: u32, word: u32) -> vec4<f32> {
    return v[ix + word];
}

fn load_query(ix: u32, word: u32) -> vec4<f32> {
    return query[ix + word];
}

fn load_gate_keys(ix: u32, word: u32) -> vec4<f32> {
    return gate_keys[ix + word];
}

fn store_out(ix: u32, word: u32, x: vec4<f32>) {
    out[ix + word] = x;
}
