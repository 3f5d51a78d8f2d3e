// No contextual position encoding: no gates.
fn begin_counts() {}

fn count_gates(task: Task, row: Row, r: u32, four: u32, gates: vec4<f32>) {}

fn store_counts(task: Task, lane: u32) {}
