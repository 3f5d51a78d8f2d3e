// The path for any layout: a lane is one pair of channels, and a word of a buffer holds one channel.
alias Lane = f32;
alias LaneU = u32;
alias LaneI = i32;
const LANE_PAIRS = 1u;

fn deinterleave(a: Lane, b: Lane) -> Pairs {
    return Pairs(a, b);
}

fn interleave(even: Lane, odd: Lane) -> Pairs {
    return Pairs(even, odd);
}
