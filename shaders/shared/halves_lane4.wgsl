// Four 16-bit floats in two u32, on devices with the f16 extension and without it.

fn f16_to_f32(bits: vec2<u32>) -> vec4<f32> {
    return vec4(unpack2x16float(bits.x), unpack2x16float(bits.y));
}

fn f32_to_f16(x: vec4<f32>) -> vec2<u32> {
    return vec2(pack2x16float(x.xy), pack2x16float(x.zw));
}

fn bf16_to_f32(bits: vec2<u32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(vec4(bits.x << 16u, bits.x & 0xffff0000u, bits.y << 16u, bits.y & 0xffff0000u));
}

fn f32_to_bf16(x: vec4<f32>) -> vec2<u32> {
    // To the nearest, ties to even. A NaN must not round to infinity: it keeps its sign and becomes quiet.
    let bits = bitcast<vec4<u32>>(x);
    let nearest = (bits + vec4(0x7fffu) + ((bits >> vec4(16u)) & vec4(1u))) >> vec4(16u);
    let is_nan = (bits & vec4(0x7fffffffu)) > vec4(0x7f800000u);
    let half = select(nearest, (bits >> vec4(16u)) | vec4(0x40u), is_nan);
    return vec2(half.x | (half.y << 16u), half.z | (half.w << 16u));
}
