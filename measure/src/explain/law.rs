//! What there is to say about each scaling law: its formula, its settings, and where programs disagree.

use phasor::Rotary;
use phasor::frequencies::{Law, LongRopePolicy, Magnitude, Yarn};

/// The base of the series that the law scales.
pub fn base(law: &Law) -> Option<f64> {
    match law {
        Law::Plain(law) => Some(law.base),
        Law::Linear(law) => Some(law.base),
        Law::NtkAware(law) => Some(law.base),
        Law::FixedNtk(law) => Some(law.base),
        Law::DynamicNtk(law) => Some(law.base),
        Law::Yarn(law) => Some(law.base),
        Law::LongRope(law) => Some(law.base),
        Law::Llama3(law) => Some(law.base),
        Law::Proportional(law) => Some(law.base),
        Law::Divided(law) => base(&law.law),
        Law::ClippedRope(law) => base(&law.law),
        _ => None,
    }
}

/// What the slowest pairs are divided by, for a sequence of so many tokens, if the law has such a number.
pub fn divisor(law: &Law, seq_len: u32) -> Option<f64> {
    match law {
        Law::Linear(law) => Some(law.factor),
        Law::NtkAware(law) => Some(law.alpha),
        Law::FixedNtk(law) => Some(law.factor),
        Law::DynamicNtk(law) => {
            let trained = f64::from(law.max_position_embeddings);
            Some(law.factor * f64::from(seq_len).max(trained) / trained - (law.factor - 1.0))
        }
        Law::Yarn(law) => Some(law.factor),
        Law::Llama3(law) => Some(law.factor),
        Law::Proportional(law) => Some(law.factor),
        _ => None,
    }
}

/// Whether pairs between the fast and the slow ones are a blend of both, in the words of the papers.
pub fn blends(law: &Law) -> bool {
    matches!(law, Law::Yarn(_) | Law::Llama3(_) | Law::Linear(_))
}

/// The lengths at which a law that depends on the length is worth a look, with words for each; and one more if the caller
/// has one in mind.
pub fn lengths(law: &Law, rotary: Rotary, also: Option<u32>) -> Vec<(u32, String)> {
    let also = also.filter(|_| law.depends_on_length());
    match law {
        Law::DynamicNtk(ntk) => {
            let trained = ntk.max_position_embeddings;
            let beyond = [2, 4].map(|n: u32| trained.saturating_mul(n)).into_iter().chain(also);
            let told = |n| {
                let alpha = divisor(law, n).unwrap_or(1.0);
                format!("at {n} tokens: alpha = {alpha}, b = {}", scaled_base(ntk.base, alpha, rotary.dim()))
            };
            let within = [(trained, format!("up to {trained} tokens: alpha = 1, b = {}", ntk.base))];
            within.into_iter().chain(beyond.map(|n| (n, told(n)))).collect()
        }
        Law::LongRope(law) if law.policy == LongRopePolicy::BySequence => {
            let short = law.original_max_position_embeddings;
            let long = short.saturating_add(1);
            let both = [(short, format!("up to {short} tokens")), (long, format!("from {long} tokens on"))];
            both.into_iter().chain(also.map(|n| (n, format!("at {n} tokens")))).collect()
        }
        Law::Divided(law) => lengths(&law.law, rotary, also),
        Law::ClippedRope(law) => lengths(&law.law, rotary, also),
        _ => vec![(0, "at every length".to_owned())],
    }
}

/// NTK scaling's larger base, to two digits behind the point.
fn scaled_base(base: f64, alpha: f64, d: u32) -> String {
    let exponent = f64::from(d) / f64::from(d.saturating_sub(2));
    format!("{:.2}", base * alpha.powf(exponent))
}

/// The frequencies of the law as a formula, a line each.
pub fn formula(law: &Law, rotary: Rotary) -> Vec<String> {
    let d = rotary.dim();
    let series = |base: f64| format!("{base}^(-2i/{d})");
    match law {
        Law::Plain(law) => vec![format!("w_i = {}", series(law.base))],
        Law::Linear(law) => vec![format!("w_i = {} / {}", series(law.base), law.factor)],
        Law::NtkAware(law) => {
            let scaled = scaled_base(law.base, law.alpha, d);
            vec![format!("w_i = b^(-2i/{d}), b = {} * {}^({d}/{}) = {scaled}", law.base, law.alpha, d - 2)]
        }
        Law::FixedNtk(law) => vec![
            format!("w_i = {} * exp(-a (i + 1)^{})", series(law.base), law.mixed_b),
            format!("a = ln({}) / {}^{}", law.factor, d / 2, law.mixed_b),
        ],
        Law::DynamicNtk(law) => vec![
            format!("w_i = b^(-2i/{d}), b = {} * alpha^({d}/{})", law.base, d - 2),
            format!(
                "alpha = {} * n / {} - {}, n = the sequence's length, at least {1}",
                law.factor,
                law.max_position_embeddings,
                law.factor - 1.0
            ),
        ],
        Law::Yarn(law) => yarn(law, d),
        Law::LongRope(law) => vec![
            format!(
                "w_i = {} / short_factor[i] up to {} tokens",
                series(law.base),
                law.original_max_position_embeddings
            ),
            format!("w_i = {} / long_factor[i]  beyond", series(law.base)),
        ],
        Law::Llama3(law) => vec![
            format!("w_i = {}, divided by {} where a pair makes less than", series(law.base), law.factor),
            format!(
                "{} in {} tokens, kept where it makes more than {}, blended between",
                turns(law.low_freq_factor),
                law.original_max_position_embeddings,
                law.high_freq_factor
            ),
        ],
        Law::Proportional(law) => {
            let divided = if law.factor == 1.0 { String::new() } else { format!(" / {}", law.factor) };
            let turning = format!("{} * {d}/2", law.partial_rotary_factor);
            vec![format!("w_i = {}{divided} for i < {turning}, else 0", series(law.base))]
        }
        Law::Axial(law) => vec![format!("w_i = {}^(-4j/{d}), j counting the pairs of each axis", law.base)],
        Law::Divided(law) => {
            let mut lines = formula(&law.law, rotary);
            if let Some(first) = lines.first_mut() {
                *first += " / divisors[i]";
            }
            lines
        }
        Law::ClippedRope(law) => {
            let mut lines = formula(&law.law, rotary);
            lines.push(format!("the last {} pairs faded out", law.pairs));
            lines
        }
        _ => Vec::new(),
    }
}

fn yarn(law: &Yarn, d: u32) -> Vec<String> {
    let ends = if law.truncate { "rounded outwards to whole pairs" } else { "not rounded to whole pairs" };
    let mut lines = vec![
        format!("w_i = {}^(-2i/{d}), divided by {} where a pair makes less than", law.base, law.factor),
        format!(
            "{} in {} tokens, kept where it makes more than {}, blended between;",
            turns(law.beta_slow),
            law.original_max_position_embeddings,
            law.beta_fast
        ),
        format!("the ends of the blend are {ends} (truncate is {})", law.truncate),
    ];
    if law.extrapolation_factor != 1.0 {
        lines.push(format!("of what is kept, a share of {} is not divided", law.extrapolation_factor));
    }
    lines
}

fn turns(n: f64) -> String {
    if n == 1.0 { "1 turn".to_owned() } else { format!("{n} turns") }
}

/// Where the attention factor comes from.
pub fn attention(law: &Law) -> Option<String> {
    match law {
        // Nothing is extended, and the magnitude is 1.
        Law::Yarn(law) if law.factor <= 1.0 => None,
        Law::Yarn(law) => Some(match law.magnitude {
            Magnitude::Default => format!("0.1 ln {} + 1", law.factor),
            Magnitude::Explicit(_) => return None,
            Magnitude::Multiplier(by) => format!("{by} (0.1 ln {} + 1)", law.factor),
            Magnitude::MscalePair { mscale, mscale_all_dim } => {
                format!("mscale({mscale}) / mscale({mscale_all_dim}), mscale(k) = 0.1 k ln {} + 1", law.factor)
            }
        }),
        Law::LongRope(law) => {
            let stated = law.attention_factor.or(law.short_mscale).or(law.long_mscale).is_some();
            let context = law.original_max_position_embeddings;
            (!stated && law.factor > 1.0).then(|| format!("sqrt(1 + ln {} / ln {context})", law.factor))
        }
        Law::Divided(law) => attention(&law.law),
        Law::ClippedRope(law) => attention(&law.law),
        _ => None,
    }
}

/// Settings that files seldom state, so that nothing says where they came from.
pub fn defaults(law: &Law) -> Vec<(&'static str, String)> {
    match law {
        Law::Yarn(law) => vec![
            ("beta_fast", law.beta_fast.to_string()),
            ("beta_slow", law.beta_slow.to_string()),
            ("truncate", law.truncate.to_string()),
        ],
        Law::FixedNtk(law) => vec![("mixed_b", law.mixed_b.to_string())],
        Law::Proportional(law) => vec![("factor", law.factor.to_string())],
        Law::Divided(law) => defaults(&law.law),
        Law::ClippedRope(law) => defaults(&law.law),
        _ => Vec::new(),
    }
}

/// Where other programs are known to do something else.
pub fn elsewhere(law: &Law) -> Vec<&'static str> {
    match law {
        Law::DynamicNtk(_) => vec![
            "transformers takes the largest position so far, plus one, so that keys in the cache keep older bases; vLLM \
             and SGLang take factor * max_position_embeddings for all.",
        ],
        Law::LongRope(_) => vec![
            "transformers chooses the list by the sequence and drops the cache when it changes; vLLM and llama.cpp choose \
             once, by the longest sequence they were started for; MLX always takes the long one.",
        ],
        Law::Yarn(law) if !law.truncate => {
            vec!["llama.cpp always rounds the ramp's ends, so its frequencies of pairs on the ramp differ."]
        }
        Law::Divided(law) => elsewhere(&law.law),
        Law::ClippedRope(law) => elsewhere(&law.law),
        _ => Vec::new(),
    }
}
