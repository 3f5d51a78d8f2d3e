// Contextual position encoding (Golovneva et al., 2024): the gates of all splits to the right, then those of the runs to
// the right within the split, then the run's own.
@group(0) @binding(14) var<storage, read_write> z: array<f32>;                  // (B, T, H, N)
// (B, T, H, counts + S): sums of gates of the keys from left to right, each {whole, fraction, 0, 0}, then fours of keys.
@group(0) @binding(16) var<storage, read_write> stored_gates: array<vec4<f32>>;

// Each invocation's part of the gates of the splits to the right, and the gates of its run.
var<workgroup> sh_splits: array<Count, WG_SIZE>;
var<workgroup> sh_runs: array<Count, WG_SIZE>;
// The gates of a block of runs.
var<workgroup> sh_blocks: array<Count, WG_SIZE / BLOCK>;

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
    let gates_at = place(params.gates, task.batch, row.token, row.head) / 4u;
    sh_splits[lane] = gates_of_splits(gates_at, task.split, lane);
    sh_runs[lane] = gates_of_run(gates_at + params.counts, run);
    workgroupBarrier();
    if (lane < WG_SIZE / BLOCK) {
        sum_block(BLOCK * lane);
    }
    workgroupBarrier();
    var before = gates_to_the_right(task.batch, row.token, row.head);
    for (var i = 0u; i < WG_SIZE; i += BLOCK) {
        before = add(before, sh_splits[i]);
    }
    if (before.whole >= params.last_position) {
        return z_of(z_at, params.last_position) * params.bias_scale;
    }
    var start = before;
    for (var i = (lane / BLOCK + 1u) * BLOCK; i < WG_SIZE; i += BLOCK) {
        start = add(start, sh_blocks[i / BLOCK]);
    }
    start = add(start, sh_runs[lane]);
    var walk = Walk(start, z_of(z_at, start.whole), z_of(z_at, start.whole + 1u));
    for (var four = run.y; four > run.x; four--) {
        var biases = vec4(walk.above * params.bias_scale);
        if (walk.at.whole < params.last_position) {
            let gates = stored_gates[gates_at + params.counts + four - 1u];
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

// Sums a block's parts into the first of them, and makes of each run's gates those of the runs to its right.
fn sum_block(first: u32) {
    var splits = Count(0u, 0.0);
    var runs = Count(0u, 0.0);
    for (var i = first + BLOCK; i > first; i--) {
        splits = add(splits, sh_splits[i - 1u]);
        let run = sh_runs[i - 1u];
        sh_runs[i - 1u] = runs;
        runs = add(runs, run);
    }
    sh_splits[first] = splits;
    sh_blocks[first / BLOCK] = runs;
}

// An invocation's part of the gates of the splits to the right.
fn gates_of_splits(gates_at: u32, split: u32, lane: u32) -> Count {
    var sum = Count(0u, 0.0);
    for (var i = params.counts / params.splits * (split + 1u) + lane; i < params.counts; i += WG_SIZE) {
        sum = add(sum, Count(u32(stored_gates[gates_at + i].x), stored_gates[gates_at + i].y));
    }
    return sum;
}
