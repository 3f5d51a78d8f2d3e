// No rotation: nothing to know, and words come in their order.
alias Rotation = vec4<u32>;

fn words_of_two(i: u32) -> vec2<u32> {
    return vec2(2u * i, 2u * i + 1u);
}

fn position_of_key(key: u32) -> i32 {
    return 0;
}

fn turned_two(i: u32, position: i32, x: Two) -> Two {
    return x;
}
