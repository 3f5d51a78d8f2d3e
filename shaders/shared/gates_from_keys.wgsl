// Gates are made from keys of their own.
fn products_for_gates(task: Task, q_at: vec4<u32>, keys: vec4<u32>, products: PerRow) -> PerRow {
    let x = place(params.gate_keys, task.batch, keys.x, task.key_head);
    let y = place(params.gate_keys, task.batch, keys.y, task.key_head);
    let z_ = place(params.gate_keys, task.batch, keys.z, task.key_head);
    let w = place(params.gate_keys, task.batch, keys.w, task.key_head);
    var sums = PerRow();
    for (var i = 0u; i < ((params.channels + 3u) / 4u + 1u) / 2u; i++) {
        sums = add_two(
            sums,
            q_at,
            words_of_two(i),
            gate_keys_two(x, i, position_of_key(keys.x)),
            gate_keys_two(y, i, position_of_key(keys.y)),
            gate_keys_two(z_, i, position_of_key(keys.z)),
            gate_keys_two(w, i, position_of_key(keys.w)),
        );
    }
    return sums;
}
