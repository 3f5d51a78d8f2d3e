// Gates are made from the values.
fn products_for_gates(task: Task, q_at: vec4<u32>, keys: vec4<u32>, products: PerRow) -> PerRow {
    let x = place(params.v, task.batch, keys.x, task.key_head);
    let y = place(params.v, task.batch, keys.y, task.key_head);
    let z_ = place(params.v, task.batch, keys.z, task.key_head);
    let w = place(params.v, task.batch, keys.w, task.key_head);
    var sums = PerRow();
    for (var word = 0u; word < (params.channels + 3u) / 4u; word++) {
        let values = mat4x4(
            v_word(x, word),
            v_word(y, word),
            v_word(z_, word),
            v_word(w, word),
        );
        sums = add_products(sums, q_at, word, values);
    }
    return sums;
}
