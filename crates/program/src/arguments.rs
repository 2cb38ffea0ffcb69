//! Arguments by their defaults.

use clap::builder::Resettable;
use clap::{Args, Command};

/// The arguments of a command line without any, whatever the environment has.
///
/// # Panics
/// If an argument is required.
pub fn without_environment<A: Args>() -> A {
    let command = A::augment_args(Command::new("defaults"));
    let command = command.mut_args(|argument| argument.env(Resettable::Reset));
    let matches = command.try_get_matches_from(["defaults"]);
    let args = matches.and_then(|matches| A::from_arg_matches(&matches));
    args.expect("no argument is required")
}
