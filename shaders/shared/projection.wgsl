// What the kernels of a linear layer are told, and how they reach its tensors four channels at a time.
//
//     y[t, o] = sum over i of x[t, i] * weight[o, i] + bias[o]
//
// Tokens are counted through all rows of the batch. A token's inputs and outputs are its heads' channels one after the
// other. Behind the last token, output or input comes the last one again, or a 0.

struct Params {
    x: Place,
    weight: Place, // its tokens are outputs
    bias: Place,
    y: Place,
    batch_tokens: u32, // to a row of the batch
    tokens: u32,       // of all rows
    inputs: u32,
    channels: u32, // of a head of x
    outputs: u32,  // of these weights
    first_output: u32, // of these weights among those of y
    y_channels: u32,   // of a head of y
    pad: u32,
}

@group(0) @binding(0) var<uniform> params: Params;

fn token_place(at: Place, token: u32) -> u32 {
    let here = min(token, params.tokens - 1u);
    return place(at, here / params.batch_tokens, here % params.batch_tokens, 0u);
}

fn token_places(at: Place, first: u32) -> vec4<u32> {
    return vec4(
        token_place(at, first),
        token_place(at, first + 1u),
        token_place(at, first + 2u),
        token_place(at, first + 3u),
    );
}

fn weight_place(output: u32) -> u32 {
    return place(params.weight, 0u, min(output, params.outputs - 1u), 0u);
}

fn weight_places(output: u32) -> vec4<u32> {
    return vec4(
        weight_place(output),
        weight_place(output + 1u),
        weight_place(output + 2u),
        weight_place(output + 3u),
    );
}

// Inputs, or outputs, by fours.
fn four_of(word: u32) -> vec4<u32> {
    return vec4(4u * word) + vec4(0u, 1u, 2u, 3u);
}

fn within_inputs(word: u32, x: vec4<f32>) -> vec4<f32> {
    return select(vec4(0.0), x, four_of(word) < vec4(params.inputs));
}

// Four inputs of four outputs.
fn weight_words(ix: vec4<u32>, word: u32) -> mat4x4<f32> {
    return mat4x4(weight_word(ix.x, word), weight_word(ix.y, word), weight_word(ix.z, word), weight_word(ix.w, word));
}
