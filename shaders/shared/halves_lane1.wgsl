// One 16-bit float in the lower half of a u32, on devices with the f16 extension and without it.

fn f16_to_f32(bits: u32) -> f32 {
    return unpack2x16float(bits).x;
}

fn f32_to_f16(x: f32) -> u32 {
    return pack2x16float(vec2(x, 0.0));
}

fn bf16_to_f32(bits: u32) -> f32 {
    return bitcast<f32>(bits << 16u);
}

fn f32_to_bf16(x: f32) -> u32 {
    // To the nearest, ties to even. A NaN must not round to infinity: it keeps its sign and becomes quiet.
    let bits = bitcast<u32>(x);
    let nearest = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
    return select(nearest, (bits >> 16u) | 0x40u, (bits & 0x7fffffffu) > 0x7f800000u);
}
