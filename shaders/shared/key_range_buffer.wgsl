// Which keys a row of the batch has, from a buffer that the caller may change from step to step: its length, or its
// first key and one past its last.
@group(0) @binding(6) var<storage, read> key_ranges: array<i32>; // (B, 1 or 2)

fn key_range(batch: u32) -> vec2<i32> {
    let ix = place(params.key_ranges, batch, 0u, 0u);
    var range = vec2(0, key_ranges[ix]);
    if (params.range_starts != 0u) {
        range = vec2(key_ranges[ix], key_ranges[ix + params.key_ranges.channel]);
    }
    return clamp(range, vec2(0), vec2(i32(params.keys)));
}
