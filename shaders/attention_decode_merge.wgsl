// Attention of few queries over many keys, last part: the splits' softmaxes as one.
//
//     out[t] = sum over splits of exp2(largest - m) * values / sum over splits of exp2(largest - m) * sum
//
// A workgroup takes a query, an invocation a word of four channels. Twin: src/reference/attention_merge.rs.

override WG_SIZE: u32 = 64u;

@group(0) @binding(18) var<storage, read_write> partials: array<vec4<f32>>; // (B, T, H, splits, {words, numbers})

@compute @workgroup_size(WG_SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let token = group.x;
    let head = group.y;
    let batch = group.z;
    let words = (params.value_channels + 3u) / 4u;
    let at = place(params.partials, batch, token, head) / 4u;

    var largest = MASKED_DOUBLINGS;
    for (var split = 0u; split < params.splits; split++) {
        largest = max(largest, partials[at + split * (words + 1u) + words].x);
    }
    let some = largest > MASKED_DOUBLINGS;
    var sum = 0.0;
    for (var split = 0u; split < params.splits; split++) {
        let numbers = partials[at + split * (words + 1u) + words];
        // A split of which nothing is seen has no largest logit.
        if (numbers.y > 0.0) {
            sum += exp2(numbers.x - largest) * numbers.y;
        }
    }
    for (var word = lane; word < words; word += WG_SIZE) {
        var values = vec4(0.0);
        for (var split = 0u; split < params.splits; split++) {
            let split_at = at + split * (words + 1u);
            let numbers = partials[split_at + words];
            // And no values.
            if (numbers.y > 0.0) {
                values += exp2(numbers.x - largest) * partials[split_at + word];
            }
        }
        store_out_word(place(params.out, batch, token, head), word, select(vec4(0.0), values / max(sum, 1.0), some));
    }
    if (lane == 0u) {
        store_lse(batch, token, head, select(MASKED, (largest + log2(max(sum, 1.0))) * LN_2, some));
    }
    merge_counts(batch, token, head, lane);
}
