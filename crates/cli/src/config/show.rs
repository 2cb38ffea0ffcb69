//! Which values would count now, and where are they from?

use std::io::Write;

use clap::CommandFactory;

use super::{ConfigFile, found, name_in_file, read_files};
use crate::args::Args;
use crate::args::config::ShowArgs;
use crate::failure::Failure;
use crate::output::Output;

/// Prints a `wireproof.toml` that says what counts without any flags.
pub(crate) fn show(args: &ShowArgs, output: Output) -> Result<(), Failure> {
    let (command, files) = (Args::command(), read_files()?);
    let mut text = String::new();
    tell(&command, &[], &files, args.origin, &mut text);
    output.stdout().write_all(text.trim_start().as_bytes())?;
    Ok(())
}

fn tell(
    command: &clap::Command,
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
            Some(values) => lines += &format!("{name} = {}{origin}\n", spelled(arg, &values)),
            None => lines += &format!("# {name} is not set\n"),
        }
    }
    if !lines.is_empty() {
        *text += &format!("\n[{}]\n{lines}", path.join("."));
    }
    for sub in command.get_subcommands() {
        let inner = [path, &[sub.get_name().to_owned()]].concat();
        tell(sub, &inner, files, with_origin, text);
    }
}

/// The values that count if there is no flag, and who says so.
fn value_of(
    arg: &clap::Arg,
    path: &[String],
    files: &[ConfigFile],
) -> (Option<Vec<String>>, String) {
    let variable = arg.get_env().expect("a name in a file has one");
    if let Ok(value) = std::env::var(variable) {
        let values = match arg.get_value_delimiter() {
            Some(delimiter) => value.split(delimiter).map(str::to_owned).collect(),
            None => vec![value],
        };
        return (Some(values), format!("from the environment: {}", variable.display()));
    }
    if let Some((values, file)) = found(arg, path, files) {
        return (Some(values), format!("from {}", file.path.display()));
    }
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy().into()).collect();
    ((!defaults.is_empty()).then_some(defaults), "the default".to_owned())
}

/// The values as a file has them.
fn spelled(arg: &clap::Arg, values: &[String]) -> String {
    let spell = |text: &String| match text.parse::<i64>().is_ok() || text.parse::<bool>().is_ok() {
        true => text.clone(),
        false => toml::Value::from(text.as_str()).to_string(),
    };
    match (values, arg.get_value_delimiter()) {
        ([value], None) => spell(value),
        _ => format!("[{}]", values.iter().map(spell).collect::<Vec<_>>().join(", ")),
    }
}
