//! The unfused pipeline against f64 for shapes, masks and variants that nobody picked.

use crate::case::Both;
use crate::common::Random;
use crate::request::{Cope, Request, Source, TOLERANCE};
use phasor::attention::Standing;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_device_agrees_with_the_reference(
        (batch, tokens, keys) in (1usize..3, 1usize..14, 0usize..300),
        (kv_heads, group, channels) in (1usize..3, 1usize..4, 1usize..40),
        (causal, window) in (any::<bool>(), proptest::option::of(0usize..300)),
        standing in prop_oneof![Just(Standing::Last), Just(Standing::RowLast), (-20i64..320).prop_map(Standing::From)],
        positions in proptest::option::of(1usize..200),
        (per_head, gates, sees_bias) in (any::<bool>(), 0..3, any::<bool>()),
        (has_bias, has_keep, has_ranges) in (any::<bool>(), any::<bool>(), any::<bool>()),
        seed in any::<u64>(),
    ) {
        let mut random = Random::new(seed);
        let heads = kv_heads * group;
        let mut request = Request::random(&mut random, [batch, tokens, keys], [heads, kv_heads, channels]);
        request = Request { causal, window, standing, ..request };
        request.bias = has_bias.then(|| Both::random(&mut random, [1, tokens, heads, keys], 1.0));
        request.keep = has_keep.then(|| Both::whole(&mut random, [batch, 1, 1, keys], 4));
        request.key_ranges = has_ranges.then(|| Both::whole(&mut random, [batch, 1, 1, 2], keys + 2));
        request.cope = positions.map(|positions| Cope {
            gates: match gates {
                0 => Source::Logits,
                1 => Source::Keys(Both::random(&mut random, [batch, keys, kv_heads, channels], 1.0)),
                _ => Source::Values,
            },
            gates_see_bias: sees_bias,
            ..Cope::new(Both::random(&mut random, [1, channels, if per_head { heads } else { 1 }, positions], 0.3))
        });
        request.assert_agrees("random", TOLERANCE);
    }
}
