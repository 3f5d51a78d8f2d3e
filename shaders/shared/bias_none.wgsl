// Nothing to add to logits.
fn bias_at(batch: u32, token: u32, head: u32, key: u32) -> f32 {
    return 0.0;
}
