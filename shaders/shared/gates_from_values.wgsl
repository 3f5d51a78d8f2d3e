// Gates are made from the values.
fn gate_place(batch: u32, key: u32, head: u32) -> u32 {
    return place(params.v, batch, key, head);
}

fn gate_two(ix: u32, i: u32, position: i32) -> Two {
    return v_two(ix, i, position);
}
