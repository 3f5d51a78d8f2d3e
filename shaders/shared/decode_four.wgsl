// Four queries to a workgroup, so that keys and values are read once for the four: each a column.
const ROWS = 4u;
alias PerRow = mat4x4<f32>;

fn get_row(x: PerRow, i: u32) -> vec4<f32> {
    return x[i];
}

fn places_of_rows(at: Place, task: Task) -> vec4<u32> {
    let x = row_of(task, 0u);
    let y = row_of(task, 1u);
    let z_ = row_of(task, 2u);
    let w = row_of(task, 3u);
    return vec4(
        place(at, task.batch, x.token, x.head),
        place(at, task.batch, y.token, y.head),
        place(at, task.batch, z_.token, z_.head),
        place(at, task.batch, w.token, w.head),
    );
}

// Four values' words, weighed.
fn add_values(sums: PerRow, at: vec4<u32>, four: u32, values: mat4x4<f32>) -> PerRow {
    return mat4x4(
        sums[0] + values * logits[at.x / 4u + four],
        sums[1] + values * logits[at.y / 4u + four],
        sums[2] + values * logits[at.z / 4u + four],
        sums[3] + values * logits[at.w / 4u + four],
    );
}
