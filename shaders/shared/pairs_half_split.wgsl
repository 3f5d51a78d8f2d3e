// Half-split pairing: a lane's two words lie half of the turning channels apart, and are its pairs as they stand. So are
// single channels in either pairing.

fn to_pairs(a: Lane, b: Lane) -> Pairs {
    return Pairs(a, b);
}

fn from_pairs(x: Pairs) -> Pairs {
    return x;
}
