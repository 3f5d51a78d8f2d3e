// A linear layer whose heads' channels lie in whole words of four.
alias WordPlace = u32;

fn x_place(word: u32) -> WordPlace {
    let at = min(word, params.inputs / 4u - 1u);
    // Heads that follow each other without a gap are one.
    if (params.channels == params.inputs) {
        return at;
    }
    let words = params.channels / 4u;
    return at / words * params.x.head + at % words;
}

fn x_word(ix: u32, at: WordPlace, word: u32) -> vec4<f32> {
    return within_inputs(word, load_x(ix + at));
}

fn weight_word(ix: u32, word: u32) -> vec4<f32> {
    return within_inputs(word, load_weight(ix + min(word, params.inputs / 4u - 1u)));
}

// Of a token at `ix`: four outputs from this one of these weights' on, a multiple of four.
fn store_outputs(ix: u32, output: u32, x: vec4<f32>) {
    if (output < params.outputs) {
        let at = (params.first_output + output) / 4u;
        let words = params.y_channels / 4u;
        store_y(ix + at / words * params.y.head + at % words, x);
    }
}
