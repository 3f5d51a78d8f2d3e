// A sum of gates, kept as an integer and a fraction: no matter how many gates are added, it is off by no more than
// the few roundings of its fraction, each 2^-25 at most, and floor and remainder fall out by themselves.
struct Count {
    whole: u32,
    fraction: f32, // in [0, 1)
}

fn add(a: Count, b: Count) -> Count {
    let fraction = a.fraction + b.fraction;
    let carries = fraction >= 1.0;
    return Count(a.whole + b.whole + u32(carries), select(fraction, fraction - 1.0, carries));
}

// How much a key counts: the sigmoid of its logit, split by sign so that nothing overflows, and 0 for a masked one.
fn gate(logit: f32) -> f32 {
    let e = exp(-abs(logit));
    return select(select(e, 1.0, logit >= 0.0) / (1.0 + e), 0.0, logit <= MASKED);
}
