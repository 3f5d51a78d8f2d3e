// Contextual position encoding (Golovneva et al., 2024): the gates of all splits to the right, then those of the runs to
// the right within the split, scanned over its invocations (Hillis and Steele, 1986), then the run's own.
@group(0) @binding(14) var<storage, read_write> z: array<f32>;                  // (B, T, H, N)
// (B, T, H, splits + S): each split's {whole, fraction, 0, 0}, then fours of keys.
@group(0) @binding(16) var<storage, read_write> stored_gates: array<vec4<f32>>;

var<workgroup> sh_runs: array<Count, WG_SIZE>;
var<workgroup> sh_before: Count;

// A position on its way from right to left, with what the query makes of the whole positions at both sides of it: `z` is
// read where a whole position is passed, and no more once the last one is reached.
struct Walk {
    at: Count,
    below: f32,
    above: f32,
}

fn z_of(z_at: u32, position: u32) -> f32 {
    return z[z_at + min(position, params.last_position) * params.z.channel];
}

fn pass_key(walk: Walk, z_at: u32, gate: f32) -> Walk {
    var next = walk;
    next.at = add(walk.at, Count(0u, gate));
    if (next.at.whole != walk.at.whole) {
        next.below = walk.above;
        next.above = z_of(z_at, next.at.whole + 1u);
    }
    return next;
}

fn bias_at_position(walk: Walk) -> f32 {
    return (walk.below + walk.at.fraction * (walk.above - walk.below)) * params.bias_scale;
}

// Adds the bias to a run's logits, or returns it if it is the same for all of the split.
fn add_contextual_bias(task: Task, row: Row, lane: u32, run: vec2<u32>, at: u32) -> f32 {
    let z_at = place(params.z, task.batch, row.token, row.head);
    if (lane == 0u) {
        sh_before = gates_of_splits(task, row);
    }
    // The same for all invocations, so that all of them may leave here.
    let before = workgroupUniformLoad(&sh_before);
    if (before.whole >= params.last_position) {
        return z_of(z_at, params.last_position) * params.bias_scale;
    }
    let gates_at = place(params.gates, task.batch, row.token, row.head) / 4u + params.splits;
    let start = gates_before(before, lane, gates_of_run(gates_at, run));
    var walk = Walk(start, z_of(z_at, start.whole), z_of(z_at, start.whole + 1u));
    for (var four = run.y; four > run.x; four--) {
        var biases = vec4(walk.above * params.bias_scale);
        if (walk.at.whole < params.last_position) {
            let gates = stored_gates[gates_at + four - 1u];
            walk = pass_key(walk, z_at, gates.w);
            biases.w = bias_at_position(walk);
            walk = pass_key(walk, z_at, gates.z);
            biases.z = bias_at_position(walk);
            walk = pass_key(walk, z_at, gates.y);
            biases.y = bias_at_position(walk);
            walk = pass_key(walk, z_at, gates.x);
            biases.x = bias_at_position(walk);
        }
        // What is hidden lies so low that no bias brings it back.
        if (row.exists) {
            logits[at + four - 1u] += biases;
        }
    }
    return 0.0;
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

// The gates of all keys to the right of a run: those before its split, and those of the runs to its right.
fn gates_before(before: Count, lane: u32, own: Count) -> Count {
    // Each run hands its gates to the one at its left, and the rightmost one is handed what was before.
    if (lane > 0u) {
        sh_runs[lane - 1u] = own;
    } else {
        sh_runs[WG_SIZE - 1u] = before;
    }
    workgroupBarrier();
    var sum = sh_runs[lane];
    for (var step = 1u; step < WG_SIZE; step *= 2u) {
        if (lane + step < WG_SIZE) {
            sum = add(sum, sh_runs[lane + step]);
        }
        workgroupBarrier();
        sh_runs[lane] = sum;
        workgroupBarrier();
    }
    return sum;
}

fn gates_of_splits(task: Task, row: Row) -> Count {
    var sum = gates_to_the_right(task.batch, row.token, row.head);
    let at = place(params.gates, task.batch, row.token, row.head) / 4u;
    for (var split = task.split + 1u; split < params.splits; split++) {
        let count = stored_gates[at + split];
        sum = add(sum, Count(u32(count.x), count.y));
    }
    return sum;
}
