// Rotary encoding: turns each pair of channels of queries and keys by an angle that grows with the token's position.
//
//     y0 = x0 * cos - x1 * sin
//     y1 = x0 * sin + x1 * cos
//
// Su et al., RoFormer, 2021. Twin: src/reference/rope_rotate.rs.
//
// An invocation takes one lane of pairs of one token, makes (or reads) its cosines and sines once, and turns that lane
// of a group of heads with them: some of the queries', some of the keys'.

override WG_X: u32 = 16u;
override WG_Y: u32 = 1u;
override WG_Z: u32 = 4u;
// Whether rows of the batch do not follow each other in memory, so that batch and token must be told apart.
override BATCHED: bool = false;
// Whether channels that do not turn are copied, as they must be out of place.
override COPIES: bool = false;
// Whether pairs turn by different ones of a token's positions.
override AXES: bool = false;
// Whose output goes to the rows of a cache that a buffer names.
override Q_ROWS: bool = false;
override K_ROWS: bool = false;

struct Params {
    q: Place,
    q_out: Place,
    k: Place,
    k_out: Place,
    position: Place, // in `positions`; an axis is a head
    row: Place,      // in `rows`
    start: i32,       // added to a position, with
    start_batch: i32, // so much for each row of the batch
    start_token: i32, // and so much for each token
    row_start: i32,   // added to a row, with
    row_token: i32,   // so much for each token
    cache_rows: u32,  // that there are
    tokens: u32,
    rows: u32,     // batch * tokens
    groups: u32,   // of heads
    q_heads: u32,
    k_heads: u32,
    q_group: u32,  // heads of q to a group
    k_group: u32,  // heads of k to a group
    lanes: u32,    // of pairs, in a head
    copies: u32,   // words of a head that do not turn
    first: u32,    // the word where the turning channels begin
    lane_step: u32, // words from one lane to the next
    pair_step: u32, // words from a lane's first word to its second
    cos_scale: f32,
    sin_scale: f32,
}

@group(0) @binding(0) var<uniform> params: Params;

fn turn(a: Lane, b: Lane, by: CosSin) -> Pairs {
    let x = to_pairs(a, b);
    return from_pairs(Pairs(x.first * by.cos - x.second * by.sin, x.first * by.sin + x.second * by.cos));
}

// The heads of one group.
struct Heads {
    first: u32,
    end: u32,
}

fn heads_of(group: u32, size: u32, n_heads: u32) -> Heads {
    return Heads(min(group * size, n_heads), min(group * size + size, n_heads));
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
        token = row - batch * params.tokens;
    }
    var q_heads = heads_of(group, params.q_group, params.q_heads);
    var k_heads = heads_of(group, params.k_group, params.k_heads);
    var q_ix = place(params.q, batch, token, q_heads.first);
    var q_out_ix = place(params.q_out, batch, token, q_heads.first);
    var k_ix = place(params.k, batch, token, k_heads.first);
    var k_out_ix = place(params.k_out, batch, token, k_heads.first);

    if (ROWS) {
        let row_out = u32(row_at(place(params.row, batch, token, 0u)) + params.row_start + i32(token) * params.row_token);
        // A row that the cache lacks (a negative one is how engines say: do not keep it) is written nowhere.
        let exists = row_out < params.cache_rows;
        if (Q_ROWS) {
            q_out_ix = place(params.q_out, batch, row_out, q_heads.first);
            q_heads.end = select(q_heads.first, q_heads.end, exists);
        }
        if (K_ROWS) {
            k_out_ix = place(params.k_out, batch, row_out, k_heads.first);
            k_heads.end = select(k_heads.first, k_heads.end, exists);
        }
    }

    if (COPIES && lane >= params.lanes) {
        // The words before and behind the turning ones, one to an invocation.
        let copy = lane - params.lanes;
        let word = select(copy + 2u * params.lanes, copy, copy < params.first);
        for (var head = q_heads.first; head < q_heads.end; head++) {
            copy_q(q_ix + word * params.q.channel, q_out_ix + word * params.q_out.channel);
            q_ix += params.q.head;
            q_out_ix += params.q_out.head;
        }
        for (var head = k_heads.first; head < k_heads.end; head++) {
            copy_k(k_ix + word * params.k.channel, k_out_ix + word * params.k_out.channel);
            k_ix += params.k.head;
            k_out_ix += params.k_out.head;
        }
        return;
    }

    var position_ix = LaneU(place(params.position, batch, token, 0u));
    if (AXES) {
        position_ix += axes_of(lane) * params.position.head;
    }
    let start = params.start + i32(batch) * params.start_batch + i32(token) * params.start_token;
    let position = positions_at(position_ix) + LaneI(start);
    let angle = cos_sin(lane, params.lanes, position);
    let by = CosSin(angle.cos * params.cos_scale, angle.sin * params.sin_scale);

    // One head after the other, both of its words before either is stored. Loops test at their end: a test at the head
    // costs SwiftShader an extra turn with every lane masked.
    let word = params.first + lane * params.lane_step;
    if (q_heads.first < q_heads.end) {
        let second = params.pair_step * params.q.channel;
        let second_out = params.pair_step * params.q_out.channel;
        let step = params.q.head;
        let step_out = params.q_out.head;
        q_ix += word * params.q.channel;
        q_out_ix += word * params.q_out.channel;
        var head = q_heads.first;
        loop {
            let y = turn(load_q(q_ix), load_q(q_ix + second), by);
            store_q(q_out_ix, y.first);
            store_q(q_out_ix + second_out, y.second);
            continuing {
                q_ix += step;
                q_out_ix += step_out;
                head++;
                break if head >= q_heads.end;
            }
        }
    }
    if (k_heads.first < k_heads.end) {
        let second = params.pair_step * params.k.channel;
        let second_out = params.pair_step * params.k_out.channel;
        let step = params.k.head;
        let step_out = params.k_out.head;
        k_ix += word * params.k.channel;
        k_out_ix += word * params.k_out.channel;
        var head = k_heads.first;
        loop {
            let y = turn(load_k(k_ix), load_k(k_ix + second), by);
            store_k(k_out_ix, y.first);
            store_k(k_out_ix + second_out, y.second);
            continuing {
                k_ix += step;
                k_out_ix += step_out;
                head++;
                break if head >= k_heads.end;
            }
        }
    }
}
