// Rotary encoding: turns each pair of channels of queries and keys by an angle that grows with the token's position.
//
//     y0 = x0 * cos - x1 * sin
//     y1 = x0 * sin + x1 * cos
//
// Su et al., RoFormer, 2021. Twin: src/reference/rope_rotate.rs.
//
// An invocation takes one lane of pairs of one token, makes (or reads) its cosines and sines once, and turns that lane
// of Q_SLOTS query heads and K_SLOTS key heads with them. Slots are written out: software devices pay for a rolled
// loop, and a constant condition costs nothing.

override WG_X: u32 = 16u;
override WG_Y: u32 = 1u;
override WG_Z: u32 = 4u;
// Heads that one invocation turns: 1 to 8 of q, 0 to 8 of k.
override Q_SLOTS: u32 = 4u;
override K_SLOTS: u32 = 1u;
// Whether channel 2i pairs with 2i + 1 (interleaved) or i with i + pairs (half-split).
override INTERLEAVED: bool = false;
// Whether rows of the batch do not follow each other in memory, so that batch and token must be told apart.
override BATCHED: bool = false;
// Whether the last group has fewer heads than slots.
override TAIL: bool = false;
// Whether channels that do not turn are copied, as they must be out of place.
override COPIES: bool = false;

// Where a tensor's words lie: distances in words.
struct Place {
    offset: u32,
    batch: u32,
    token: u32,
    head: u32,
    channel: u32,
    pad0: u32,
    pad1: u32,
    pad2: u32,
}

struct Params {
    q: Place,
    q_out: Place,
    k: Place,
    k_out: Place,
    // Where the position of (batch, token) lies in `positions`, and what is added to it: all of it zero, or i32 steps.
    position: Place,
    start: i32,
    start_batch: i32,
    start_token: i32,
    tokens: u32,
    rows: u32,     // batch * tokens
    groups: u32,   // of Q_SLOTS and K_SLOTS heads
    q_heads: u32,
    k_heads: u32,
    lanes: u32,    // of pairs, in a head
    copies: u32,   // words of a head that do not turn
    first: u32,    // the word where the turning channels begin
    lane_step: u32, // words from one lane to the next
    pair_step: u32, // words from a lane's first word to its second
    cos_scale: f32,
    sin_scale: f32,
    pad: u32,
}

@group(0) @binding(0) var<uniform> params: Params;

fn place(at: Place, batch: u32, token: u32, head: u32) -> u32 {
    return at.offset + batch * at.batch + token * at.token + head * at.head;
}

fn turn(a: Lane, b: Lane, by: CosSin) -> Pairs {
    var x = Pairs(a, b);
    if (INTERLEAVED) {
        x = deinterleave(a, b);
    }
    let y = Pairs(x.first * by.cos - x.second * by.sin, x.first * by.sin + x.second * by.cos);
    if (INTERLEAVED) {
        return interleave(y.first, y.second);
    }
    return y;
}

fn turn_q(ix: u32, out_ix: u32, by: CosSin) {
    let y = turn(load_q(ix), load_q(ix + params.pair_step * params.q.channel), by);
    store_q(out_ix, y.first);
    store_q(out_ix + params.pair_step * params.q_out.channel, y.second);
}

fn turn_k(ix: u32, out_ix: u32, by: CosSin) {
    let y = turn(load_k(ix), load_k(ix + params.pair_step * params.k.channel), by);
    store_k(out_ix, y.first);
    store_k(out_ix + params.pair_step * params.k_out.channel, y.second);
}

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let lane = id.x;
    let group = id.y;
    let row = id.z;
    if (lane >= params.lanes + params.copies || group >= params.groups || row >= params.rows) {
        return;
    }
    var batch = 0u;
    var token = row;
    if (BATCHED) {
        batch = row / params.tokens;
        token = row % params.tokens;
    }
    let q_head = group * Q_SLOTS;
    let k_head = group * K_SLOTS;
    let q_ix = place(params.q, batch, token, q_head);
    let q_out_ix = place(params.q_out, batch, token, q_head);
    let k_ix = place(params.k, batch, token, k_head);
    let k_out_ix = place(params.k_out, batch, token, k_head);

    if (COPIES && lane >= params.lanes) {
        // The words before and behind the turning ones, one to an invocation.
        let copy = lane - params.lanes;
        let turning = params.lanes * 2u;
        let word = select(copy + turning, copy, copy < params.first);
        for (var slot = 0u; slot < Q_SLOTS && q_head + slot < params.q_heads; slot++) {
            store_q(
                q_out_ix + slot * params.q_out.head + word * params.q_out.channel,
                load_q(q_ix + slot * params.q.head + word * params.q.channel),
            );
        }
        for (var slot = 0u; slot < K_SLOTS && k_head + slot < params.k_heads; slot++) {
            store_k(
                k_out_ix + slot * params.k_out.head + word * params.k_out.channel,
                load_k(k_ix + slot * params.k.head + word * params.k.channel),
            );
        }
        return;
    }

    let at = place(params.position, batch, token, 0u);
    let position = position_at(at)
        + params.start + i32(batch) * params.start_batch + i32(token) * params.start_token;
    var by = cos_sin(lane, params.lanes, position);
    by = CosSin(by.cos * params.cos_scale, by.sin * params.sin_scale);

    let word = params.first + lane * params.lane_step;
    let q_at = q_ix + word * params.q.channel;
    let q_out_at = q_out_ix + word * params.q_out.channel;
    let k_at = k_ix + word * params.k.channel;
    let k_out_at = k_out_ix + word * params.k_out.channel;
    if (Q_SLOTS > 0u && (!TAIL || q_head + 0u < params.q_heads)) {
        turn_q(q_at, q_out_at, by);
    }
    if (Q_SLOTS > 1u && (!TAIL || q_head + 1u < params.q_heads)) {
        turn_q(q_at + 1u * params.q.head, q_out_at + 1u * params.q_out.head, by);
    }
    if (Q_SLOTS > 2u && (!TAIL || q_head + 2u < params.q_heads)) {
        turn_q(q_at + 2u * params.q.head, q_out_at + 2u * params.q_out.head, by);
    }
    if (Q_SLOTS > 3u && (!TAIL || q_head + 3u < params.q_heads)) {
        turn_q(q_at + 3u * params.q.head, q_out_at + 3u * params.q_out.head, by);
    }
    if (Q_SLOTS > 4u && (!TAIL || q_head + 4u < params.q_heads)) {
        turn_q(q_at + 4u * params.q.head, q_out_at + 4u * params.q_out.head, by);
    }
    if (Q_SLOTS > 5u && (!TAIL || q_head + 5u < params.q_heads)) {
        turn_q(q_at + 5u * params.q.head, q_out_at + 5u * params.q_out.head, by);
    }
    if (Q_SLOTS > 6u && (!TAIL || q_head + 6u < params.q_heads)) {
        turn_q(q_at + 6u * params.q.head, q_out_at + 6u * params.q_out.head, by);
    }
    if (Q_SLOTS > 7u && (!TAIL || q_head + 7u < params.q_heads)) {
        turn_q(q_at + 7u * params.q.head, q_out_at + 7u * params.q_out.head, by);
    }
    if (K_SLOTS > 0u && (!TAIL || k_head + 0u < params.k_heads)) {
        turn_k(k_at, k_out_at, by);
    }
    if (K_SLOTS > 1u && (!TAIL || k_head + 1u < params.k_heads)) {
        turn_k(k_at + 1u * params.k.head, k_out_at + 1u * params.k_out.head, by);
    }
    if (K_SLOTS > 2u && (!TAIL || k_head + 2u < params.k_heads)) {
        turn_k(k_at + 2u * params.k.head, k_out_at + 2u * params.k_out.head, by);
    }
    if (K_SLOTS > 3u && (!TAIL || k_head + 3u < params.k_heads)) {
        turn_k(k_at + 3u * params.k.head, k_out_at + 3u * params.k_out.head, by);
    }
    if (K_SLOTS > 4u && (!TAIL || k_head + 4u < params.k_heads)) {
        turn_k(k_at + 4u * params.k.head, k_out_at + 4u * params.k_out.head, by);
    }
    if (K_SLOTS > 5u && (!TAIL || k_head + 5u < params.k_heads)) {
        turn_k(k_at + 5u * params.k.head, k_out_at + 5u * params.k_out.head, by);
    }
    if (K_SLOTS > 6u && (!TAIL || k_head + 6u < params.k_heads)) {
        turn_k(k_at + 6u * params.k.head, k_out_at + 6u * params.k_out.head, by);
    }
    if (K_SLOTS > 7u && (!TAIL || k_head + 7u < params.k_heads)) {
        turn_k(k_at + 7u * params.k.head, k_out_at + 7u * params.k_out.head, by);
    }
}
