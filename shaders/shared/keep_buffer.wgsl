// A boolean mask: a key is seen where it is not 0.
@group(0) @binding(4) var<storage, read> keep: array<i32>; // (B or 1, T or 1, H or 1, S)

fn keeps(batch: u32, token: u32, head: u32, key: u32) -> bool {
    return keep[place(params.keep, batch, token, head) + key * params.keep.channel] != 0;
}
