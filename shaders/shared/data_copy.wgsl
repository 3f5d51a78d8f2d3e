// Queries and keys, from their buffers to two others.
@group(0) @binding(3) var<storage, read> q: array<Word>;           // (B, T, Hq, D)
@group(0) @binding(4) var<storage, read_write> q_out: array<Word>; // (B, T, Hq, D)
@group(0) @binding(5) var<storage, read> k: array<Word>;           // (B, T, Hk, D)
@group(0) @binding(6) var<storage, read_write> k_out: array<Word>; // (B, T, Hk, D)

fn load_q(ix: u32) -> Lane {
    return decode(q[ix]);
}

fn store_q(ix: u32, x: Lane) {
    q_out[ix] = encode(x);
}

fn load_k(ix: u32) -> Lane {
    return decode(k[ix]);
}

fn store_k(ix: u32, x: Lane) {
    k_out[ix] = encode(x);
}
