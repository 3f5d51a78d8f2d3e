// One sum of gates to a split, for many of them.
var<workgroup> sh_whole: array<vec4<u32>, WG_SIZE>;
var<workgroup> sh_fraction: array<vec4<f32>, WG_SIZE>;

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
