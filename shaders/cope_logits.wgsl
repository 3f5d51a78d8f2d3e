// What each query makes of each position, in contextual position encoding.
//
//     z[t, p] = query[t] · E[:, p]
//
// Golovneva et al., Contextual Position Encoding, 2024. Twin: src/reference/cope.rs.
//
// An invocation takes one position and four tokens, so that E is read once for the four.

override WG_SIZE: u32 = 64u;

struct Params {
    query: Place,
    embeddings: Place, // its tokens are channels, its channels are positions
    z: Place,
    tokens: u32,
    heads: u32,
    channels: u32,
    positions: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(3) var<storage, read_write> z: array<f32>; // (B, T, H, N)

@compute @workgroup_size(WG_SIZE)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let position = id.x;
    let first = id.y * 4u;
    let head = id.z % params.heads;
    let batch = id.z / params.heads;
    if (position >= params.positions || first >= params.tokens) {
        return;
    }
    let rows = four_tokens(params.query, batch, head, first, params.tokens);
    let column = place(params.embeddings, 0u, 0u, head) + position * params.embeddings.channel;
    var sum = vec4(0.0);
    for (var c = 0u; c < params.channels; c++) {
        let ix = rows + c * params.query.channel;
        let q = vec4(load_query(ix.x), load_query(ix.y), load_query(ix.z), load_query(ix.w));
        sum += q * load_position_embeddings(column + c * params.embeddings.token);
    }
    let out = four_tokens(params.z, batch, head, first, params.tokens) + position * params.z.channel;
    z[out.x] = sum.x;
    z[out.y] = sum.y;
    z[out.z] = sum.z;
    z[out.w] = sum.w;
}
