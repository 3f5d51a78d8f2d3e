// Gates are made from the logits.
const GATES_APART = false;

fn gate_product(product: f32, i: u32) -> f32 {
    return product;
}

fn key_word(of_gates: bool, batch: u32, key: u32, head: u32, word: u32) -> vec4<f32> {
    return k_word(place(params.k, batch, key, head), word);
}

fn keep_gate_products(lane: u32) {}
