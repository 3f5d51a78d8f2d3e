// Rotation of channels wherever they lie: a word is a channel, and a lane is a pair.

// Whether a channel turns, and as the first or as the second of which pair.
struct Member {
    turns: bool,
    second: bool,
    pair: u32,
}

fn member_of(channel: u32) -> Member {
    // One before the first wraps, to far beyond the last.
    let place = channel - params.rotation.first;
    let distance = params.rotation.distance;
    return Member(
        place < 2u * params.rotation.lanes,
        place / distance % 2u == 1u,
        place / (2u * distance) * distance + place % distance,
    );
}

// The other channel of a pair; a channel itself if it does not turn.
fn partner_of(channel: u32) -> u32 {
    let member = member_of(channel);
    let partner = select(channel + params.rotation.distance, channel - params.rotation.distance, member.second);
    return select(channel, partner, member.turns);
}

fn turned_channel(channel: u32, position: i32, x: f32, partner: f32) -> f32 {
    let member = member_of(channel);
    if (!member.turns) {
        return x;
    }
    let four = member.pair / 4u;
    let whole = params.rotation.fours[four].whole[member.pair % 4u];
    let rest = params.rotation.fours[four].rest[member.pair % 4u];
    let angle = turn_cos_sin(position, whole, rest);
    return (x * angle.cos + partner * select(-angle.sin, angle.sin, member.second)) * params.rotation.magnitude;
}
