// The logarithm of the sum of the exponentials of a query's logits.
@group(0) @binding(2) var<storage, read_write> lse: array<f32>; // (B, T, H)

fn store_lse(batch: u32, token: u32, head: u32, x: f32) {
    lse[place(params.lse, batch, token, head)] = x;
}
