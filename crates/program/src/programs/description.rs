//! The arguments of a program as a JSON document, from which other programs make its commands again, without their parsers.

use clap::builder::{PossibleValue, PossibleValuesParser, ValueRange};
use clap::{Arg, ArgAction, Command, ValueHint};
use serde::{Deserialize, Serialize};

/// A command.
#[derive(Debug, Serialize, Deserialize)]
struct CommandText {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    about: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    long_about: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after_help: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    needs_subcommand: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    args: Vec<ArgText>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    commands: Vec<Self>,
}

/// An argument.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ArgText {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    long: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    short: Option<char>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    long_help: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heading: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    env: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    value_names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<ValueText>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    defaults: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delimiter: Option<char>,
    /// The least number of values of a positional argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_values: Option<usize>,
    #[serde(skip_serializing_if = "is_false")]
    repeats: bool,
    #[serde(skip_serializing_if = "is_false")]
    takes_no_value: bool,
    #[serde(skip_serializing_if = "is_false")]
    required: bool,
    #[serde(skip_serializing_if = "is_false")]
    hidden: bool,
    #[serde(skip_serializing_if = "is_false")]
    hidden_in_short_help: bool,
}

/// A possible value.
#[derive(Debug, Serialize, Deserialize)]
struct ValueText {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// The description of the commands of a program: all but the commands of every program and the hidden ones.
///
/// # Panics
/// Never: the description has a JSON form.
pub fn description(program: &Command) -> String {
    let commands: Vec<CommandText> = visible(program).map(CommandText::of).collect();
    let mut text = serde_json::to_string_pretty(&commands).expect("text and lists");
    text.push('\n');
    text
}

/// The commands of a description.
///
/// # Panics
/// If it is none. Tests check the descriptions in this program.
pub(super) fn commands(description: &str) -> Vec<Command> {
    let commands: Vec<CommandText> = serde_json::from_str(description).expect("a description");
    commands.into_iter().map(CommandText::into_command).collect()
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|of| !of.is_hide_set() && of.get_name() != "help")
}

impl CommandText {
    fn of(command: &Command) -> Self {
        let text = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string);
        let args = command.get_arguments().filter(|arg| !is_common(arg));
        Self {
            name: command.get_name().to_owned(),
            about: text(command.get_about()),
            long_about: text(command.get_long_about()),
            after_help: text(command.get_after_help()),
            needs_subcommand: command.is_subcommand_required_set(),
            args: args.map(ArgText::of).collect(),
            commands: visible(command).map(Self::of).collect(),
        }
    }

    fn into_command(self) -> Command {
        let mut command = Command::new(self.name).subcommand_required(self.needs_subcommand);
        command = command.args(self.args.into_iter().map(ArgText::into_arg));
        command = command.subcommands(self.commands.into_iter().map(Self::into_command));
        if let Some(text) = self.about {
            command = command.about(text);
        }
        if let Some(text) = self.long_about {
            command = command.long_about(text);
        }
        match self.after_help {
            Some(text) => command.after_help(text),
            None => command,
        }
    }
}

/// Whether every command has the argument.
fn is_common(arg: &Arg) -> bool {
    arg.is_global_set() || ["help", "version"].contains(&arg.get_id().as_str())
}

impl ArgText {
    fn of(arg: &Arg) -> Self {
        let text = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string);
        let takes_no_value = !arg.get_action().takes_values();
        let value = |of: &PossibleValue| ValueText {
            name: of.get_name().to_owned(),
            help: of.get_help().map(ToString::to_string),
        };
        let values = if takes_no_value { Vec::new() } else { arg.get_possible_values() };
        let defaults = arg.get_default_values().iter().filter(|_| !takes_no_value);
        let names = arg.get_value_names().unwrap_or_default().iter().filter(|_| !takes_no_value);
        let hint = arg.get_value_hint();
        Self {
            id: arg.get_id().to_string(),
            long: arg.get_long().map(str::to_owned),
            short: arg.get_short(),
            help: text(arg.get_help()),
            long_help: text(arg.get_long_help()),
            heading: arg.get_help_heading().map(str::to_owned),
            env: arg.get_env().map(|name| name.to_string_lossy().into_owned()),
            value_names: names.map(ToString::to_string).collect(),
            values: values.iter().filter(|of| !of.is_hide_set()).map(value).collect(),
            defaults: defaults.map(|of| of.to_string_lossy().into_owned()).collect(),
            hint: (hint != ValueHint::Unknown).then(|| format!("{hint:?}")),
            delimiter: arg.get_value_delimiter(),
            min_values: arg
                .get_num_args()
                .map(|of| of.min_values())
                .filter(|_| arg.is_positional()),
            repeats: matches!(arg.get_action(), ArgAction::Append | ArgAction::Count),
            takes_no_value,
            required: arg.is_required_set(),
            hidden: arg.is_hide_set(),
            hidden_in_short_help: arg.is_hide_short_help_set(),
        }
    }

    fn into_arg(self) -> Arg {
        let action = match (self.takes_no_value, self.repeats) {
            (true, true) => ArgAction::Count,
            (true, false) => ArgAction::SetTrue,
            (false, true) => ArgAction::Append,
            (false, false) => ArgAction::Set,
        };
        let mut arg = Arg::new(self.id).action(action).required(self.required).hide(self.hidden);
        arg = arg.hide_short_help(self.hidden_in_short_help);
        if let Some(long) = self.long {
            arg = arg.long(long);
        }
        if let Some(short) = self.short {
            arg = arg.short(short);
        }
        if let Some(help) = self.help {
            arg = arg.help(help);
        }
        if let Some(help) = self.long_help {
            arg = arg.long_help(help);
        }
        if let Some(env) = self.env {
            arg = arg.env(env);
        }
        if let Some(min) = self.min_values {
            let most = if self.repeats { usize::MAX } else { min.max(1) };
            arg = arg.num_args(ValueRange::new(min..=most));
        }
        if !self.value_names.is_empty() {
            arg = arg.value_names(self.value_names);
        }
        if !self.values.is_empty() {
            let value = |of: ValueText| match of.help {
                Some(help) => PossibleValue::new(of.name).help(help),
                None => PossibleValue::new(of.name),
            };
            let values: Vec<PossibleValue> = self.values.into_iter().map(value).collect();
            arg = arg.value_parser(PossibleValuesParser::new(values));
        }
        if let Some(hint) = self.hint {
            arg = arg.value_hint(hint.parse::<ValueHint>().unwrap_or_default());
        }
        if let Some(delimiter) = self.delimiter {
            arg = arg.value_delimiter(delimiter);
        }
        if let Some(heading) = self.heading {
            arg = arg.help_heading(heading);
        }
        arg.default_values(self.defaults)
    }
}
