//! WGSL without what only people read: a download carries it, and half of it would be comments.

/// The text without comments, empty lines and spaces that separate nothing, in `N` bytes, and how many it takes.
pub(crate) const fn stripped<const N: usize>(text: &str) -> ([u8; N], usize) {
    let bytes = text.as_bytes();
    let mut out = [0; N];
    let mut length = 0;
    let mut last = b'\n';
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] == b'/' && i + 1 < bytes.len() && bytes[i + 1] == b'/' {
            while i < bytes.len() && bytes[i] != b'\n' {
                i += 1;
            }
            continue;
        }
        let next = if i + 1 < bytes.len() { bytes[i + 1] } else { b'\n' };
        let skipped = match bytes[i] {
            // Not between two words, nor between two signs, which might be another one together.
            b' ' => last == b'\n' || next == b' ' || is_of_word(last) != is_of_word(next),
            b'\n' => last == b'\n',
            _ => false,
        };
        if !skipped {
            if length < N {
                out[length] = bytes[i];
            }
            length += 1;
            last = bytes[i];
        }
        i += 1;
    }
    (out, length)
}

/// Whether a byte may belong to a name, a keyword or a number.
const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::stripped;

    #[test]
    fn what_separates_nothing_goes_and_nothing_else_does() {
        const TEXT: &str =
            "// What it does.\n\nlet a = b / c; // why\n    {\n        // — more\n        return  d - -1;\n\n    }\n";
        const STRIPPED: &[u8] = &stripped::<{ stripped::<0>(TEXT).1 }>(TEXT).0;
        assert_eq!(str::from_utf8(STRIPPED).unwrap(), "let a=b/c; \n{\nreturn d- -1;\n}\n");
    }
}
