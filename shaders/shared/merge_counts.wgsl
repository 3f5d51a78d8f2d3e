// The sum of all gates: of those to the right of these keys, and of all splits.
@group(0) @binding(17) var<storage, read_write> counts: array<f32>; // (B, T, H, splits, {whole, fraction})

fn merge_counts(batch: u32, token: u32, head: u32) {
    var sum = gates_to_the_right(batch, token, head);
    let at = place(params.counts, batch, token, head);
    for (var split = 0u; split < params.splits; split++) {
        sum = add(sum, Count(u32(counts[at + 2u * split]), counts[at + 2u * split + 1u]));
    }
    store_gate_sum(batch, token, head, sum);
}
