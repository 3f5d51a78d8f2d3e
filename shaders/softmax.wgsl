// Logits to weights in place, and their log-sum-exp.
//
//     weights[t, s] = exp(logits[t, s] - lse[t]),    lse[t] = log(sum over s of exp(logits[t, s]))
//
// Masked keys weigh 0. So do all keys of a query that sees none; its log-sum-exp is MASKED. Twin:
// src/reference/attention.rs.
//
// A workgroup takes one query: the largest logit, the sum, the division.

override WG_SIZE: u32 = 64u;

struct Params {
    logits: Place,
    lse: Place,
    keys: u32,
    pad0: u32,
    pad1: u32,
    pad2: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> logits: array<f32>; // (B, T, H, S)

var<workgroup> sh_values: array<f32, WG_SIZE>;

// The largest and the sum of what the workgroup's invocations hold.
fn largest_of_all(lane: u32, own: f32) -> f32 {
    sh_values[lane] = own;
    workgroupBarrier();
    for (var half = WG_SIZE / 2u; half > 0u; half /= 2u) {
        if (lane < half) {
            sh_values[lane] = max(sh_values[lane], sh_values[lane + half]);
        }
        workgroupBarrier();
    }
    let largest = sh_values[0];
    workgroupBarrier();
    return largest;
}

fn sum_of_all(lane: u32, own: f32) -> f32 {
    sh_values[lane] = own;
    workgroupBarrier();
    for (var half = WG_SIZE / 2u; half > 0u; half /= 2u) {
        if (lane < half) {
            sh_values[lane] += sh_values[lane + half];
        }
        workgroupBarrier();
    }
    return sh_values[0];
}

@compute @workgroup_size(WG_SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = place(params.logits, group.z, group.x, group.y);
    var largest = MASKED;
    for (var key = lane; key < params.keys; key += WG_SIZE) {
        largest = max(largest, logits[row + key * params.logits.channel]);
    }
    largest = largest_of_all(lane, largest);

    var sum = 0.0;
    for (var key = lane; key < params.keys; key += WG_SIZE) {
        let ix = row + key * params.logits.channel;
        let logit = logits[ix];
        var weight = 0.0;
        if (logit > MASKED) {
            weight = exp(logit - largest);
        }
        logits[ix] = weight;
        sum += weight;
    }
    sum = sum_of_all(lane, sum);

    // The largest logit's key weighs 1 before the division: a sum of less says that there is none.
    let some = sum > 0.0;
    let scale = select(0.0, 1.0 / sum, some);
    for (var key = lane; key < params.keys; key += WG_SIZE) {
        logits[row + key * params.logits.channel] *= scale;
    }
    if (lane == 0u) {
        store_lse(group.z, group.x, group.y, select(MASKED, largest + log(max(sum, 1.0)), some));
    }
}
