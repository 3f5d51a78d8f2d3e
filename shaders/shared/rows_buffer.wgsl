// Which row of a cache each token is written to comes from a buffer that the caller may change from step to step.
@group(0) @binding(7) var<storage, read> rows: array<i32>; // (B, T), (B, 1), (1, T) or one

const ROWS = true;

fn row_at(ix: u32) -> i32 {
    return rows[ix];
}
