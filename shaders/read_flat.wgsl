// What reading memory alone costs: each invocation adds up words of a tensor, neighbours side by side, and a workgroup
// writes a sum that nobody needs, so that no compiler leaves the reading out.

override WG_SIZE: u32 = 64u;

struct Params {
    words: u32,
    run: u32, // words to an invocation
    row: u32, // invocations along x
    pad: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> data: array<vec4<f32>>; // (words)
@group(0) @binding(2) var<storage, read_write> sums: array<vec4<f32>>; // (workgroups)

var<workgroup> sh_sums: array<vec4<f32>, WG_SIZE>;

@compute @workgroup_size(WG_SIZE, 1, 1)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let workgroup = group.y * (params.row / WG_SIZE) + group.x;
    let first = workgroup * WG_SIZE * params.run + lane;
    var sum = vec4(0.0);
    for (var i = 0u; i < params.run; i++) {
        let ix = first + i * WG_SIZE;
        if (ix < params.words) {
            sum += data[ix];
        }
    }
    sh_sums[lane] = sum;
    for (var half = WG_SIZE / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (lane < half) {
            sh_sums[lane] += sh_sums[lane + half];
        }
    }
    if (lane == 0u && workgroup < arrayLength(&sums)) {
        sums[workgroup] = sh_sums[0];
    }
}
