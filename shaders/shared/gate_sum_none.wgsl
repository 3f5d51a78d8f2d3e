// These are all keys: nothing is counted to their right.
fn gates_to_the_right(batch: u32, token: u32, head: u32) -> Count {
    return Count(0u, 0.0);
}
