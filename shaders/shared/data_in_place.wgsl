// Queries and keys, each in place in a buffer of its own.
@group(0) @binding(3) var<storage, read_write> q: array<Word>; // (B, T, Hq, D)
@group(0) @binding(4) var<storage, read_write> k: array<Word>; // (B, T, Hk, D)

fn load_q(ix: u32) -> Lane {
    return decode(q[ix]);
}

fn store_q(ix: u32, x: Lane) {
    q[ix] = encode(x);
}

fn load_k(ix: u32) -> Lane {
    return decode(k[ix]);
}

fn store_k(ix: u32, x: Lane) {
    k[ix] = encode(x);
}
