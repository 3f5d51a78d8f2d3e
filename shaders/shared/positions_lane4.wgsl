// Positions come from a buffer that the caller may change from step to step.
@group(0) @binding(2) var<storage, read> positions: array<i32>; // (B, T, axes), (B, 1, axes), (1, T, axes) or one

const POSITIONS = true;

fn positions_at(ix: LaneU) -> LaneI {
    return LaneI(positions[ix.x], positions[ix.y], positions[ix.z], positions[ix.w]);
}
