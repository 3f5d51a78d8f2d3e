// Rotation where pairs lie in whole words of four channels: two words are a lane of four pairs.

fn turned(lane: u32, position: i32, x: Two) -> Two {
    let angle = turn_cos_sin(vec4(position), params.rotation.fours[lane].whole, params.rotation.fours[lane].rest);
    let cos = angle.cos * params.rotation.magnitude;
    let sin = angle.sin * params.rotation.magnitude;
    let pairs = to_pairs(x.first, x.second);
    let turned = from_pairs(Pairs(
        pairs.first * cos - pairs.second * sin,
        pairs.first * sin + pairs.second * cos,
    ));
    return Two(turned.first, turned.second);
}

// The lanes' words first, two by two, then those that do not turn.
fn words_of_two(i: u32) -> vec2<u32> {
    let distance = params.rotation.distance;
    if (i < params.rotation.lanes) {
        let first = params.rotation.first + i / distance * 2u * distance + i % distance;
        return vec2(first, first + distance);
    }
    let still = vec2(2u * (i - params.rotation.lanes)) + vec2(0u, 1u);
    return select(still, still + 2u * params.rotation.lanes, still >= vec2(params.rotation.first));
}

fn turned_two(i: u32, position: i32, x: Two) -> Two {
    if (i < params.rotation.lanes) {
        return turned(i, position, x);
    }
    return x;
}
