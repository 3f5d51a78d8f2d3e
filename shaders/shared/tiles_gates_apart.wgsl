// Gates are made from something else than the keys: their products come first, and each invocation keeps its query's.
const GATES_APART = true;

var<private> gate_products: array<f32, TILE_KEYS>;

fn gate_product(product: f32, i: u32) -> f32 {
    return gate_products[i];
}

fn keep_gate_products(lane: u32) {
    for (var i = 0u; i < TILE_KEYS; i++) {
        gate_products[i] = sh_weights[i * TILE_ROWS + lane] * params.scale;
    }
}

fn key_two(of_gates: bool, batch: u32, key: u32, head: u32, i: u32) -> Two {
    if (of_gates) {
        return gate_two(gate_place(batch, key, head), i, position_of_key(key));
    }
    return k_two(place(params.k, batch, key, head), i, position_of_key(key));
}
