//! An explanation as a page of text, for a terminal of 100 columns.

use crate::report;
use phasor_measure::explain::{Explanation, Number, Statement, title, words};

/// The width of the labels, and of a line.
const LABEL: usize = 12;
const WIDTH: usize = 100;

/// The page.
pub fn page(explanation: &Explanation) -> String {
    let mut text = title(explanation) + "\n";
    for kind in &explanation.groups {
        text += &format!("\n{}", wrapped("", "", &format!("{}: {}", kind.which, kind.what)));
        text.extend(words(explanation, kind).iter().map(said));
        text += &numbers(&kind.numbers);
    }
    if !explanation.warnings.is_empty() {
        text += "\nwarnings\n";
        text.extend(explanation.warnings.iter().map(|warning| wrapped("  ", "- ", warning)));
    }
    text
}

/// A label and what is said under it; the rows of a table in aligned columns.
fn said(statement: &Statement) -> String {
    let (texts, rows): (Vec<_>, Vec<_>) = statement.lines.iter().cloned().partition(|cells| cells.len() == 1);
    let right: Vec<_> = statement.right.into_iter().collect();
    let table = if rows.is_empty() { Vec::new() } else { columns(&[], rows, &right) };
    let lines = texts.into_iter().flatten().chain(table).enumerate();
    lines.map(|(i, text)| line(if i == 0 { statement.label } else { "" }, &text)).collect()
}

/// Setting, value and origin, below the words.
fn numbers(numbers: &[Number]) -> String {
    let rows = numbers.iter().map(|n| vec![n.setting.clone(), n.value.clone(), n.from.clone()]);
    let table = columns(&["setting", "value", "from"], rows, &[]);
    table.into_iter().map(|line| format!("    {line}\n")).collect()
}

/// Aligned columns, line by line, without the space that a table has at its left.
fn columns(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>, right: &[usize]) -> Vec<String> {
    let table = report::columns(header, rows, right);
    table.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()).collect()
}

/// A label and what is to be said under it.
fn line(label: &str, text: &str) -> String {
    wrapped("  ", &format!("{label:LABEL$}"), text)
}

/// Text that goes on below its own beginning.
fn wrapped(margin: &str, head: &str, text: &str) -> String {
    let first = format!("{margin}{head}");
    let rest = " ".repeat(first.len().max(2));
    let options = textwrap::Options::new(WIDTH).initial_indent(&first).subsequent_indent(&rest);
    textwrap::fill(text, options).trim_end().to_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_goes_on_below_its_beginning() {
        let text = wrapped("  ", "label  ", &"word ".repeat(40));
        let lines: Vec<_> = text.lines().collect();
        assert!(lines.len() > 2 && lines.iter().all(|line| line.len() <= WIDTH), "{text}");
        assert!(lines[1].starts_with("         word"), "{text}");
    }
}
