// Attention over one part of the keys, taken into what it gave over others.
//
//     lse = log(exp(lse) + exp(part_lse)),  out[c] = exp(lse_before - lse) * out[c] + exp(part_lse - lse) * part[c]
//
// Twin: src/reference/attention_merge.rs.
//
// A workgroup takes a query, an invocation some of its channels.

override WG_SIZE: u32 = 64u;

struct Params {
    out: Place,
    lse: Place,
    part: Place,
    part_lse: Place,
    channels: u32,
    pad0: u32,
    pad1: u32,
    pad2: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read_write> lse: array<f32>; // (B, T, H)
@group(0) @binding(4) var<storage, read> part_lse: array<f32>;  // (B, T, H)

// Whatever lies where no key was seen counts for nothing.
fn seen(x: f32, lse: f32) -> f32 {
    return select(0.0, x, lse > MASKED);
}

@compute @workgroup_size(WG_SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let lse_ix = place(params.lse, group.z, group.x, group.y);
    let own = lse[lse_ix];
    let other = part_lse[place(params.part_lse, group.z, group.x, group.y)];
    let largest = max(own, other);
    let own_weight = exp(own - largest);
    let other_weight = exp(other - largest);
    let sum = own_weight + other_weight;

    let out_ix = place(params.out, group.z, group.x, group.y);
    let part_ix = place(params.part, group.z, group.x, group.y);
    for (var channel = lane; channel < params.channels; channel += WG_SIZE) {
        let ix = out_ix + channel * params.out.channel;
        let own_part = own_weight * seen(load_out(ix), own);
        let other_part = other_weight * seen(load_part(part_ix + channel * params.part.channel), other);
        store_out(ix, (own_part + other_part) / sum);
    }
    // All have read what is replaced.
    storageBarrier();
    if (lane == 0u) {
        lse[lse_ix] = largest + log(sum);
    }
}
