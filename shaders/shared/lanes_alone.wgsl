// Each invocation for itself: all load the same key at the same time.
struct Lanes {
    count: u32,
    own: u32,
}

fn from_lane(x: vec4<f32>, lane: u32) -> vec4<f32> {
    return x;
}

fn all_lanes(x: bool) -> bool {
    return x;
}

@compute @workgroup_size(WG_SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    attend(group, index, Lanes(1u, 0u));
}
