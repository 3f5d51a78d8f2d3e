// What memory alone costs, told without heads and tokens: each invocation reads eight neighbouring words of a tensor and
// writes them back. The fastest copy on some software devices; shaders/copy.wgsl is on others.

override WG_X: u32 = 256u;

struct Params {
    words: u32,
    row: u32,  // invocations along x
    flip: u32, // 0, which a compiler cannot know: else it might leave out the whole kernel
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> data: array<vec4<u32>>; // (words)

fn move_word(ix: u32) {
    data[ix] = data[ix] ^ vec4(params.flip);
}

@compute @workgroup_size(WG_X, 1, 1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let first = (id.y * params.row + id.x) * 8u;
    if (first + 8u <= params.words) {
        move_word(first);
        move_word(first + 1u);
        move_word(first + 2u);
        move_word(first + 3u);
        move_word(first + 4u);
        move_word(first + 5u);
        move_word(first + 6u);
        move_word(first + 7u);
        return;
    }
    for (var ix = first; ix < params.words; ix++) {
        move_word(ix);
    }
}
