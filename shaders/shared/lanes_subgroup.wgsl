// The lanes of a subgroup, of whatever size: of one that is larger than the workgroup those that have an invocation.
struct Lanes {
    count: u32,
    own: u32,
}

fn from_lane(x: vec4<f32>, lane: u32) -> vec4<f32> {
    return subgroupShuffle(x, lane);
}

fn all_lanes(x: bool) -> bool {
    return subgroupAll(x);
}

@compute @workgroup_size(WG_SIZE)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
    @builtin(subgroup_size) count: u32,
    @builtin(subgroup_invocation_id) own: u32,
) {
    attend(group, index, Lanes(min(count, WG_SIZE), own));
}
