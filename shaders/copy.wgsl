// What memory alone costs: reads every word of queries and keys once and writes it back, as a rotation in place does.
//
// Beside it a rotation is measured. Its shape is the rotation's: an invocation takes two neighbouring words of one
// token, in the Q_HEADS query heads and K_HEADS key heads of its group. Tensors are contiguous (tokens, heads, channels),
// and words hold four numbers, taken as bits so that none is changed.

override WG_X: u32 = 16u;
override WG_Z: u32 = 4u;
// Heads to an invocation.
override Q_HEADS: u32 = 1u;
override K_HEADS: u32 = 1u;

struct Params {
    lanes: u32,   // pairs of words in a head
    q_heads: u32,
    k_heads: u32,
    tokens: u32,
    flip: u32,    // 0, which a compiler cannot know: else it might leave out the whole kernel
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> q: array<vec4<u32>>; // (T, Hq, D / 4)
@group(0) @binding(2) var<storage, read_write> k: array<vec4<u32>>; // (T, Hk, D / 4)

@compute @workgroup_size(WG_X, 1, WG_Z)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let lane = id.x;
    let token = id.z;
    if (lane >= params.lanes || token >= params.tokens) {
        return;
    }
    let flip = vec4(params.flip);
    let head_step = params.lanes * 2u;

    // Both loops test at their end: a test at the head costs an extra, masked turn on software devices.
    var head = id.y * Q_HEADS;
    var end = min(head + Q_HEADS, params.q_heads);
    if (head < end) {
        var at = (token * params.q_heads + head) * head_step + 2u * lane;
        loop {
            let a = q[at];
            let b = q[at + 1u];
            q[at] = a ^ flip;
            q[at + 1u] = b ^ flip;
            continuing {
                at += head_step;
                head += 1u;
                break if head >= end;
            }
        }
    }
    head = id.y * K_HEADS;
    end = min(head + K_HEADS, params.k_heads);
    if (head < end) {
        var at = (token * params.k_heads + head) * head_step + 2u * lane;
        loop {
            let a = k[at];
            let b = k[at + 1u];
            k[at] = a ^ flip;
            k[at + 1u] = b ^ flip;
            continuing {
                at += head_step;
                head += 1u;
                break if head >= end;
            }
        }
    }
}
