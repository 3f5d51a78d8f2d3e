// The sum of all gates, for the keys to the left of these.
@group(0) @binding(4) var<storage, read_write> gate_sum_out: array<f32>; // (B, T, H, {whole, fraction})

fn store_gate_sum(batch: u32, token: u32, head: u32, sum: Count) {
    let ix = place(params.gate_sum_out, batch, token, head);
    gate_sum_out[ix] = f32(sum.whole);
    gate_sum_out[ix + params.gate_sum_out.channel] = sum.fraction;
}
