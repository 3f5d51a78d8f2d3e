// A number to add to each logit.
fn bias_at(batch: u32, token: u32, head: u32, key: u32) -> f32 {
    return load_bias(place(params.bias, batch, token, head) + key * params.bias.channel);
}
