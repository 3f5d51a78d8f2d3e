// Gates are made from keys of their own.
fn products_for_gates(task: Task, q_at: vec4<u32>, keys: vec4<u32>, products: PerRow) -> PerRow {
    let x = place(params.gate_keys, task.batch, keys.x, task.key_head);
    let y = place(params.gate_keys, task.batch, keys.y, task.key_head);
    let z_ = place(params.gate_keys, task.batch, keys.z, task.key_head);
    let w = place(params.gate_keys, task.batch, keys.w, task.key_head);
    var sums = PerRow();
    for (var word = 0u; word < (params.channels + 3u) / 4u; word++) {
        let gate_words = mat4x4(
            gate_keys_word(x, word),
            gate_keys_word(y, word),
            gate_keys_word(z_, word),
            gate_keys_word(w, word),
        );
        sums = add_products(sums, q_at, word, gate_words);
    }
    return sums;
}
