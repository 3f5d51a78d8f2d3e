// Gates are made from the values.
fn products_for_gates(task: Task, q_at: vec4<u32>, keys: vec4<u32>, products: PerRow) -> PerRow {
    let x = place(params.v, task.batch, keys.x, task.key_head);
    let y = place(params.v, task.batch, keys.y, task.key_head);
    let z_ = place(params.v, task.batch, keys.z, task.key_head);
    let w = place(params.v, task.batch, keys.w, task.key_head);
    var sums = PerRow();
    for (var i = 0u; i < ((params.channels + 3u) / 4u + 1u) / 2u; i++) {
        sums = add_two(
            sums,
            q_at,
            words_of_two(i),
            v_two(x, i, position_of_key(keys.x)),
            v_two(y, i, position_of_key(keys.y)),
            v_two(z_, i, position_of_key(keys.z)),
            v_two(w, i, position_of_key(keys.w)),
        );
    }
    return sums;
}
