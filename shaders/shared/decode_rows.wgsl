// The queries that share a key head, a few tokens' of them, as rows: all heads of the first token, of the second, and so
// on. A dispatch goes over splits of the keys, key heads, and rows of the batch with some rows each.
struct Row {
    token: u32,
    head: u32,
    // Whether there is such a query here.
    exists: bool,
    // The keys that it sees by where they stand.
    span: vec2<i32>,
}

struct Task {
    split: u32,
    key_head: u32,
    batch: u32,
    first_row: u32,
    // The keys that any of the rows sees.
    span: vec2<i32>,
}

fn task_of(group: vec3<u32>) -> Task {
    let tasks = (params.tokens * params.group + ROWS - 1u) / ROWS;
    let batch = group.z / tasks;
    let first_row = group.z % tasks * ROWS;
    let range = key_range(batch);
    let last_row = min(first_row + ROWS, params.tokens * params.group) - 1u;
    let x = span(range, first_row / params.group).x;
    let y = span(range, last_row / params.group).y;
    return Task(params.first_split + group.x, group.y, batch, first_row, vec2(x, y));
}

fn row_of(task: Task, i: u32) -> Row {
    let row = min(task.first_row + i, params.tokens * params.group - 1u);
    let token = row / params.group;
    let head = task.key_head * params.group + row % params.group;
    // Counted from the first head here: one before it wraps, to far beyond the last.
    let here = head - params.first_head;
    let exists = task.first_row + i == row && here < params.heads;
    return Row(token, min(here, params.heads - 1u), exists, span(key_range(task.batch), token));
}

// Keys lie in fours.
fn first_four(task: Task) -> u32 {
    return task.split * WG_SIZE * params.run / 4u;
}

fn is_seen(task: Task) -> bool {
    let first = i32(4u * first_four(task));
    return task.span.x < task.span.y && task.span.x < first + i32(WG_SIZE * params.run) && task.span.y > first;
}

// A four's keys, behind the last one that is seen the last one again.
fn keys_of(task: Task, four: u32) -> vec4<u32> {
    return min(vec4(4u * four) + vec4(0u, 1u, 2u, 3u), vec4(u32(max(task.span.y, 1) - 1)));
}
