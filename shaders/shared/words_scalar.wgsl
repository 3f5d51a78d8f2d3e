// Four channels at a time, wherever they lie, and where there are fewer than four left: queries are 0 behind their last
// channel, so that what keys and values repeat there counts for nothing.
fn channels_of(word: u32) -> vec4<u32> {
    return vec4(4u * word) + vec4(0u, 1u, 2u, 3u);
}

fn places(ix: u32, word: u32, n_channels: u32, step: u32) -> vec4<u32> {
    return vec4(ix) + min(channels_of(word), vec4(n_channels - 1u)) * step;
}

fn within(word: u32, x: vec4<f32>) -> vec4<f32> {
    return select(vec4(0.0), x, channels_of(word) < vec4(params.channels));
}
