// The path for any layout: a lane is one pair of channels, and a word of a buffer holds one channel.
alias Lane = f32;
alias LaneU = u32;
alias LaneI = i32;
const LANE_PAIRS = 1u;

fn first_of(x: LaneI) -> i32 {
    return x;
}
