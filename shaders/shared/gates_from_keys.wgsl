// Gates are made from keys of their own.
fn gate_place(batch: u32, key: u32, head: u32) -> u32 {
    return place(params.gate_keys, batch, key, head);
}

fn gate_two(ix: u32, i: u32, position: i32) -> Two {
    return gate_keys_two(ix, i, position);
}
