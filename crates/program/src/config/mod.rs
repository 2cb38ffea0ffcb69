//! Options from the environment and from `wireproof.toml`, and `wireproof config show`.
//!
//! A flag takes precedence over the environment, the environment over the file of `--config`, or else
//! `wireproof.toml` in the current folder, that over the user's file in the configuration folder, and any of
//! them over the default.
//!
//! ```toml
//! plc = "http://localhost:4480"          # for every command that has the flag
//!
//! [follow]
//! host = ["https://one.example.com", "https://two.example.com"]
//! ```
//!
//! A file can set the flags that the environment can set, under their names; anything else is refused. The
//! values become the defaults of the flags, so that the same code checks flags and files.
//!
//! The current folder may be a stranger's, such as an unpacked archive. Its file can set only the options of
//! `UNTRUSTED_OPTIONS`: options that decide about trust, programs to run, and files to read or write are refused there.

mod environment;
mod file;
mod settings;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Args, Command, Parser, Subcommand};

use crate::failure::Failure;
use crate::help::with_short_help;
use crate::log::{self, Level};
use crate::output::Output;
use crate::programs::Program;
use crate::standard_streams;
use file::{ConfigFile, Source};

/// Show the configuration from the environment and from files.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the values that apply without flags, as a wireproof.toml.
    ///
    /// In order of precedence: flags, the environment (`WIREPROOF_…`), the file of --config or else wireproof.toml in
    /// the current folder, $XDG_CONFIG_HOME/wireproof/wireproof.toml, the defaults. The file in the current folder can
    /// only set selections of events, limits and delays; every other option needs --config or the user's own file.
    #[command(after_help = EXAMPLES)]
    Show(ShowArgs),
    /// Explain the options of a command that files and the environment can set.
    ///
    /// Prints a wireproof.toml with a comment for every option: its effect, its variable and its default.
    #[command(after_help = SETTINGS_EXAMPLES)]
    Settings(SettingsArgs),
}

/// The form of the output.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Add the origin of every value as a comment.
    #[arg(long)]
    origin: bool,
}

/// Whose options are explained.
#[derive(Debug, Args)]
pub struct SettingsArgs {
    /// The command, such as `follow` or `archive follow` [default: every command].
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

/// Parses the arguments of a process, with values of files as defaults.
///
/// # Errors
/// If a file cannot be read, or names an option or a value that is not valid. Arguments that are not valid end the process.
pub fn parse<A: Parser>(program: &Program, arguments: &[OsString]) -> Result<A, Failure> {
    let may_be_named = may_name_file(arguments);
    let named = may_be_named.then(|| named_file(A::command(), arguments)).flatten();
    let files = read_files(|| program.with_described_others(A::command()), named.as_deref())?;
    let build = || with_files(program.with_others(A::command(), arguments), &files);
    let mut command = build();
    let matches = command.try_get_matches_from_mut(arguments).unwrap_or_else(|error| {
        if error.kind() == ErrorKind::DisplayVersion {
            error.exit()
        }
        // The texts of the help are only made where one is shown: they take as long as four times everything else here.
        with_short_help(build()).get_matches_from(arguments)
    });
    standard_streams::check(&command, &matches)?;
    for warning in environment::misspelt(&command, || program.with_described_others(A::command())) {
        // If standard error is closed, the option has its default.
        let _ = log::print(Level::Warning, &warning);
    }
    A::from_arg_matches(&matches).map_err(|error| error.exit())
}

/// Runs `config`; `arguments` are the arguments of all programs.
///
/// # Errors
/// As [`parse`], and if standard output cannot be written.
pub fn run(
    command: &ConfigCommand,
    named: Option<&Path>,
    arguments: Command,
    output: Output,
) -> Result<(), Failure> {
    let text = match command {
        ConfigCommand::Show(args) => {
            let files = read_files(|| arguments.clone(), named)?;
            let mut text = String::new();
            show(&arguments, &[], &files, args.origin, &mut text);
            text
        }
        ConfigCommand::Settings(args) => settings::of(&arguments, &args.command)?,
    };
    output.text(text.trim_start())
}

/// Whether an argument or the environment can have `--config`.
fn may_name_file(arguments: &[OsString]) -> bool {
    has_config(arguments) || std::env::var_os(CONFIG_VARIABLE).is_some()
}

/// Whether an argument can be `--config`.
fn has_config(arguments: &[OsString]) -> bool {
    arguments.iter().any(|argument| argument.as_encoded_bytes().starts_with(CONFIG_FLAG))
}

/// The file of `--config`. Other errors of the command line are reported once the files are read.
fn named_file(command: Command, arguments: &[OsString]) -> Option<PathBuf> {
    let matches = command.ignore_errors(true).try_get_matches_from(arguments).ok()?;
    matches.try_get_one::<PathBuf>(CONFIG).ok()?.cloned()
}

/// The files that exist, in the order of precedence.
fn read_files(
    command: impl Fn() -> Command,
    named: Option<&Path>,
) -> Result<Vec<ConfigFile>, Failure> {
    let mut files = Vec::new();
    for (path, source) in sources(named) {
        if let Some(file) = ConfigFile::read(&path, source)? {
            file.check(&command())?;
            files.push(file);
        }
    }
    Ok(files)
}

/// The paths of the files, in the order of precedence.
fn sources(named: Option<&Path>) -> Vec<(PathBuf, Source)> {
    let of_user = user_file();
    let first = match named {
        Some(path) => Some((path.to_owned(), Source::Named)),
        None if of_user.as_deref().is_some_and(|path| is_same(path, Path::new(FILE))) => None,
        None => Some((PathBuf::from(FILE), Source::CurrentFolder)),
    };
    first.into_iter().chain(of_user.map(|path| (path, Source::User))).collect()
}

fn user_file() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".config"));
    let folder = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home);
    folder.map(|folder| folder.join("wireproof").join(FILE))
}

/// Whether both paths lead to the same existing file.
fn is_same(path: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(path), fs::canonicalize(other)), (Ok(path), Ok(other)) if path == other)
}

/// The command with the values of files as defaults.
fn with_files(command: Command, files: &[ConfigFile]) -> Command {
    if files.is_empty() { command } else { with_defaults(command, &[], files) }
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
    arg.get_long().filter(|name| ![CONFIG, BACKEND, LOG].contains(name))
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
    let item = |text: &String| {
        if text.parse::<i64>().is_ok() || text.parse::<bool>().is_ok() {
            text.clone()
        } else {
            toml::Value::from(text.as_str()).to_string()
        }
    };
    match (values, arg.get_value_delimiter()) {
        ([value], None) => item(value),
        _ => format!("[{}]", values.iter().map(item).collect::<Vec<_>>().join(", ")),
    }
}

const FILE: &str = "wireproof.toml";

/// The flag that names a trusted file. No file can set it.
const CONFIG: &str = "config";
const CONFIG_FLAG: &[u8] = b"--config";
const CONFIG_VARIABLE: &str = "WIREPROOF_CONFIG";

/// For tests and benchmarks of one process, not for a machine.
const BACKEND: &str = "backend";

/// The form of messages, which include messages about the files.
const LOG: &str = "log";

/// The options that a file in the current folder can set: sources and selections of events that are verified
/// nevertheless, limits, and delays. None of them decides whom to trust, whether to verify, which programs to run, or
/// which files and ports to use. An option that is not listed is refused there.
const UNTRUSTED_OPTIONS: [&str; 18] = [
    "backoff-first-ms",
    "backoff-max-ms",
    "capture-bytes",
    "collections",
    "corpus",
    "cursor",
    "dids",
    "host",
    "idle-seconds",
    "max-bytes",
    "max-seconds",
    "max-silent-seconds",
    "min-rate",
    "pds",
    "resync",
    "seconds",
    "sigs",
    "workers",
];

const SETTINGS_EXAMPLES: &str = "\
Examples:
  wireproof config settings follow
  wireproof config settings archive follow > wireproof.toml";

const EXAMPLES: &str = "\
Examples:
  wireproof config show --origin
  wireproof config show > mine.toml && wireproof --config mine.toml follow";

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;
    use crate::args::GlobalArgs;
    use crate::help::EXPERT;

    #[test]
    fn a_file_is_named_by_one_flag_and_one_variable() {
        let command = GlobalArgs::augment_args(Command::new("x"));
        let config = command.get_arguments().find(|arg| arg.get_id() == CONFIG).unwrap();
        assert_eq!(
            config.get_long().map(|name| format!("--{name}").into_bytes()),
            Some(CONFIG_FLAG.to_vec())
        );
        assert_eq!(config.get_env(), Some(CONFIG_VARIABLE.as_ref()));
        assert_eq!(
            (config.get_short(), config.get_all_aliases(), config.get_all_short_aliases()),
            (None, None, None)
        );
        let has = |line: &str| has_config(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(has("x verify --config a.toml") && has("x --config=a.toml verify"));
        assert!(!has("x config show") && !has("x verify config --conf"));
    }

    #[test]
    fn arguments_are_parsed_as_with_the_texts_of_the_help() {
        let build = || {
            let expert = Arg::new("rare").long("rare").help("Rare. Text.").help_heading(EXPERT);
            let of_follow = [Arg::new("host").long("host").help("A host."), expert];
            let follow = Command::new("follow").args(of_follow).after_help("Examples: none");
            let file = Arg::new("file").required(true).long_help("A file. One.");
            Command::new("x")
                .version("1")
                .subcommand(follow)
                .subcommand(Command::new("read").arg(file))
        };
        for line in [
            "x",
            "x --version",
            "x -h",
            "x read",
            "x read a",
            "x read a b",
            "x follow",
            "x follow --rare 1 --host a",
            "x follow --host",
            "x follow --hst a",
            "x other",
            "x help follow",
            "x follow --help",
        ] {
            let arguments: Vec<&str> = line.split(' ').collect();
            let plain = build().try_get_matches_from_mut(&arguments);
            let with_texts = with_short_help(build()).try_get_matches_from(&arguments);
            match (plain, with_texts) {
                (Ok(plain), Ok(with_texts)) => assert_eq!(plain, with_texts, "{line}"),
                (Err(plain), Err(with_texts)) => {
                    assert_eq!(plain.kind(), with_texts.kind(), "{line}")
                }
                (plain, with_texts) => panic!("{line}: {plain:?}, {with_texts:?}"),
            }
        }
    }
}
