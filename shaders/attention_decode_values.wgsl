// Attention of few queries over many keys, second part: the softmax of one split of the keys, and its weighted values.
//
//     partial[t, split] = (sum over s of exp2(logits[t, s] - largest) * v[s], largest, sum over s of exp2(..))
//
// Logits become weights in place. A workgroup takes a split: for the softmax each invocation takes a run of
// neighbouring keys; for the values, a word of four channels and every so many keys. Twin: src/reference/attention.rs.

override WG_SIZE: u32 = 64u;

@group(0) @binding(15) var<storage, read_write> logits: array<vec4<f32>>;   // (B, T, H, S), fours of keys
@group(0) @binding(18) var<storage, read_write> partials: array<vec4<f32>>; // (B, T, H, splits, {words, numbers})

var<workgroup> sh_numbers: array<f32, WG_SIZE>;
// Of each block.
var<workgroup> sh_largest: array<f32, WG_SIZE / BLOCK>;
var<workgroup> sh_sums: array<f32, WG_SIZE / BLOCK>;
var<workgroup> sh_words: array<vec4<f32>, WG_SIZE>;

@compute @workgroup_size(WG_SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let task = task_of(group);
    for (var r = 0u; r < ROWS; r++) {
        let row = row_of(task, r);
        let at = partial_at(task, row);
        var numbers = vec4(MASKED_DOUBLINGS, 0.0, 0.0, 0.0);
        if (is_seen(task)) {
            numbers = weigh_run(task, row, lane);
        }
        if (lane == 0u && row.exists) {
            partials[at + n_words()] = numbers;
        }
    }
    if (is_seen(task)) {
        // Weights are read by other invocations than wrote them.
        storageBarrier();
        sum_values(task, lane);
    }
}

fn n_words() -> u32 {
    return (params.value_channels + 3u) / 4u;
}

fn partial_at(task: Task, row: Row) -> u32 {
    return place(params.partials, task.batch, row.token, row.head) / 4u + task.split * (n_words() + 1u);
}

// The fours of this invocation's run: from x to before y.
fn run_of(task: Task, lane: u32) -> vec2<u32> {
    let first = first_four(task) + lane * (params.run / 4u);
    return min(vec2(first, first + params.run / 4u), vec2((params.keys + 3u) / 4u));
}

// Makes weights of a run's logits; the split's largest logit and sum of weights.
fn weigh_run(task: Task, row: Row, lane: u32) -> vec4<f32> {
    let at = place(params.logits, task.batch, row.token, row.head) / 4u;
    let run = run_of(task, lane);
    let bias = add_contextual_bias(task, row, lane, run, at);
    var largest = MASKED_DOUBLINGS;
    for (var four = run.x; four < run.y; four++) {
        let x = logits[at + four] + bias;
        largest = max(largest, max(max(x.x, x.y), max(x.z, x.w)));
    }
    largest = largest_of_all(lane, largest);
    var sum = 0.0;
    for (var four = run.x; four < run.y; four++) {
        let x = logits[at + four] + bias;
        let weights = select(vec4(0.0), exp2(x - largest), x > vec4(MASKED_DOUBLINGS));
        if (row.exists) {
            logits[at + four] = weights;
        }
        sum += (weights.x + weights.y) + (weights.z + weights.w);
    }
    return vec4(largest, sum_of_all(lane, sum), 0.0, 0.0);
}

// A number of all invocations is made of blocks of eight, and of eight blocks: as fast as halving, with a third of the
// barriers, which are dear on devices that are CPUs.
const BLOCK = 8u;

fn largest_of_all(lane: u32, own: f32) -> f32 {
    sh_numbers[lane] = own;
    workgroupBarrier();
    if (lane < WG_SIZE / BLOCK) {
        var largest = sh_numbers[BLOCK * lane];
        for (var i = 1u; i < BLOCK; i++) {
            largest = max(largest, sh_numbers[BLOCK * lane + i]);
        }
        sh_largest[lane] = largest;
    }
    workgroupBarrier();
    var largest = sh_largest[0];
    for (var i = 1u; i < WG_SIZE / BLOCK; i++) {
        largest = max(largest, sh_largest[i]);
    }
    return largest;
}

fn sum_of_all(lane: u32, own: f32) -> f32 {
    sh_numbers[lane] = own;
    workgroupBarrier();
    if (lane < WG_SIZE / BLOCK) {
        var sum = sh_numbers[BLOCK * lane];
        for (var i = 1u; i < BLOCK; i++) {
            sum += sh_numbers[BLOCK * lane + i];
        }
        sh_sums[lane] = sum;
    }
    workgroupBarrier();
    var sum = sh_sums[0];
    for (var i = 1u; i < WG_SIZE / BLOCK; i++) {
        sum += sh_sums[i];
    }
    return sum;
}

fn sum_values(task: Task, lane: u32) {
    let rows_at = places_of_rows(params.logits, task);
    let first = first_four(task);
    // Fours that any row sees.
    let begin = max(first, u32(max(task.span.x, 0)) / 4u);
    let end = min(first + WG_SIZE * params.run / 4u, (u32(max(task.span.y, 0)) + 3u) / 4u);
    for (var first_word = 0u; first_word < n_words(); first_word += WG_SIZE) {
        let words = min(n_words() - first_word, WG_SIZE);
        let word = first_word + lane % words;
        let share = lane / words;
        let shares = WG_SIZE / words;
        var sums = PerRow();
        if (share < shares) {
            for (var four = begin + share; four < end; four += shares) {
                let keys = keys_of(task, four);
                let values = mat4x4(
                    v_word(place(params.v, task.batch, keys.x, task.key_head), word),
                    v_word(place(params.v, task.batch, keys.y, task.key_head), word),
                    v_word(place(params.v, task.batch, keys.z, task.key_head), word),
                    v_word(place(params.v, task.batch, keys.w, task.key_head), word),
                );
                sums = add_values(sums, rows_at, four, values);
            }
        }
        for (var r = 0u; r < ROWS; r++) {
            sh_words[lane] = get_row(sums, r);
            workgroupBarrier();
            let row = row_of(task, r);
            if (share == 0u && row.exists) {
                var sum = vec4(0.0);
                for (var i = lane; i < shares * words; i += words) {
                    sum += sh_words[i];
                }
                partials[partial_at(task, row) + word] = sum;
            }
            workgroupBarrier();
        }
    }
}
