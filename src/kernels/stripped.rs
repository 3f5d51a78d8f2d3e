//! WGSL without what only people read: a download carries it, and half of it would be comments.

/// The text without comments, indentation and empty lines, in `N` bytes, and how many it takes.
pub(crate) const fn stripped<const N: usize>(text: &str) -> ([u8; N], usize) {
    let bytes = text.as_bytes();
    let mut out = [0; N];
    let mut length = 0;
    let mut line_is_empty = true;
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] == b'/' && i + 1 < bytes.len() && bytes[i + 1] == b'/' {
            while i < bytes.len() && bytes[i] != b'\n' {
                i += 1;
            }
            continue;
        }
        let skipped = line_is_empty && (bytes[i] == b' ' || bytes[i] == b'\n');
        if !skipped {
            if length < N {
                out[length] = bytes[i];
            }
            length += 1;
            line_is_empty = bytes[i] == b'\n';
        }
        i += 1;
    }
    (out, length)
}

#[cfg(test)]
mod tests {
    use super::stripped;

    #[test]
    fn comments_indentation_and_empty_lines_go_and_nothing_else_does() {
        const TEXT: &str =
            "// What it does.\n\nlet a = b / c; // why\n    {\n        // — more\n        d();\n\n    }\n";
        const STRIPPED: &[u8] = &stripped::<{ stripped::<0>(TEXT).1 }>(TEXT).0;
        assert_eq!(str::from_utf8(STRIPPED).unwrap(), "let a = b / c; \n{\nd();\n}\n");
    }
}
