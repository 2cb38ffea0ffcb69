//! The help of commands: with `-h` one screen with a line an option, with `--help` everything that a command line usually sets.
//!
//! The help has only the names of options for experts. `wireproof config settings` explains them.

use clap::{Arg, Command};

/// Makes the short help of every command one line an option; for a command with many options it has the options that most
/// need.
pub(crate) fn with_short_help(command: Command) -> Command {
    let main = MAIN_OPTIONS.iter().find(|(name, _)| *name == command.get_name());
    let main = main.map(|(_, options)| *options);
    let command = command.mut_args(|arg| {
        let is_main =
            arg.is_positional() || main.is_none_or(|main| main.contains(&arg.get_id().as_str()));
        let is_shown = is_main && !HIDDEN_GLOBALS.contains(&arg.get_id().as_str());
        let is_hidden = arg.is_hide_set() || is_expert(&arg);
        short(arg, is_shown).hide(is_hidden)
    });
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let command = match main {
        Some(_) => command.after_help(MORE),
        None => command,
    };
    let experts = expert_names(&command);
    let long = [experts.as_str(), &examples].into_iter().filter(|text| !text.is_empty());
    let long = long.collect::<Vec<_>>().join("\n\n");
    command.after_long_help(long).mut_subcommands(with_short_help)
}

/// Whether an option is for experts.
pub(crate) fn is_expert(arg: &Arg) -> bool {
    arg.get_help_heading() == Some(EXPERT)
}

/// The names of a command's options for experts, with where they are explained.
fn expert_names(command: &Command) -> String {
    let names = command.get_arguments().filter(|arg| is_expert(arg)).filter_map(Arg::get_long);
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return String::new();
    }
    format!("{EXPERT}:\n{}\n{EXPLAINED}", wrapped(&names))
}

/// Names with commas between them, in lines of the usual width.
fn wrapped(names: &[&str]) -> String {
    let mut lines = vec![String::new()];
    for name in names {
        let line = lines.last_mut().expect("it begins with a line");
        if line.len() + name.len() > LINE_LEN {
            lines.push(format!("{name}, "));
        } else {
            line.push_str(name);
            line.push_str(", ");
        }
    }
    let lines = lines.iter().map(|line| format!("  {}", line.trim_end()));
    lines.collect::<Vec<_>>().join("\n").trim_end_matches(',').to_owned()
}

/// An option with one line of short help, or none, and with all of it in the long help.
fn short(arg: Arg, is_shown: bool) -> Arg {
    let Some(whole) = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string)
    else {
        return arg;
    };
    let variable = arg.get_env().map(|name| format!(" [env: {}]", name.display()));
    let long = format!("{whole}{}", variable.unwrap_or_default());
    arg.help(first_statement(&whole)).long_help(long).hide_env(true).hide_short_help(!is_shown)
}

/// The text up to the end of its first statement, with the default that it names at the end.
fn first_statement(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (text, default) =
        match text.rfind(" [default: ").filter(|_| text.trim_end_matches('.').ends_with(']')) {
            Some(at) => text.split_at(at),
            None => (&*text, ""),
        };
    let ends = [". ", "; ", ": ", " (", " [default"];
    let end = ends.iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    format!("{}{}", text[..end].trim_end_matches('.'), default.trim_end_matches('.'))
}

/// The heading of options that few need: the help only names them, and `wireproof config settings` explains them.
pub const EXPERT: &str = "Expert";

/// The commands with many options, and the options that most need.
const MAIN_OPTIONS: [(&str, &[&str]); 1] = [(
    "follow",
    &[
        "host",
        "jetstream",
        "collections",
        "dids",
        "condition",
        "verify_against",
        "cursor",
        "state",
        "to",
        "backfill",
        "all_from",
        "ops",
        "events",
        "metrics",
        "relays",
        "kind",
        "author",
        "since",
        "stored",
    ],
)];

/// Options of every command that the short help leaves out.
const HIDDEN_GLOBALS: [&str; 4] = ["backend", "color", "config", "log_form"];

const MORE: &str = "`--help` has all options, their names in the environment, and examples.";

const EXPLAINED: &str = "  Set them in wireproof.toml, in the environment or as options. `wireproof config settings` explains them.";

/// Columns of a line of names.
const LINE_LEN: usize = 78;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_long_help_names_options_for_experts_once_and_explains_the_others() {
        let expert = |name| Arg::new(name).long(name).help("Explained").help_heading(EXPERT);
        let command = Command::new("x")
            .args([
                Arg::new("plain").long("plain").help("One. Two."),
                expert("first"),
                expert("second"),
            ])
            .after_help("Examples: none");
        let help = with_short_help(command).render_long_help().to_string();
        assert!(help.contains("--plain"), "{help}");
        assert!(help.contains("Expert:\n  first, second\n  Set them"), "{help}");
        assert!(!help.contains("--first") && !help.contains("Explained"), "{help}");
        assert!(help.trim_end().ends_with("Examples: none"), "{help}");
    }

    #[test]
    fn names_are_wrapped_without_a_comma_at_the_end() {
        let long = "n".repeat(50);
        let lines = wrapped(&[&long, &long, "last"]);
        assert_eq!(lines, format!("  {long},\n  {long}, last"));
    }

    #[test]
    fn the_short_help_of_an_option_is_its_first_statement_and_its_default() {
        for (text, short) in [
            (
                "A relay; of several, the next one [default: a.example].",
                "A relay [default: a.example]",
            ),
            ("Print all of it. The rest follows.", "Print all of it"),
            ("Print only these: a, or b [default: all]", "Print only these [default: all]"),
            ("Refuse what is\ninvalid (see below).", "Refuse what is invalid"),
            ("One", "One"),
        ] {
            assert_eq!(first_statement(text), short);
        }
    }
}
