// What the fused attention kernels are told. Logits are counted in doublings: a natural logit times log2 e, so that
// exp2 alone serves softmax and gates.

const LOG2_E = 1.4426950408889634;
const LN_2 = 0.6931471805599453;
// At or below this a logit is masked; those that are masked lie well below it, so that exp2 makes nothing of them.
const MASKED_DOUBLINGS = MASKED * LOG2_E;
const HIDDEN = -2e30;
// What is larger counts as this: a difference of infinities would be no number.
const LARGEST = 3e38;

struct Params {
    q: Place,
    k: Place,
    v: Place,
    out: Place,
    query: Place,
    embeddings: Place, // its tokens are channels, its channels are positions
    gate_keys: Place,
    keep: Place,
    bias: Place,
    key_ranges: Place,
    gate_sum: Place,
    gate_sum_out: Place,
    lse: Place,
    z: Place,
    logits: Place,
    gates: Place,
    partials: Place,
    tokens: u32,
    keys: u32,
    heads: u32,
    first_head: u32, // of these query heads, counted from the first one of the first key head here
    group: u32,      // query heads to a key head
    channels: u32,
    value_channels: u32,
    last_position: u32, // positions - 1
    // Query t sees keys from visible_start + t to visible_end + t, behind the row's last key if from_row_end is 1.
    visible_start: i32,
    visible_end: i32,
    from_row_end: i32,
    range_starts: u32, // whether key ranges have a start
    scale: f32,      // times log2 e
    bias_scale: f32, // times log2 e
    splits: u32, // of the keys
    run: u32,    // keys to an invocation of a split, a multiple of four
    first_split: u32, // that this dispatch does
    counts: u32, // sums of gates, as many to each split
    rotation: Rotation,
}

@group(0) @binding(0) var<uniform> params: Params;

// Whether the bias is part of what gates are made from.
override GATES_SEE_BIAS: bool = true;

// The keys that a query sees by where they stand, among those that its row of the batch has: from x to before y.
fn span(range: vec2<i32>, token: u32) -> vec2<i32> {
    let by = i32(token) + range.y * params.from_row_end;
    return vec2(max(range.x, params.visible_start + by), min(range.y, params.visible_end + by));
}

fn key_head(head: u32) -> u32 {
    return (params.first_head + head) / params.group;
}

// 0 for what is no finite number. By its bits: compilers may take it for granted that there is no such thing.
fn finite(x: vec4<f32>) -> vec4<f32> {
    let exponents = bitcast<vec4<u32>>(x) & vec4(0x7f800000u);
    return select(x, vec4(0.0), exponents == vec4(0x7f800000u));
}

// Two words of four channels of a key's head.
struct Two {
    first: vec4<f32>,
    second: vec4<f32>,
}

// Logits of four keys or of four queries, and what is masked among them.
fn hide(seen: vec4<bool>, logits: vec4<f32>) -> vec4<f32> {
    return select(vec4(HIDDEN), min(logits, vec4(LARGEST)), seen & (logits > vec4(MASKED_DOUBLINGS)));
}

// How much a key counts: the sigmoid of its logit, split by sign so that nothing overflows, and 0 for a masked one.
fn gates(logits: vec4<f32>, gate_logits: vec4<f32>) -> vec4<f32> {
    let e = exp2(-abs(gate_logits));
    let sigmoid = select(e, vec4(1.0), gate_logits >= vec4(0.0)) / (1.0 + e);
    return select(vec4(0.0), sigmoid, logits > vec4(MASKED_DOUBLINGS));
}
