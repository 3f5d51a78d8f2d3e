// Products of the queries' words with those of four keys, on top of others.
fn add_products(sums: PerRow, at: vec4<u32>, word: u32, keys: mat4x4<f32>) -> PerRow {
    return mat4x4(
        sums[0] + q_word(at.x, word) * keys,
        sums[1] + q_word(at.y, word) * keys,
        sums[2] + q_word(at.z, word) * keys,
        sums[3] + q_word(at.w, word) * keys,
    );
}
