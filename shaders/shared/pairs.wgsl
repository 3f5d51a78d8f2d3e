// Two lanes of channels: element i of `first` and element i of `second` are a pair.
struct Pairs {
    first: Lane,
    second: Lane,
}
