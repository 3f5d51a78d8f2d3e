// Sums of the gates of a split's keys, for each row, and the gates themselves: positions are made of them when all splits
// to the right are known.
// (B, T, H, counts + S): sums of gates of the keys from left to right, each {whole, fraction, 0, 0}, then fours of keys.
// In one binding, since some devices have no more than these kernels take.
@group(0) @binding(16) var<storage, read_write> stored_gates: array<vec4<f32>>;

// A component for each row.
var<private> whole: vec4<u32>;
var<private> fraction: vec4<f32>;

fn begin_counts() {
    whole = vec4(0u);
    fraction = vec4(0.0);
}

fn count_gates(task: Task, row: Row, r: u32, four: u32, gates: vec4<f32>) {
    stored_gates[place(params.gates, task.batch, row.token, row.head) / 4u + params.counts + four] = gates;
    // Four gates have a whole part too.
    let sum = fraction[r] + (gates.x + gates.y) + (gates.z + gates.w);
    let carry = floor(sum);
    whole[r] += u32(carry);
    fraction[r] = sum - carry;
}
