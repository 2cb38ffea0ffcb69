//! Options from the environment and from `wireproof.toml`, and `wireproof config show`.
//!
//! A flag takes precedence over the environment, the environment over `wireproof.toml` in the current
//! folder, that over the user's file in the configuration folder, and any of them over the default.
//!
//! ```toml
//! plc = "http://localhost:4480"          # for every command that has the flag
//!
//! [follow]
//! host = ["https://one.example.com", "https://two.example.com"]
//! ```
//!
//! A file can set the flags that the environment can set, under their names; anything else is refused. The
//! values become the defaults of the flags, so that flags and files are checked by the same code.

mod file;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Command, Parser, Subcommand};

use crate::failure::Failure;
use crate::output::Output;
use file::ConfigFile;

/// Show the configuration from the environment and from files.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the values that apply without flags, as a wireproof.toml.
    ///
    /// A flag takes precedence over the environment (`WIREPROOF_…`), that over wireproof.toml in the
    /// current folder, that over $XDG_CONFIG_HOME/wireproof/wireproof.toml, and any of them over the
    /// default.
    #[command(after_help = EXAMPLES)]
    Show(ShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Add the origin of each value as a comment.
    #[arg(long)]
    origin: bool,
}

/// Parses the command line, with values of files as defaults.
pub(crate) fn parse<A: Parser>() -> Result<A, Failure> {
    let files = read_files(&A::command())?;
    let matches = with_defaults(A::command(), &[], &files).get_matches();
    A::from_arg_matches(&matches).map_err(|error| error.exit())
}

pub(crate) fn run(
    command: &ConfigCommand,
    arguments: Command,
    output: Output,
) -> Result<(), Failure> {
    let ConfigCommand::Show(args) = command;
    let files = read_files(&arguments)?;
    let mut text = String::new();
    show(&arguments, &[], &files, args.origin, &mut text);
    output.text(text.trim_start())
}

/// The files that exist, in the order of precedence.
fn read_files(command: &Command) -> Result<Vec<ConfigFile>, Failure> {
    let mut files = Vec::new();
    for path in paths() {
        if let Some(file) = ConfigFile::read(&path)? {
            file.check(command)?;
            files.push(file);
        }
    }
    Ok(files)
}

fn paths() -> impl Iterator<Item = PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".config"));
    let folder = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home);
    let of_user = folder.map(|folder| folder.join("wireproof").join(FILE));
    std::iter::once(PathBuf::from(FILE)).chain(of_user)
}

/// The command at `path`, with the values of files as defaults.
fn with_defaults(command: Command, path: &[String], files: &[ConfigFile]) -> Command {
    let command = command.mut_args(|arg| match find(&arg, path, files) {
        Some((values, _)) => arg.default_values(values),
        None => arg,
    });
    command.mut_subcommands(|sub| {
        let path = [path, &[sub.get_name().to_owned()]].concat();
        with_defaults(sub, &path, files)
    })
}

/// The values of an option of the command at `path`, and the file that sets them.
fn find<'f>(
    arg: &clap::Arg,
    path: &[String],
    files: &'f [ConfigFile],
) -> Option<(Vec<String>, &'f ConfigFile)> {
    let name = name_in_file(arg)?;
    files.iter().find_map(|file| Some((file.values(path, name)?, file)))
}

/// The name of an option in a file, if a file can set it.
fn name_in_file(arg: &clap::Arg) -> Option<&str> {
    arg.get_env()?;
    arg.get_long()
}

/// Appends the tables of the command at `path` and of its subcommands.
fn show(
    command: &Command,
    path: &[String],
    files: &[ConfigFile],
    with_origin: bool,
    text: &mut String,
) {
    let named = command.get_arguments().filter_map(|arg| Some((name_in_file(arg)?, arg)));
    let mut lines = String::new();
    for (name, arg) in named {
        let (values, origin) = value_of(arg, path, files);
        let origin = if with_origin { format!("  # {origin}") } else { String::new() };
        match values {
            Some(values) => lines += &format!("{name} = {}{origin}\n", to_toml(arg, &values)),
            None => lines += &format!("# {name} is not set\n"),
        }
    }
    if !lines.is_empty() {
        *text += &format!("\n[{}]\n{lines}", path.join("."));
    }
    for sub in command.get_subcommands() {
        let path = [path, &[sub.get_name().to_owned()]].concat();
        show(sub, &path, files, with_origin, text);
    }
}

/// The values that apply without the flag, and their origin.
fn value_of(
    arg: &clap::Arg,
    path: &[String],
    files: &[ConfigFile],
) -> (Option<Vec<String>>, String) {
    let variable = arg.get_env().expect("an option with a name in files has a variable");
    if let Ok(value) = std::env::var(variable) {
        let values = match arg.get_value_delimiter() {
            Some(delimiter) => value.split(delimiter).map(str::to_owned).collect(),
            None => vec![value],
        };
        return (Some(values), format!("from the environment: {}", variable.display()));
    }
    if let Some((values, file)) = find(arg, path, files) {
        return (Some(values), format!("from {}", file.path.display()));
    }
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy().into()).collect();
    ((!defaults.is_empty()).then_some(defaults), "the default".to_owned())
}

/// The values in the syntax of TOML.
fn to_toml(arg: &clap::Arg, values: &[String]) -> String {
    let item = |text: &String| match text.parse::<i64>().is_ok() || text.parse::<bool>().is_ok() {
        true => text.clone(),
        false => toml::Value::from(text.as_str()).to_string(),
    };
    match (values, arg.get_value_delimiter()) {
        ([value], None) => item(value),
        _ => format!("[{}]", values.iter().map(item).collect::<Vec<_>>().join(", ")),
    }
}

const FILE: &str = "wireproof.toml";

const EXAMPLES: &str = "\
Examples:
  wireproof config show --origin
  wireproof config show > wireproof.toml";
