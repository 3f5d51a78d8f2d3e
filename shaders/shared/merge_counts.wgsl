// The sum of all gates: of those to the right of these keys, and of these.
// (B, T, H, counts + S): sums of gates of the keys from left to right, each {whole, fraction, 0, 0}, then fours of keys.
@group(0) @binding(16) var<storage, read_write> stored_gates: array<vec4<f32>>;

var<workgroup> sh_counts: array<Count, WG_SIZE>;

fn merge_counts(batch: u32, token: u32, head: u32, lane: u32) {
    let at = place(params.gates, batch, token, head) / 4u;
    var own = Count(0u, 0.0);
    for (var i = lane; i < params.counts; i += WG_SIZE) {
        own = add(own, Count(u32(stored_gates[at + i].x), stored_gates[at + i].y));
    }
    sh_counts[lane] = own;
    workgroupBarrier();
    if (lane == 0u) {
        var sum = gates_to_the_right(batch, token, head);
        for (var i = 0u; i < WG_SIZE; i++) {
            sum = add(sum, sh_counts[i]);
        }
        store_gate_sum(batch, token, head, sum);
    }
}
