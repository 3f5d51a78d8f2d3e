// A linear layer of few tokens: a workgroup takes eight outputs of up to four tokens, and its invocations share the
// inputs, so that each weight is read once and neighbours read next to each other.
//
//     y[t, o] = sum over i of x[t, i] * weight[o, i] + bias[o]
//
// Twin: src/reference/projection.rs. 8 KiB of workgroup memory.

override WG_SIZE: u32 = 64u; // at most 64
// Four tokens, or one.
override FOUR_TOKENS: bool = true;
const OUTPUTS = 8u;

// (tokens, outputs 0 to 3 and 4 to 7, invocations).
var<workgroup> sh_sums: array<vec4<f32>, 512>;

@compute @workgroup_size(WG_SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first_token = group.y * select(1u, 4u, FOUR_TOKENS);
    let first_output = group.x * OUTPUTS;
    let low_ix = weight_places(first_output);
    let high_ix = weight_places(first_output + 4u);
    let x_ix = token_places(params.x, first_token);
    // Tokens, as columns, by outputs.
    var low = mat4x4<f32>();
    var high = mat4x4<f32>();
    let words = (params.inputs + 3u) / 4u;
    for (var word = lane; word < words; word += WG_SIZE) {
        let at = x_place(word);
        let weight_low = weight_words(low_ix, word);
        let weight_high = weight_words(high_ix, word);
        let x = x_word(x_ix.x, at, word);
        low[0] += x * weight_low;
        high[0] += x * weight_high;
        if (FOUR_TOKENS) {
            let x1 = x_word(x_ix.y, at, word);
            let x2 = x_word(x_ix.z, at, word);
            let x3 = x_word(x_ix.w, at, word);
            low[1] += x1 * weight_low;
            low[2] += x2 * weight_low;
            low[3] += x3 * weight_low;
            high[1] += x1 * weight_high;
            high[2] += x2 * weight_high;
            high[3] += x3 * weight_high;
        }
    }
    keep(0u, lane, low[0], high[0]);
    if (FOUR_TOKENS) {
        keep(1u, lane, low[1], high[1]);
        keep(2u, lane, low[2], high[2]);
        keep(3u, lane, low[3], high[3]);
    }
    // Halves of the sums are added to the other halves.
    for (var half = WG_SIZE / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (lane < half) {
            for (var i = 0u; i < select(2u, 8u, FOUR_TOKENS); i++) {
                sh_sums[i * WG_SIZE + lane] += sh_sums[i * WG_SIZE + half + lane];
            }
        }
    }
    workgroupBarrier();
    // Each invocation stores some of the tokens' words.
    for (var i = lane; i < select(2u, 8u, FOUR_TOKENS); i += WG_SIZE) {
        let token = first_token + i / 2u;
        let output = first_output + 4u * (i % 2u);
        if (token < params.tokens) {
            store_outputs(token_place(params.y, token), output, sh_sums[i * WG_SIZE] + bias_of(output));
        }
    }
}

fn keep(token: u32, lane: u32, low: vec4<f32>, high: vec4<f32>) {
    sh_sums[2u * token * WG_SIZE + lane] = low;
    sh_sums[(2u * token + 1u) * WG_SIZE + lane] = high;
}
