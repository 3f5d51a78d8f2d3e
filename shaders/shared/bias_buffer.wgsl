// A number to add to each logit.
@group(0) @binding(5) var<storage, read> bias: array<f32>; // (B or 1, T or 1, H or 1, S)

fn bias_at(batch: u32, token: u32, head: u32, key: u32) -> f32 {
    return bias[place(params.bias, batch, token, head) + key * params.bias.channel];
}
