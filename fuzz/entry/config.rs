//! Any text as a config: no panic, no hang, and what is accepted makes sense. What the corpus holds goes in here too, in
//! the tests.

use phasor::config::{ModelRope, Spec};
use phasor::frequencies::Frequencies;

/// Reads a text as a model's config and as settings on their own.
pub fn run(text: &str) {
    if let Ok(model) = ModelRope::from_hugging_face(text) {
        for rope in model.kinds() {
            let pairs = rope.rotary.pairs() as usize;
            assert_eq!(rope.axes.axis_of_pair().len(), pairs);
            check(&rope.frequencies(0).expect("checked when the file was read"), pairs);
            // A law that grows with the sequence may grow out of the numbers, and says so.
            if let Ok(longest) = rope.frequencies(u32::MAX) {
                check(&longest, pairs);
            }
        }
    }
    if let Ok(spec) = Spec::parse(text)
        && let Ok(frequencies) = spec.law().frequencies(128)
    {
        check(&frequencies, 64);
    }
}

fn check(frequencies: &Frequencies, pairs: usize) {
    assert_eq!(frequencies.pairs(), pairs);
    assert!(frequencies.inv_freq().iter().all(|w| w.is_finite() && *w >= 0.0));
    assert!(frequencies.attention_factor().is_finite() && frequencies.attention_factor() > 0.0);
}
