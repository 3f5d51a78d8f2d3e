//! Whole numbers on the command line: what is none is told what it may be, and a minus sign begins a number, not an option.

use std::num::NonZero;
use std::str::FromStr;

/// A type of whole numbers, and which of them it holds.
pub trait Whole: FromStr {
    const MAY_BE: &'static str;
}

impl Whole for u32 {
    const MAY_BE: &'static str = "from 0 to 4294967295";
}

impl Whole for i32 {
    const MAY_BE: &'static str = "from -2147483648 to 2147483647";
}

impl Whole for usize {
    const MAY_BE: &'static str = "0 or more";
}

impl Whole for NonZero<usize> {
    const MAY_BE: &'static str = "1 or more";
}

/// Reads a number.
pub fn whole<N: Whole>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("may be a whole number, {}", N::MAY_BE))
}

/// A command whose options take negative numbers for what they are, so that their own words refuse them.
pub fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let takes_one = |argument: &clap::Arg| !argument.is_positional() && argument.get_action().takes_values();
    command.mut_subcommands(with_negative_numbers).mut_args(|argument| match takes_one(&argument) {
        true => argument.allow_negative_numbers(true),
        false => argument,
    })
}
