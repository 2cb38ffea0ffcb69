//! `wireproof config settings`: the options that files and the environment can set, explained.

use clap::{Arg, Command};

use super::name_in_file;
use crate::failure::Failure;
use crate::help;

/// A wireproof.toml that explains the options of the command at `path` and of the commands below it, all commented out.
pub(super) fn of(root: &Command, path: &[String]) -> Result<String, Failure> {
    let mut command = root;
    for (at, name) in path.iter().enumerate() {
        command = command.find_subcommand(name).ok_or_else(|| {
            Failure::Usage(format!("unknown command `{}`", path[..=at].join(" ")))
        })?;
    }
    let mut text = String::new();
    explain(command, path, &mut text);
    if text.is_empty() {
        return Err(Failure::Usage(format!("{}: it has no settings", path.join(" "))));
    }
    Ok(text)
}

/// Appends the tables of `command` and of the commands below it.
fn explain(command: &Command, path: &[String], text: &mut String) {
    let (experts, others): (Vec<&Arg>, Vec<&Arg>) = command
        .get_arguments()
        .filter(|arg| name_in_file(arg).is_some())
        .partition(|arg| help::is_expert(arg));
    if !path.is_empty() && experts.len() + others.len() > 0 {
        text.push_str(&format!("\n[{}]\n", path.join(".")));
        others.iter().chain(&experts).for_each(|arg| text.push_str(&setting(arg)));
    }
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        explain(below, &[path, &[below.get_name().to_owned()]].concat(), text);
    }
}

/// The explanation of an option, with its variable and its default.
fn setting(arg: &Arg) -> String {
    let name = name_in_file(arg).unwrap_or_default();
    let variable = arg.get_env().unwrap_or_default().display();
    let whole = arg.get_long_help().or_else(|| arg.get_help());
    let whole = whole.map(ToString::to_string).unwrap_or_default();
    let mut lines = comment(&whole);
    lines += &format!("# Environment: {variable}\n");
    let defaults =
        arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
    let defaults: Vec<String> = defaults.collect();
    let value = if defaults.is_empty() { "…".to_owned() } else { super::to_toml(arg, &defaults) };
    format!("{lines}# {name} = {value}\n\n")
}

/// A text as lines of comments.
fn comment(text: &str) -> String {
    let mut lines = String::new();
    let mut line = "#".to_owned();
    for word in text.split_whitespace() {
        if line.len() + word.len() > LINE_LEN {
            lines += &format!("{line}\n");
            "#".clone_into(&mut line);
        }
        line += &format!(" {word}");
    }
    lines + &line + "\n"
}

/// Bytes of a line of comments.
const LINE_LEN: usize = 96;
