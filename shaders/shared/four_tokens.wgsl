// Four tokens to an invocation: what they share is read once. Behind the last token comes the last one again, so that
// it is computed twice and written twice, the same both times.
fn four_tokens(at: Place, batch: u32, head: u32, first: u32, n_tokens: u32) -> vec4<u32> {
    let tokens = min(vec4(first) + vec4(0u, 1u, 2u, 3u), vec4(n_tokens - 1u));
    return vec4(place(at, batch, 0u, head)) + tokens * at.token;
}
