//! `-` as an argument: standard input, which is one input, or standard output, or refused where it is neither.
//!
//! An argument takes `-` if its value name says so, as `FILE|-`. Other arguments that are paths refuse it, so that no file or
//! folder of that name is made by mistake; `./-` is one.

use std::io::{self, Stdin};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Arg, ArgMatches, Command, ValueHint};

use crate::failure::Failure;

/// Standard input, for the one input that it is.
///
/// # Errors
/// If it was taken before.
pub fn stdin() -> Result<Stdin, Failure> {
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    match IS_TAKEN.swap(true, Ordering::Relaxed) {
        false => Ok(io::stdin()),
        true => Err(Failure::Usage(TAKEN.to_owned())),
    }
}

/// Refuses `-` as the value of paths that cannot be a standard stream.
///
/// # Errors
/// If such a path is `-`.
pub fn check(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    let refused = command
        .get_arguments()
        .find(|arg| is_path(arg) && !takes_dash(arg) && is_dash(arg, matches));
    if let Some(arg) = refused {
        let what = match arg.get_value_hint() {
            ValueHint::DirPath => "folder",
            _ => "file",
        };
        let name = name_of(arg);
        return Err(Failure::Usage(format!(
            "{name}: `-` is no {what} here: name one (./- if that is its name)"
        )));
    }
    match matches
        .subcommand()
        .and_then(|(name, below)| Some((command.find_subcommand(name)?, below)))
    {
        Some((command, matches)) => check(command, matches),
        None => Ok(()),
    }
}

fn is_path(arg: &Arg) -> bool {
    matches!(arg.get_value_hint(), ValueHint::FilePath | ValueHint::DirPath | ValueHint::AnyPath)
}

/// Whether the value name of an argument has `-` among its forms.
pub fn takes_dash(arg: &Arg) -> bool {
    let mut names = arg.get_value_names().into_iter().flatten();
    names.any(|name| name.split('|').any(|form| form == "-"))
}

fn is_dash(arg: &Arg, matches: &ArgMatches) -> bool {
    // A global option is unknown to commands that do not have it.
    let values = matches.try_get_raw(arg.get_id().as_str()).ok().flatten();
    values.is_some_and(|mut values| values.any(|value| value == "-"))
}

/// The option, or the name of the value of an argument without one.
fn name_of(arg: &Arg) -> String {
    let value = || arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    arg.get_long().map(|long| format!("--{long}")).or_else(value).unwrap_or_default()
}

const TAKEN: &str = "`-`: standard input is one input: name a file for the others";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_take_a_dash_as_their_value_names_say() {
        let named = |name| Arg::new("x").value_name(name);
        assert!(
            takes_dash(&named("-")) && takes_dash(&named("FILE|-")) && takes_dash(&named("A|-|B"))
        );
        assert!(!takes_dash(&named("FILE")) && !takes_dash(&named("FILE-NAME")));
        assert!(!takes_dash(&Arg::new("x")));
    }
}
