// A linear layer of many tokens, for drivers that run on CPU cores: an invocation owns four tokens and goes over their
// inputs, for some outputs that it shares with the others of its workgroup.
//
//     y[t, o] = sum over i of x[t, i] * weight[o, i] + bias[o]
//
// Twin: src/reference/projection.rs.
//
// Where invocations are the lanes of a vector register, loading from a place of each lane's own is what costs. So each
// four lanes of a subgroup load weights of four outputs, other fours other inputs of them, and hand them around.
// Sums are variables of their own: such drivers keep arrays that a loop indexes in memory, element by element.

override WG_SIZE: u32 = 8u;
const OUTPUTS = 32u;

// Tokens, as columns, by outputs: their products over four inputs.
fn products(x: mat4x4<f32>, weight: mat4x4<f32>) -> mat4x4<f32> {
    return mat4x4(x[0] * weight, x[1] * weight, x[2] * weight, x[3] * weight);
}

// Four inputs of four outputs, from the four lanes that hold them.
fn from_four(own: vec4<f32>, first: u32) -> mat4x4<f32> {
    return mat4x4(
        subgroupShuffle(own, first),
        subgroupShuffle(own, first + 1u),
        subgroupShuffle(own, first + 2u),
        subgroupShuffle(own, first + 3u),
    );
}

fn store_four(ix: vec4<u32>, first: u32, output: u32, sums: mat4x4<f32>) {
    let bias = bias_of(output);
    for (var i = 0u; i < 4u && first + i < params.tokens; i++) {
        store_outputs(ix[i], output, sums[i] + bias);
    }
}

@compute @workgroup_size(WG_SIZE)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
    @builtin(subgroup_size) subgroup: u32,
    @builtin(subgroup_invocation_id) own: u32,
) {
    let token = 4u * (group.y * WG_SIZE + index);
    let x_ix = token_places(params.x, token);
    let first = group.x * OUTPUTS;
    // Of each four outputs the one whose weights this lane loads, and of how many inputs the fours of lanes do.
    let output = first + own % 4u;
    let fours = min(subgroup, WG_SIZE) / 4u;
    let w0 = weight_place(output);
    let w1 = weight_place(output + 4u);
    let w2 = weight_place(output + 8u);
    let w3 = weight_place(output + 12u);
    let w4 = weight_place(output + 16u);
    let w5 = weight_place(output + 20u);
    let w6 = weight_place(output + 24u);
    let w7 = weight_place(output + 28u);
    var s0 = mat4x4<f32>();
    var s1 = mat4x4<f32>();
    var s2 = mat4x4<f32>();
    var s3 = mat4x4<f32>();
    var s4 = mat4x4<f32>();
    var s5 = mat4x4<f32>();
    var s6 = mat4x4<f32>();
    var s7 = mat4x4<f32>();
    let words = (params.inputs + 3u) / 4u;
    for (var word = 0u; word < words; word += fours) {
        let loaded = word + own / 4u;
        let own0 = weight_word(w0, loaded);
        let own1 = weight_word(w1, loaded);
        let own2 = weight_word(w2, loaded);
        let own3 = weight_word(w3, loaded);
        let own4 = weight_word(w4, loaded);
        let own5 = weight_word(w5, loaded);
        let own6 = weight_word(w6, loaded);
        let own7 = weight_word(w7, loaded);
        for (var i = 0u; i < fours; i++) {
            let at = x_place(word + i);
            let x = mat4x4(
                x_word(x_ix.x, at, word + i),
                x_word(x_ix.y, at, word + i),
                x_word(x_ix.z, at, word + i),
                x_word(x_ix.w, at, word + i),
            );
            s0 += products(x, from_four(own0, 4u * i));
            s1 += products(x, from_four(own1, 4u * i));
            s2 += products(x, from_four(own2, 4u * i));
            s3 += products(x, from_four(own3, 4u * i));
            s4 += products(x, from_four(own4, 4u * i));
            s5 += products(x, from_four(own5, 4u * i));
            s6 += products(x, from_four(own6, 4u * i));
            s7 += products(x, from_four(own7, 4u * i));
        }
    }
    let y_ix = token_places(params.y, token);
    store_four(y_ix, token, first, s0);
    store_four(y_ix, token, first + 4u, s1);
    store_four(y_ix, token, first + 8u, s2);
    store_four(y_ix, token, first + 12u, s3);
    store_four(y_ix, token, first + 16u, s4);
    store_four(y_ix, token, first + 20u, s5);
    store_four(y_ix, token, first + 24u, s6);
    store_four(y_ix, token, first + 28u, s7);
}
