// The vector path: a lane is four pairs of channels, and a word of a buffer holds four channels.
alias Lane = vec4<f32>;
alias LaneU = vec4<u32>;
alias LaneI = vec4<i32>;
const LANE_PAIRS = 4u;

// Two words of neighbouring channels: those at even places and those at odd ones.
fn deinterleave(a: Lane, b: Lane) -> Pairs {
    return Pairs(vec4(a.xz, b.xz), vec4(a.yw, b.yw));
}

fn interleave(even: Lane, odd: Lane) -> Pairs {
    return Pairs(vec4(even.x, odd.x, even.y, odd.y), vec4(even.z, odd.z, even.w, odd.w));
}
