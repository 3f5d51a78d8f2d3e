// One query to a workgroup.
const ROWS = 1u;
alias PerRow = vec4<f32>;

fn get_row(x: PerRow, i: u32) -> vec4<f32> {
    return x;
}

fn places_of_rows(at: Place, task: Task) -> vec4<u32> {
    let row = row_of(task, 0u);
    return vec4(place(at, task.batch, row.token, row.head));
}

// Four values' words, weighed.
fn add_values(sums: PerRow, at: vec4<u32>, four: u32, values: mat4x4<f32>) -> PerRow {
    return sums + values * logits[at.x / 4u + four];
}
