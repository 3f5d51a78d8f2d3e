// Contextual position encoding (Golovneva et al., 2024): the gates of all splits to the right, then those of the runs to
// the right within the split, scanned over its invocations (Hillis and Steele, 1986), then the run's own.
@group(0) @binding(14) var<storage, read_write> z: array<f32>;                  // (B, T, H, N)
@group(0) @binding(16) var<storage, read_write> stored_gates: array<vec4<f32>>; // (B, T, H, S), fours of keys
@group(0) @binding(17) var<storage, read_write> counts: array<f32>;             // (B, T, H, splits, {whole, fraction})

var<workgroup> sh_runs: array<Count, WG_SIZE>;
var<workgroup> sh_splits: array<Count, WG_SIZE>;

fn add_contextual_bias(task: Task, row: Row, lane: u32, run: vec2<u32>, at: u32) {
    let gates_at = place(params.gates, task.batch, row.token, row.head) / 4u;
    let own = gates_of_run(gates_at, run);
    var position = add(gates_to_the_right(task.batch, row.token, row.head), gates_before(task, row, lane, own));
    let z_at = place(params.z, task.batch, row.token, row.head);
    for (var four = run.y; four > run.x; four--) {
        let gates = stored_gates[gates_at + four - 1u];
        var biases = vec4(0.0);
        position = add(position, Count(0u, gates.w));
        biases.w = bias_of(z_at, position);
        position = add(position, Count(0u, gates.z));
        biases.z = bias_of(z_at, position);
        position = add(position, Count(0u, gates.y));
        biases.y = bias_of(z_at, position);
        position = add(position, Count(0u, gates.x));
        biases.x = bias_of(z_at, position);
        // What is hidden lies so low that no bias brings it back.
        if (row.exists) {
            logits[at + four - 1u] += biases;
        }
    }
}

fn gates_of_run(gates_at: u32, run: vec2<u32>) -> Count {
    var sum = Count(0u, 0.0);
    for (var four = run.x; four < run.y; four++) {
        let gates = stored_gates[gates_at + four];
        let all = (gates.x + gates.y) + (gates.z + gates.w);
        sum = add(sum, Count(u32(floor(all)), all - floor(all)));
    }
    return sum;
}

// The gates of all keys to the right of a run: in the splits to the right, and in the runs to the right in its split.
fn gates_before(task: Task, row: Row, lane: u32, own: Count) -> Count {
    var others = Count(0u, 0.0);
    let counts_at = place(params.counts, task.batch, row.token, row.head);
    for (var split = task.split + 1u + lane; split < params.splits; split += WG_SIZE) {
        let at = counts_at + 2u * split;
        others = add(others, Count(u32(counts[at]), counts[at + 1u]));
    }
    sh_runs[lane] = own;
    sh_splits[lane] = others;
    workgroupBarrier();
    var runs = Count(0u, 0.0);
    var sum = own;
    for (var step = 1u; step < WG_SIZE; step *= 2u) {
        var next = sum;
        if (lane + step < WG_SIZE) {
            next = add(sum, sh_runs[lane + step]);
        }
        let all = add(sh_splits[lane], sh_splits[(lane + step) % WG_SIZE]);
        workgroupBarrier();
        sum = next;
        sh_runs[lane] = sum;
        sh_splits[lane] = all;
        workgroupBarrier();
    }
    let to_the_right = sh_splits[lane];
    if (lane + 1u < WG_SIZE) {
        runs = sh_runs[lane + 1u];
    }
    workgroupBarrier();
    return add(to_the_right, runs);
}

fn bias_of(z_at: u32, position: Count) -> f32 {
    let below = z[z_at + min(position.whole, params.last_position) * params.z.channel];
    let above = z[z_at + min(position.whole + 1u, params.last_position) * params.z.channel];
    return (below + position.fraction * (above - below)) * params.bias_scale;
}
