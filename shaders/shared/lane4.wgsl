// The vector path: a lane is four pairs of channels, and a word of a buffer holds four channels.
alias Lane = vec4<f32>;
alias LaneU = vec4<u32>;
alias LaneI = vec4<i32>;
const LANE_PAIRS = 4u;

fn first_of(x: LaneI) -> i32 {
    return x.x;
}
