// Gates are made from something else than the keys: products of their own.
fn products_for_gates(task: Task, q_at: vec4<u32>, keys: vec4<u32>, products: PerRow) -> PerRow {
    let x = gate_place(task.batch, keys.x, task.key_head);
    let y = gate_place(task.batch, keys.y, task.key_head);
    let z_ = gate_place(task.batch, keys.z, task.key_head);
    let w = gate_place(task.batch, keys.w, task.key_head);
    var sums = PerRow();
    for (var i = 0u; i < ((params.channels + 3u) / 4u + 1u) / 2u; i++) {
        sums = add_two(
            sums,
            q_at,
            words_of_two(i),
            gate_two(x, i, position_of_key(keys.x)),
            gate_two(y, i, position_of_key(keys.y)),
            gate_two(z_, i, position_of_key(keys.z)),
            gate_two(w, i, position_of_key(keys.w)),
        );
    }
    return sums;
}
