// Rotary encoding (Su et al., RoFormer, 2021): which words of a head turn, and how far per token.
struct Rotation {
    first: u32,         // the first word that turns
    lanes: u32,         // of two words each
    distance: u32,      // words between a lane's two
    first_key: i32,     // where key 0 stands
    magnitude: f32,     // of a rotation: the attention factor
    pad0: u32,
    pad1: u32,
    pad2: u32,
    fours: array<FourTurns, 64>,
}

// Four pairs as turn.wgsl wants them.
struct FourTurns {
    whole: vec4<u32>,
    rest: vec4<f32>,
}

fn position_of_key(key: u32) -> i32 {
    return params.rotation.first_key + i32(key);
}
