//! A `wireproof.toml`: parsing, checking against the command line, and lookup of values.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::{UNTRUSTED_OPTIONS, name_in_file};
use crate::failure::Failure;
use crate::files;

/// A parsed file.
#[derive(Debug)]
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    source: Source,
    table: Table,
}

/// How a file was found, which decides the options it can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Named by the operator.
    Named,
    /// In the current folder, which may be a stranger's.
    CurrentFolder,
    /// In the configuration folder of the user.
    User,
}

impl ConfigFile {
    /// Reads the file at `path`. It must exist if the operator named it.
    pub(super) fn read(path: &Path, source: Source) -> Result<Option<Self>, Failure> {
        if files::is_standard_stream(path) {
            return Err(Failure::Usage("--config: `-` is no file here: name one".to_owned()));
        }
        let is_optional = source != Source::Named;
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if is_optional && error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::file(path)(error)),
        };
        Self::parse(path, source, &text).map(Some)
    }

    pub(super) fn parse(path: &Path, source: Source, text: &str) -> Result<Self, Failure> {
        let table = text.parse::<Table>();
        let table = table.map_err(|error| usage(path, error.to_string().trim_end()))?;
        Ok(Self { path: path.to_owned(), source, table })
    }

    /// Refuses unknown commands and options, options that this file cannot set, and values that no option
    /// can have.
    pub(super) fn check(&self, command: &clap::Command) -> Result<(), Failure> {
        self.check_table(command, &self.table, true)
    }

    fn check_table(
        &self,
        command: &clap::Command,
        table: &Table,
        is_top_level: bool,
    ) -> Result<(), Failure> {
        for (name, value) in table {
            match (value, command.find_subcommand(name)) {
                (Value::Table(inner), Some(sub)) => self.check_table(sub, inner, false)?,
                (Value::Table(_), None) => {
                    return Err(usage(&self.path, &format!("unknown command `{name}`")));
                }
                _ if !has_option(command, name, is_top_level) => {
                    let owner = if is_top_level { "any command" } else { command.get_name() };
                    let what = format!("`{name}`: not an option of {owner} that a file can set");
                    return Err(usage(&self.path, &what));
                }
                _ if !self.may_set(name) => {
                    let path = self.path.display();
                    let what = format!(
                        "`{name}`: a file in the current folder cannot set this, as it may be a \
                         stranger's: if the file is yours, name it with --config {path}, or move the \
                         setting to the configuration folder (~/.config/wireproof/{path})"
                    );
                    return Err(usage(&self.path, &what));
                }
                _ if texts(value).is_none() => {
                    let what = "expected a string, a number, a boolean, or an array of these";
                    return Err(usage(&self.path, &format!("`{name}`: {what}")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn may_set(&self, name: &str) -> bool {
        self.source != Source::CurrentFolder || UNTRUSTED_OPTIONS.contains(&name)
    }

    /// The values of the option `name` of the command at `path`: from the command's table, else from
    /// the top level.
    pub(super) fn values(&self, path: &[String], name: &str) -> Option<Vec<String>> {
        let of_command =
            path.iter().try_fold(&self.table, |table, part| table.get(part)?.as_table());
        let own = of_command.and_then(|table| table.get(name)).and_then(texts);
        own.or_else(|| self.table.get(name).and_then(texts))
    }
}

/// Whether a file can set `name` for the command, or for one of its subcommands.
fn has_option(command: &clap::Command, name: &str, with_inner: bool) -> bool {
    let own = command.get_arguments().any(|arg| name_in_file(arg) == Some(name));
    own || with_inner && command.get_subcommands().any(|sub| has_option(sub, name, true))
}

/// The value as command-line arguments.
fn texts(value: &Value) -> Option<Vec<String>> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Some(value.to_string()),
        _ => None,
    };
    match value {
        Value::Array(values) => values.iter().map(text).collect(),
        value => text(value).map(|text| vec![text]),
    }
}

fn usage(path: &Path, what: &str) -> Failure {
    Failure::Usage(format!("{}: {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    fn command() -> Command {
        let arg = |name| Arg::new(name).long(name).env("WIREPROOF_X");
        let follow = Command::new("follow").arg(arg("host")).arg(arg("plc"));
        Command::new("wireproof")
            .arg(Arg::new("color").long("color"))
            .subcommand(follow)
            .subcommand(Command::new("resolve").arg(arg("plc")))
    }

    fn file(text: &str) -> Result<ConfigFile, Failure> {
        let file = ConfigFile::parse(Path::new("wireproof.toml"), Source::User, text)?;
        file.check(&command())?;
        Ok(file)
    }

    fn refused(text: &str) -> String {
        match file(text).unwrap_err() {
            Failure::Usage(message) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_commands_table_takes_precedence_over_the_top_level() {
        let file = file("plc = \"a\"\n[follow]\nplc = \"b\"\nhost = [\"x\", \"y\"]").unwrap();
        let values = |command: &str, name| file.values(&[command.to_owned()], name);
        assert_eq!(values("follow", "plc"), Some(vec!["b".to_owned()]));
        assert_eq!(values("resolve", "plc"), Some(vec!["a".to_owned()]));
        assert_eq!(values("follow", "host").unwrap(), ["x", "y"]);
        assert_eq!(values("resolve", "host"), None);
    }

    #[test]
    fn unknown_names_and_bad_values_are_refused_with_the_file() {
        assert!(
            refused("plcc = 1").starts_with("wireproof.toml: `plcc`: not an option of any command")
        );
        assert!(refused("color = \"never\"").contains("`color`"));
        assert!(refused("[resolve]\nhost = 1").contains("not an option of resolve"));
        assert!(refused("[folow]\nhost = 1").contains("unknown command `folow`"));
        assert!(refused("plc = 1979-05-27").contains("a string, a number"));
        assert!(refused("plc = [[1]]").contains("a string, a number"));
        assert!(refused("plc = ").contains("line 1"));
    }
}
