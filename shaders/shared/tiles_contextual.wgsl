// Contextual position encoding (Golovneva et al., 2024): `z` holds what queries make of each position, q · E. A query
// slides along it from right to left; the integer part of its sum of gates stops at the last position.
@group(0) @binding(14) var<storage, read_write> z: array<f32>; // (B, T, H, N)

// Whether to count all keys, since somebody asks for the sum.
override COUNT_ALL: bool = false;

fn start_counting(row: ptr<function, TileRow>, batch: u32) {
    (*row).count = gates_to_the_right(batch, (*row).token, (*row).head);
    (*row).z = place(params.z, batch, (*row).token, (*row).head);
    (*row).below = z_of(*row, (*row).count.whole);
    (*row).above = z_of(*row, (*row).count.whole + 1u);
}

fn z_of(row: TileRow, position: u32) -> f32 {
    return z[row.z + min(position, params.last_position) * params.z.channel];
}

// A logit with its contextual bias. A query that has counted to the last position needs no gates any more.
fn contextual(row: ptr<function, TileRow>, product: f32, bias: f32, i: u32) -> f32 {
    if (!COUNT_ALL && (*row).count.whole >= params.last_position) {
        return product + bias + (*row).above * params.bias_scale;
    }
    let gate_logit = gate_product(product, i) + select(0.0, bias, GATES_SEE_BIAS);
    let e = exp2(-abs(gate_logit));
    let count = add((*row).count, Count(0u, select(e, 1.0, gate_logit >= 0.0) / (1.0 + e)));
    if (count.whole != (*row).count.whole) {
        (*row).below = (*row).above;
        (*row).above = z_of(*row, count.whole + 1u);
    }
    (*row).count = count;
    return product + bias + ((*row).below + count.fraction * ((*row).above - (*row).below)) * params.bias_scale;
}
