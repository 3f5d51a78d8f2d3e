// The sum of all gates: of those to the right of these keys, and of all splits.
// (B, T, H, splits + S): each split's {whole, fraction, 0, 0}, then fours of keys.
@group(0) @binding(16) var<storage, read_write> stored_gates: array<vec4<f32>>;

fn merge_counts(batch: u32, token: u32, head: u32) {
    var sum = gates_to_the_right(batch, token, head);
    let at = place(params.gates, batch, token, head) / 4u;
    for (var split = 0u; split < params.splits; split++) {
        let count = stored_gates[at + split];
        sum = add(sum, Count(u32(count.x), count.y));
    }
    store_gate_sum(batch, token, head, sum);
}
