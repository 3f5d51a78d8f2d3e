// Queries alone, from one buffer to another.
@group(0) @binding(3) var<storage, read> q: array<Word>;           // (B, T, Hq, D)
@group(0) @binding(4) var<storage, read_write> q_out: array<Word>; // (B, T, Hq, D)

fn load_q(ix: u32) -> Lane {
    return decode(q[ix]);
}

fn store_q(ix: u32, x: Lane) {
    q_out[ix] = encode(x);
}

// There are no keys: K_SLOTS is 0, and these are never called.
fn load_k(ix: u32) -> Lane {
    return load_q(ix);
}

fn store_k(ix: u32, x: Lane) {
    store_q(ix, x);
}
