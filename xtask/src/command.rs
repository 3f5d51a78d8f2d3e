//! A command line with its environment: shown so that it can be pasted into a shell, then run.

use std::fmt;
use std::process;

/// A program, its arguments and the variables that it needs beyond this process's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    words: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Command {
    /// From a line whose words are parted by spaces; a word that holds a space is added by [`Command::arguments`].
    pub fn new(line: &str) -> Self {
        Self { words: line.split_whitespace().map(str::to_owned).collect(), variables: Vec::new() }
    }

    /// With these words added as they are.
    pub fn arguments<S: AsRef<str>>(mut self, arguments: &[S]) -> Self {
        self.words.extend(arguments.iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// With a variable set.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Shows the command, runs it to its end, and fails if it does.
    pub fn run(&self) -> Result<(), String> {
        println!("{}", crate::screen::dim(&format!("$ {self}")));
        let status = self.process().status().map_err(|error| format!("`{self}` cannot be started: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("`{self}` ended with {status}")) }
    }

    /// Runs the command unseen, without input; what it printed to standard output if it succeeded.
    pub fn output(&self) -> Option<String> {
        let output = self.process().stdin(process::Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Runs the command with its standard output hidden (errors are shown), and fails if it does.
    pub fn run_quietly(&self) -> Result<(), String> {
        let status = self
            .process()
            .stdout(process::Stdio::null())
            .status()
            .map_err(|error| format!("`{self}` cannot be started: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("`{self}` ended with {status}")) }
    }

    fn process(&self) -> process::Command {
        let (program, arguments) = self.words.split_first().expect("every command in this program names its program");
        let mut process = process::Command::new(program);
        process.args(arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
        process
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.variables {
            write!(f, "{name}={} ", quoted(value))?;
        }
        let words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
        f.write_str(&words.join(" "))
    }
}

/// A word as a POSIX shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=/.,:+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_command_can_be_pasted() {
        let command = Command::new("cargo test --test *").variable("FLAGS", "-D warnings").arguments(&["it's"]);
        assert_eq!(command.to_string(), r"FLAGS='-D warnings' cargo test --test '*' 'it'\''s'");
    }

    #[test]
    fn a_command_that_fails_or_is_not_there_is_an_error() {
        assert!(Command::new("rustc --no-such-option").output().is_none());
        assert!(Command::new("no-such-program").run_quietly().unwrap_err().contains("no-such-program"));
    }
}
