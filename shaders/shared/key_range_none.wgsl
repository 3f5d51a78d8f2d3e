// Every row of the batch has all of the keys.
fn key_range(batch: u32) -> vec2<i32> {
    return vec2(0, i32(params.keys));
}
