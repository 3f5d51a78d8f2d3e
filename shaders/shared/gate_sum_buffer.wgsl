// The sum of the gates of keys to the right of these, from another part of a sequence.
@group(0) @binding(3) var<storage, read> gate_sum: array<f32>; // (B, T, H, {whole, fraction})

fn gates_to_the_right(batch: u32, token: u32, head: u32) -> Count {
    let ix = place(params.gate_sum, batch, token, head);
    return Count(u32(gate_sum[ix]), gate_sum[ix + params.gate_sum.channel]);
}
