// Sums of gates of a split's keys, for each row, and the gates themselves: positions are made of them when all splits to
// the right are known.
// (B, T, H, splits + S): each split's {whole, fraction, 0, 0}, then fours of keys. In one binding, since some devices have
// no more than these kernels take.
@group(0) @binding(16) var<storage, read_write> stored_gates: array<vec4<f32>>;

// A component for each row.
var<workgroup> sh_whole: array<vec4<u32>, WG_SIZE>;
var<workgroup> sh_fraction: array<vec4<f32>, WG_SIZE>;
var<private> whole: vec4<u32>;
var<private> fraction: vec4<f32>;

fn begin_counts() {
    whole = vec4(0u);
    fraction = vec4(0.0);
}

fn count_gates(task: Task, row: Row, r: u32, four: u32, gates: vec4<f32>) {
    stored_gates[place(params.gates, task.batch, row.token, row.head) / 4u + params.splits + four] = gates;
    // Four gates have a whole part too.
    let sum = fraction[r] + (gates.x + gates.y) + (gates.z + gates.w);
    let carry = floor(sum);
    whole[r] += u32(carry);
    fraction[r] = sum - carry;
}

fn store_counts(task: Task, lane: u32) {
    sh_whole[lane] = whole;
    sh_fraction[lane] = fraction;
    workgroupBarrier();
    for (var half = WG_SIZE / 2u; half > 0u; half /= 2u) {
        if (lane < half) {
            let sum = sh_fraction[lane] + sh_fraction[lane + half];
            let carries = sum >= vec4(1.0);
            sh_whole[lane] += sh_whole[lane + half] + vec4<u32>(carries);
            sh_fraction[lane] = select(sum, sum - 1.0, carries);
        }
        workgroupBarrier();
    }
    if (lane < ROWS) {
        let row = row_of(task, lane);
        if (row.exists) {
            let at = place(params.gates, task.batch, row.token, row.head) / 4u;
            stored_gates[at + task.split] = vec4(f32(sh_whole[0][lane]), sh_fraction[0][lane], 0.0, 0.0);
        }
    }
}
