// Where a tensor's words lie in its binding: distances in words.
struct Place {
    offset: u32,
    batch: u32,
    token: u32,
    head: u32,
    channel: u32,
    pad0: u32,
    pad1: u32,
    pad2: u32,
}

fn place(at: Place, batch: u32, token: u32, head: u32) -> u32 {
    return at.offset + batch * at.batch + token * at.token + head * at.head;
}
