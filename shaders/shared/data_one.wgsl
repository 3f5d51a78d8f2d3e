// All tensors lie in one buffer: queries alone in place, a packed q | k | v projection, or an arena. One binding, since
// two writable ones may not share a range.
@group(0) @binding(3) var<storage, read_write> data: array<Word>; // q and k, in and out

fn load_q(ix: u32) -> Lane {
    return decode(data[ix]);
}

fn store_q(ix: u32, x: Lane) {
    data[ix] = encode(x);
}

fn load_k(ix: u32) -> Lane {
    return decode(data[ix]);
}

fn store_k(ix: u32, x: Lane) {
    data[ix] = encode(x);
}
