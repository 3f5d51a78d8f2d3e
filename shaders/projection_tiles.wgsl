// A linear layer of many tokens, for GPUs: a workgroup takes a tile of tokens by outputs and goes over their inputs.
//
//     y[t, o] = sum over i of x[t, i] * weight[o, i] + bias[o]
//
// Twin: src/reference/projection.rs.
//
// Some inputs at a time lie in workgroup memory, turned so that an input's tokens, and its outputs, are next to each
// other. An invocation computes eight tokens by eight outputs. About 9 KiB of workgroup memory.

override WG_SIZE: u32 = 64u; // as many as there are blocks of four rows by four inputs
const TILE = 64u; // tokens, and outputs
const CHUNK = 16u; // inputs
const CHUNK_WORDS = 4u;
// Fours of rows to an input, and one that keeps neighbours out of each other's memory banks.
const STEP = 17u;

// (inputs, fours of tokens) and (inputs, fours of outputs).
var<workgroup> sh_x: array<vec4<f32>, 272>;
var<workgroup> sh_weight: array<vec4<f32>, 272>;

// Four tokens, a column each, by four outputs.
fn outer(tokens: vec4<f32>, outputs: vec4<f32>) -> mat4x4<f32> {
    return mat4x4(outputs * tokens.x, outputs * tokens.y, outputs * tokens.z, outputs * tokens.w);
}

fn x_words(ix: vec4<u32>, word: u32) -> mat4x4<f32> {
    let at = x_place(word);
    return mat4x4(x_word(ix.x, at, word), x_word(ix.y, at, word), x_word(ix.z, at, word), x_word(ix.w, at, word));
}

fn store_four(first: u32, output: u32, sums: mat4x4<f32>) {
    let bias = bias_of(output);
    for (var i = 0u; i < 4u && first + i < params.tokens; i++) {
        store_outputs(token_place(params.y, first + i), output, sums[i] + bias);
    }
}

@compute @workgroup_size(WG_SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first_token = group.y * TILE;
    let first_output = group.x * TILE;
    // The block that this invocation loads: its inputs among those of a chunk, and its four rows.
    let word = lane % CHUNK_WORDS;
    let four = lane / CHUNK_WORDS;
    let token = first_token + 4u * four;
    let x_ix = token_places(params.x, token);
    let weight_ix = weight_places(first_output + 4u * four);
    // Tokens 0 to 3 and 4 to 7 by outputs 0 to 3 and 4 to 7.
    var low_low = mat4x4<f32>();
    var low_high = mat4x4<f32>();
    var high_low = mat4x4<f32>();
    var high_high = mat4x4<f32>();
    let words = (params.inputs + 3u) / 4u;
    for (var chunk = 0u; chunk < words; chunk += CHUNK_WORDS) {
        let x = transpose(x_words(x_ix, chunk + word));
        let weight = transpose(weight_words(weight_ix, chunk + word));
        let at = CHUNK_WORDS * word * STEP + four;
        workgroupBarrier();
        sh_x[at] = x[0];
        sh_x[at + STEP] = x[1];
        sh_x[at + 2u * STEP] = x[2];
        sh_x[at + 3u * STEP] = x[3];
        sh_weight[at] = weight[0];
        sh_weight[at + STEP] = weight[1];
        sh_weight[at + 2u * STEP] = weight[2];
        sh_weight[at + 3u * STEP] = weight[3];
        workgroupBarrier();
        for (var i = 0u; i < CHUNK; i++) {
            let tokens = i * STEP + 2u * (lane / 8u);
            let outputs = i * STEP + 2u * (lane % 8u);
            let x_low = sh_x[tokens];
            let x_high = sh_x[tokens + 1u];
            let weight_low = sh_weight[outputs];
            let weight_high = sh_weight[outputs + 1u];
            low_low += outer(x_low, weight_low);
            low_high += outer(x_low, weight_high);
            high_low += outer(x_high, weight_low);
            high_high += outer(x_high, weight_high);
        }
    }
    let own_token = first_token + 8u * (lane / 8u);
    let own_output = first_output + 8u * (lane % 8u);
    store_four(own_token, own_output, low_low);
    store_four(own_token, own_output + 4u, low_high);
    store_four(own_token + 4u, own_output, high_low);
    store_four(own_token + 4u, own_output + 4u, high_high);
}
