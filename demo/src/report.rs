//! Text for people: aligned columns and readable numbers.

use comfy_table::{CellAlignment, Table, presets};
use phasor_measure::{AttentionSizes, ProjectionSizes, Sizes, Subject};

/// Columns side by side, without lines. Those in `right` hold numbers.
pub fn columns(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>, right: &[usize]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    if !header.is_empty() {
        table.set_header(header.to_vec());
    }
    table.add_rows(rows);
    for &i in right {
        if let Some(column) = table.column_mut(i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt() + "\n"
}

/// A number of bytes in the largest unit that keeps it above 1.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["B", "KiB", "MiB", "GiB"];
    let unit = (n.max(1).ilog2() / 10).min(3);
    match unit {
        0 => format!("{n} B"),
        _ => format!("{:.1} {}", n as f64 / f64::from(1u32 << (10 * unit)), UNITS[unit as usize]),
    }
}

/// A time in the unit that suits it.
pub fn seconds(s: f64) -> String {
    match s {
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// A power of a length, `n^1.97`; what rounds to nothing has no sign.
pub fn power(value: f64) -> String {
    format!("n^{:.2}", (100.0 * value).round() / 100.0 + 0.0)
}

/// What was measured, and on which tensors.
pub fn subject(subject: &Subject) -> String {
    match subject {
        Subject::Rotation(Sizes { tokens, heads, kv_heads, head_dim, .. }) => {
            format!("Rotation: {tokens} tokens, {heads} + {kv_heads} heads of {head_dim} channels, f32 in place")
        }
        Subject::Attention(sizes) | Subject::Variants(sizes) => {
            let AttentionSizes { tokens, keys, heads, kv_heads, head_dim, positions, .. } = sizes;
            let queries = match sizes.is_decode() {
                true if *tokens == 1 => format!("Decode: one query over {keys} keys"),
                true => format!("Decode: {tokens} queries over {keys} keys"),
                false => format!("Attention: {tokens} tokens, causal"),
            };
            let heads = format!("{heads} over {kv_heads} heads of {head_dim} channels, {positions} positions");
            match subject {
                Subject::Variants(_) => format!("{queries}, {heads}, by variants"),
                _ => format!("{queries}, {heads}, f32"),
            }
        }
        Subject::Projection(ProjectionSizes { tokens, inputs, outputs, .. }) => {
            let s = if *tokens == 1 { "" } else { "s" };
            format!("Projection: {tokens} token{s}, {inputs} inputs to {outputs} outputs, f32")
        }
    }
}

/// An operation among others of several subjects.
pub fn curve_label(subject: &str, operation: &str) -> String {
    if operation.starts_with(subject) { operation.to_owned() } else { format!("{subject}, {operation}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_suit_the_number() {
        assert_eq!([0, 1023, 1024, 1 << 21, 3 << 30].map(bytes), ["0 B", "1023 B", "1.0 KiB", "2.0 MiB", "3.0 GiB"]);
        assert_eq!([2e-6, 0.0125, 3.0].map(seconds), ["2.0 us", "12.50 ms", "3.00 s"]);
        assert_eq!([1.968, -0.004, -0.01].map(power), ["n^1.97", "n^0.00", "n^-0.01"]);
    }
}
