// Four queries at once, as the components of vectors: what each sees, its softmax so far, and how far it has counted.

struct FourRows {
    token: vec4<u32>,
    head: vec4<u32>,
    // The keys that each sees by where they stand.
    start: vec4<i32>,
    end: vec4<i32>,
    // Online softmax (Milakov and Gimelshein, 2018): the largest logit, and the sum of exp2(logit - largest).
    largest: vec4<f32>,
    sum: vec4<f32>,
    // The gates so far, as an integer and a fraction; what the query makes of the position at the integer and of the
    // next one; and where it keeps that for all positions.
    whole: vec4<u32>,
    fraction: vec4<f32>,
    below: vec4<f32>,
    above: vec4<f32>,
    z: vec4<u32>,
}

// How one key changes a softmax: what the sums so far are multiplied with, and what the key's value weighs.
struct Weights {
    before: vec4<f32>,
    key: vec4<f32>,
}

fn four_rows(batch: u32, token: vec4<u32>, head: vec4<u32>, range: vec2<i32>) -> FourRows {
    var rows: FourRows;
    rows.token = token;
    rows.head = head;
    let x = span(range, token.x);
    let y = span(range, token.y);
    let z = span(range, token.z);
    let w = span(range, token.w);
    rows.start = vec4(x.x, y.x, z.x, w.x);
    rows.end = vec4(x.y, y.y, z.y, w.y);
    rows.largest = vec4(MASKED_DOUBLINGS);
    return rows;
}

fn seen(rows: FourRows, batch: u32, key: u32) -> vec4<bool> {
    let standing = (vec4(i32(key)) >= rows.start) & (vec4(i32(key)) < rows.end);
    let kept = vec4(
        keeps(batch, rows.token.x, rows.head.x, key),
        keeps(batch, rows.token.y, rows.head.y, key),
        keeps(batch, rows.token.z, rows.head.z, key),
        keeps(batch, rows.token.w, rows.head.w, key),
    );
    return standing & kept;
}

fn biases(rows: FourRows, batch: u32, key: u32) -> vec4<f32> {
    let natural = vec4(
        bias_at(batch, rows.token.x, rows.head.x, key),
        bias_at(batch, rows.token.y, rows.head.y, key),
        bias_at(batch, rows.token.z, rows.head.z, key),
        bias_at(batch, rows.token.w, rows.head.w, key),
    );
    // A mask may be f32's lowest number, of which there are no more doublings.
    return max(natural, vec4(MASKED)) * LOG2_E;
}

fn weigh(rows: ptr<private, FourRows>, logits: vec4<f32>) -> Weights {
    let largest = max((*rows).largest, logits);
    let weights = Weights(exp2((*rows).largest - largest), exp2(logits - largest));
    (*rows).largest = largest;
    (*rows).sum = (*rows).sum * weights.before + weights.key;
    return weights;
}

// Four rows of four channels, as the columns of a matrix, take in a key's value.
fn take_in(sums: mat4x4<f32>, value: vec4<f32>, weights: Weights) -> mat4x4<f32> {
    return mat4x4(
        sums[0] * weights.before.x + value * weights.key.x,
        sums[1] * weights.before.y + value * weights.key.y,
        sums[2] * weights.before.z + value * weights.key.z,
        sums[3] * weights.before.w + value * weights.key.w,
    );
}
