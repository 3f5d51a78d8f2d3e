// No contextual bias.
const GATES_APART = false;

fn start_counting(row: ptr<function, TileRow>, batch: u32) {}

fn contextual(row: ptr<function, TileRow>, product: f32, bias: f32, i: u32) -> f32 {
    return product + bias;
}

fn key_two(of_gates: bool, batch: u32, key: u32, head: u32, i: u32) -> Two {
    return k_two(place(params.k, batch, key, head), i, position_of_key(key));
}

fn keep_gate_products(lane: u32) {}
