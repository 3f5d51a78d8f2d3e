// Products of the query's word with those of four keys, on top of others.
fn add_products(sums: PerRow, at: vec4<u32>, word: u32, keys: mat4x4<f32>) -> PerRow {
    return sums + q_word(at.x, word) * keys;
}
