//! Colours, where the terminal has them, and durations for people.

use std::io::IsTerminal;
use std::time::Duration;

pub fn bold(text: &str) -> String {
    coloured("1", text)
}

pub fn dim(text: &str) -> String {
    coloured("2", text)
}

pub fn red(text: &str) -> String {
    coloured("1;31", text)
}

pub fn green(text: &str) -> String {
    coloured("32", text)
}

pub fn yellow(text: &str) -> String {
    coloured("33", text)
}

fn coloured(code: &str, text: &str) -> String {
    let wanted = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Seconds below a minute, minutes and seconds from there.
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    // 59.95 and up would read "60.0 s".
    if seconds < 59.95 {
        format!("{seconds:.1} s")
    } else {
        let seconds = seconds.round() as u64;
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        assert_eq!(duration(Duration::from_millis(340)), "0.3 s");
        assert_eq!(duration(Duration::from_millis(59_949)), "59.9 s");
        assert_eq!(duration(Duration::from_millis(59_970)), "1 min 00 s");
        assert_eq!(duration(Duration::from_secs(605)), "10 min 05 s");
    }
}
