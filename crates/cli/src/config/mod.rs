//! Which values did the caller not give? A flag comes before the environment, the environment before
//! `wireproof.toml` in the current folder, that before the one in the folder for configuration, and
//! all of them before the default.
//!
//! ```toml
//! plc = "http://localhost:4480"          # for every command that has the flag
//!
//! [follow]
//! host = ["https://one.example.com", "https://two.example.com"]
//! ```
//!
//! What can be in the file are the flags that can be in the environment, by their names. Anything else
//! is refused. The values become the defaults of the flags, so that everything is checked in one place.

mod file;
mod show;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches};

use crate::args::Args;
use crate::failure::Failure;
use file::ConfigFile;

pub(crate) use show::show;

/// The arguments, with what files say where the command line and the environment say nothing.
pub(crate) fn parse() -> Result<Args, Failure> {
    let files = read_files()?;
    let matches = with_defaults(Args::command(), &files).get_matches();
    Args::from_arg_matches(&matches).map_err(|error| error.exit())
}

/// The files that there are, the ones that count more first.
fn read_files() -> Result<Vec<ConfigFile>, Failure> {
    let command = Args::command();
    let mut files = Vec::new();
    for path in paths() {
        if let Some(file) = ConfigFile::read(&path)? {
            file.check(&command)?;
            files.push(file);
        }
    }
    Ok(files)
}

fn paths() -> impl Iterator<Item = PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".config"));
    let folder = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home);
    let of_user = folder.map(|folder| folder.join("wireproof").join(NAME));
    std::iter::once(PathBuf::from(NAME)).chain(of_user)
}

/// The command, with the values of files as defaults.
fn with_defaults(command: clap::Command, files: &[ConfigFile]) -> clap::Command {
    fn visit(command: clap::Command, path: &[String], files: &[ConfigFile]) -> clap::Command {
        let command = command.mut_args(|arg| match found(&arg, path, files) {
            Some((values, _)) => arg.default_values(values),
            None => arg,
        });
        command.mut_subcommands(|sub| {
            let inner = [path, &[sub.get_name().to_owned()]].concat();
            visit(sub, &inner, files)
        })
    }
    visit(command, &[], files)
}

/// What a file says of an argument of the command at `path`, and which file.
fn found<'f>(
    arg: &clap::Arg,
    path: &[String],
    files: &'f [ConfigFile],
) -> Option<(Vec<String>, &'f ConfigFile)> {
    let name = name_in_file(arg)?;
    files.iter().find_map(|file| Some((file.values(path, name)?, file)))
}

/// The name under which a file can give the argument, if it can.
fn name_in_file(arg: &clap::Arg) -> Option<&str> {
    arg.get_env()?;
    arg.get_long()
}

const NAME: &str = "wireproof.toml";
