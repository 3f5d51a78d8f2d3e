// Interleaved pairing: a lane's two words are neighbours, with the pairs' first channels at even places.

fn to_pairs(a: Lane, b: Lane) -> Pairs {
    return Pairs(vec4(a.xz, b.xz), vec4(a.yw, b.yw));
}

fn from_pairs(x: Pairs) -> Pairs {
    return Pairs(
        vec4(x.first.x, x.second.x, x.first.y, x.second.y),
        vec4(x.first.z, x.second.z, x.first.w, x.second.w),
    );
}
