// No boolean mask: every key is seen.
fn keeps(batch: u32, token: u32, head: u32, key: u32) -> bool {
    return true;
}
