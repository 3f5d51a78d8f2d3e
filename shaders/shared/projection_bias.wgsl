fn bias_of(output: u32) -> vec4<f32> {
    let at = vec4(params.bias.offset) + min(four_of(0u) + output, vec4(params.outputs - 1u)) * params.bias.channel;
    return vec4(load_bias(at.x), load_bias(at.y), load_bias(at.z), load_bias(at.w));
}
