// Contextual positions of four queries: `z` holds what each makes of each position, q · E, and rows slide along it from
// right to left. The integer stops at the last position, where both ends of the interval are the last one: so positions
// are clamped by themselves.
@group(0) @binding(14) var<storage, read_write> z: array<f32>; // (B, T, H, N)

fn start_counting(rows: ptr<private, FourRows>, batch: u32) {
    let token = (*rows).token;
    let head = (*rows).head;
    let x = gates_to_the_right(batch, token.x, head.x);
    let y = gates_to_the_right(batch, token.y, head.y);
    let z_ = gates_to_the_right(batch, token.z, head.z);
    let w = gates_to_the_right(batch, token.w, head.w);
    (*rows).whole = vec4(x.whole, y.whole, z_.whole, w.whole);
    (*rows).fraction = vec4(x.fraction, y.fraction, z_.fraction, w.fraction);
    (*rows).z = vec4(
        place(params.z, batch, token.x, head.x),
        place(params.z, batch, token.y, head.y),
        place(params.z, batch, token.z, head.z),
        place(params.z, batch, token.w, head.w),
    );
    let at = (*rows).z + min((*rows).whole, vec4(params.last_position)) * params.z.channel;
    let next = (*rows).z + min((*rows).whole + 1u, vec4(params.last_position)) * params.z.channel;
    (*rows).below = vec4(z[at.x], z[at.y], z[at.z], z[at.w]);
    (*rows).above = vec4(z[next.x], z[next.y], z[next.z], z[next.w]);
}

fn count(rows: ptr<private, FourRows>, gates: vec4<f32>) {
    let sum = (*rows).fraction + gates;
    let carries = sum >= vec4(1.0);
    (*rows).fraction = select(sum, sum - 1.0, carries);
    if (any(carries)) {
        (*rows).whole += vec4<u32>(carries);
        (*rows).below = select((*rows).below, (*rows).above, carries);
        // Once the last position is above, it stays there.
        let next = (*rows).whole + 1u;
        let slides = carries & (next <= vec4(params.last_position));
        let at = (*rows).z + next * params.z.channel;
        if (slides.x) {
            (*rows).above.x = z[at.x];
        }
        if (slides.y) {
            (*rows).above.y = z[at.y];
        }
        if (slides.z) {
            (*rows).above.z = z[at.z];
        }
        if (slides.w) {
            (*rows).above.w = z[at.w];
        }
    }
}

fn is_saturated(rows: FourRows) -> bool {
    return all(rows.whole >= vec4(params.last_position));
}

// A logit with its contextual bias, once its key is counted.
fn contextual(rows: FourRows, logits: vec4<f32>) -> vec4<f32> {
    return logits + (rows.below + rows.fraction * (rows.above - rows.below)) * params.bias_scale;
}
