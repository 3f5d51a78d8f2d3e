// Words of four channels, each channel turned with its partner.

fn partners_of(channels: vec4<u32>) -> vec4<u32> {
    return vec4(partner_of(channels.x), partner_of(channels.y), partner_of(channels.z), partner_of(channels.w));
}

fn turned_channels(channels: vec4<u32>, position: i32, x: vec4<f32>, partners: vec4<f32>) -> vec4<f32> {
    return vec4(
        turned_channel(channels.x, position, x.x, partners.x),
        turned_channel(channels.y, position, x.y, partners.y),
        turned_channel(channels.z, position, x.z, partners.z),
        turned_channel(channels.w, position, x.w, partners.w),
    );
}

fn words_of_two(i: u32) -> vec2<u32> {
    return vec2(2u * i, 2u * i + 1u);
}

// They have turned when they were loaded.
fn turned_two(i: u32, position: i32, x: Two) -> Two {
    return x;
}
