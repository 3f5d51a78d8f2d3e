//! What there is to say about each kind of layer, in words: what the command sets as text, and the page as HTML.

use super::model::ranges;
use super::pairs::{Band, Fate, Scaling};
use super::{Explanation, Kind};
use phasor::Pairing;
use serde::Serialize;

/// One thing that is said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// What it is about, in a word.
    pub label: &'static str,
    /// Line by line: running text, or the cells of a row of a table.
    pub lines: Vec<Vec<String>>,
    /// The column of the table that holds numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<usize>,
}

/// What the file is about.
#[must_use]
pub fn title(explanation: &Explanation) -> String {
    let mut parts = vec![format!("{}: {}", explanation.file, explanation.model_type)];
    parts.extend(explanation.layers.map(|n| format!("{n} layer{}", if n == 1 { "" } else { "s" })));
    parts.extend(explanation.context.map(|n| format!("a context of {} tokens", whole(n.into()))));
    parts.join(", ")
}

/// All that is said about one kind of layer.
#[must_use]
pub fn words(explanation: &Explanation, kind: &Kind) -> Vec<Statement> {
    if kind.rotates { rotation(explanation, kind) } else { no_rotation(kind) }
}

fn line(label: &'static str, text: &str) -> Statement {
    Statement { label, lines: vec![vec![text.to_owned()]], right: None }
}

fn no_rotation(kind: &Kind) -> Vec<Statement> {
    let nothing = line("turns", "nothing: queries and keys stay as they are");
    std::iter::once(nothing).chain(queries(kind)).collect()
}

fn rotation(explanation: &Explanation, kind: &Kind) -> Vec<Statement> {
    let law = kind.formula.iter().map(|line| vec![line.clone()]).collect();
    let mut said = vec![
        line("turns", &turns(kind)),
        line("pairing", &pairing(kind)),
        Statement { label: "law", lines: law, right: None },
    ];
    let factors: Vec<_> = kind.scaling.iter().map(|scaling| scaling.attention_factor).collect();
    let factor_varies = factors.windows(2).any(|two| two[0] != two[1]);
    for scaling in &kind.scaling {
        if kind.scaling.len() > 1 {
            said.push(line("length", &scaling.holds));
        }
        said.push(bands(kind, scaling));
        said.push(line("wavelength", &wavelength(scaling, explanation.context)));
        if factor_varies {
            said.push(line("attention", &attention(kind, scaling.attention_factor)));
        }
    }
    if let (false, Some(&factor)) = (factor_varies, factors.first()) {
        said.push(line("attention", &attention(kind, factor)));
    }
    if kind.softmax_scale_multiplier != 1.0 {
        let by = number(kind.softmax_scale_multiplier);
        let text = format!("1/sqrt(d), d all channels of a query, turning or not, is multiplied by {by}");
        said.push(line("softmax", &text));
    }
    said.extend(queries(kind));
    said.extend(axes(kind));
    said.extend(kind.elsewhere.iter().map(|note| line("elsewhere", note)));
    said
}

fn queries(kind: &Kind) -> Option<Statement> {
    let scale = kind.query_scale.as_ref()?;
    Some(line("queries", &format!("at position m are multiplied by {scale}")))
}

fn turns(kind: &Kind) -> String {
    let (head, dim, first) = (kind.head_dim, kind.rotary_dim, kind.rotary_offset);
    match (dim == head, first) {
        (true, _) => format!("all {head} channels, in {} pairs", dim / 2),
        (false, 0) => format!("the first {dim} of {head} channels, in {} pairs", dim / 2),
        (false, _) => format!("channels {first} to {} of {head}, in {} pairs", first + dim - 1, dim / 2),
    }
}

fn pairing(kind: &Kind) -> String {
    let (first, pairs) = (kind.rotary_offset, kind.rotary_dim / 2);
    let from = if first == 0 { String::new() } else { format!("{first} + ") };
    match kind.pairing {
        Pairing::Interleaved => format!("interleaved (normal, GPT-J): channels {from}2i and {from}2i + 1"),
        Pairing::HalfSplit => format!("half-split (NeoX, rotate_half): channels {from}i and {from}i + {pairs}"),
    }
}

/// What becomes of the pairs.
fn bands(kind: &Kind, scaling: &Scaling) -> Statement {
    if let [Band { fate: Fate::Unchanged, pairs, .. }] = scaling.bands.as_slice() {
        return line("pairs", &format!("all {} unscaled", pairs.len()));
    }
    let row = |band: &Band| {
        let word = match band.fate {
            Fate::Unchanged => "unchanged",
            Fate::Between if kind.blends => "blended",
            Fate::Divided if kind.blends => "interpolated",
            Fate::Between | Fate::Divided => "slowed",
            Fate::Still => "still",
        };
        let divided = match band.divided_by {
            Some([least, most]) if band.fate != Fate::Unchanged => format!("divided by {}", range(least, most)),
            _ => String::new(),
        };
        vec![band.pairs.len().to_string(), word.to_owned(), some_of(&band.pairs), divided]
    };
    Statement { label: "pairs", lines: scaling.bands.iter().map(row).collect(), right: Some(0) }
}

fn range(least: f64, most: f64) -> String {
    let [a, b] = [least, most].map(short);
    if a == b { a } else { format!("{a} to {b}") }
}

/// Pairs by their numbers, cut short where they do not lie together.
fn some_of(pairs: &[usize]) -> String {
    const MOST: usize = 8;
    let all = ranges(pairs);
    if all.split(", ").count() <= MOST {
        return all;
    }
    let first: Vec<_> = all.split(", ").take(MOST).collect();
    format!("{}, …", first.join(", "))
}

fn wavelength(scaling: &Scaling, context: Option<u32>) -> String {
    let Some(after) = scaling.longest_wavelength else { return "no pair turns".to_owned() };
    let measured = |tokens: f64, unit: &str| {
        let of = |context: u32| format!(", {} contexts", short(tokens / f64::from(context)));
        format!("{}{unit}{}", whole(tokens), context.map(of).unwrap_or_default())
    };
    let unscaled = scaling.longest_wavelength_unscaled.filter(|_| !scaling.changes_nothing());
    let unscaled = unscaled.map(|before| format!("; without scaling {}", measured(before, ""))).unwrap_or_default();
    format!("longest {}{unscaled}", measured(after, " tokens"))
}

fn attention(kind: &Kind, factor: f64) -> String {
    let formula = kind.attention_formula.as_ref().map(|formula| format!(" = {formula}")).unwrap_or_default();
    if factor == 1.0 {
        return format!("factor 1{formula}: logits keep their size");
    }
    let square = decimals(factor * factor, 6);
    format!(
        "factor {}{formula} on cos and sin; on the turning channels' share of a logit its square, {square}",
        number(factor)
    )
}

/// Nothing where there is but one.
fn axes(kind: &Kind) -> Option<Statement> {
    let count = kind.axes.len();
    let text = match count.checked_sub(usize::from(kind.text_axes)) {
        _ if count == 0 => return None,
        Some(0) => "text has the same one on all",
        _ => "text has the same one on all but the last, where it is at 0 (llama.cpp)",
    };
    let rows = kind
        .axes
        .iter()
        .enumerate()
        .map(|(axis, pairs)| vec![format!("axis {axis}"), format!("{} pairs", pairs.len()), some_of(pairs)]);
    let head = vec![format!("{count} positions to a token; {text}")];
    Some(Statement { label: "axes", lines: std::iter::once(head).chain(rows).collect(), right: Some(1) })
}

/// A number with as many digits as a reader needs to compare it with another program's.
fn number(x: f64) -> String {
    decimals(x, 10)
}

/// At most so many digits behind the point.
fn decimals(x: f64, digits: usize) -> String {
    let text = format!("{x:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Three digits or so.
fn short(x: f64) -> String {
    match x {
        x if x == x.round() && x.abs() < 1e6 => format!("{x}"),
        x if (0.001..1e6).contains(&x) => decimals(x, (2 - x.log10().floor() as i32).max(0) as usize),
        x => format!("{x:.2e}"),
    }
}

/// A number of tokens, by thousands.
fn whole(x: f64) -> String {
    if x >= 1e12 {
        return format!("{x:.2e}");
    }
    let digits = format!("{:.0}", x);
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!([0.0, 999.6, 131_072.0, 2.5e13].map(whole), ["0", "1,000", "131,072", "2.50e13"]);
        assert_eq!([8.0, 1.0526, 61.97, 0.4, 1234.6, 3.2e9].map(short), ["8", "1.05", "62", "0.4", "1235", "3.20e9"]);
        assert_eq!([1.0, 1.138_629_436_111_989].map(number), ["1", "1.1386294361"]);
    }
}
