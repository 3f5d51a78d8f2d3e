// Positions come from a buffer that the caller may change from step to step.
@group(0) @binding(2) var<storage, read> positions: array<i32>; // (B, T) or (B, 1) or (1, T)

const POSITIONS = true;

fn position_at(ix: u32) -> i32 {
    return positions[ix];
}
