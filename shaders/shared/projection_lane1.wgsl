// A linear layer whose tensors lie in any way, channel by channel.
alias WordPlace = vec4<u32>;

fn x_place(word: u32) -> WordPlace {
    let at = min(four_of(word), vec4(params.inputs - 1u));
    return at / params.channels * params.x.head + at % params.channels * params.x.channel;
}

fn x_word(ix: u32, at: WordPlace, word: u32) -> vec4<f32> {
    return within_inputs(word, vec4(load_x(ix + at.x), load_x(ix + at.y), load_x(ix + at.z), load_x(ix + at.w)));
}

fn weight_word(ix: u32, word: u32) -> vec4<f32> {
    let at = vec4(ix) + min(four_of(word), vec4(params.inputs - 1u)) * params.weight.channel;
    return within_inputs(word, vec4(load_weight(at.x), load_weight(at.y), load_weight(at.z), load_weight(at.w)));
}

// Of a token at `ix`: four outputs from this one of these weights' on, or as many as there are.
fn store_outputs(ix: u32, output: u32, x: vec4<f32>) {
    for (var i = 0u; i < 4u && output + i < params.outputs; i++) {
        let at = params.first_output + output + i;
        store_y(ix + at / params.y_channels * params.y.head + at % params.y_channels * params.y.channel, x[i]);
    }
}
