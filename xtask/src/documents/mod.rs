//! Do the commands that the documents show still work?
//!
//! Every line of a block marked `sh` in `README.md`, in `docs/` and in `docs/guide/` is a command, and is run
//! from the root of the repository. A benchmark is cut short: one pass, over a small corpus, of ourselves
//! alone, as the peers have just been run. A command that serves until Ctrl-C does so while the commands
//! behind it in the same document run, and is ended then. A line that only sets variables sets them for
//! all lines behind it, as it would in a terminal.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process;
use crate::tally::Tally;
use server::Server;

#[cfg(test)]
mod pages;
mod server;

/// Runs each command once.
pub(crate) fn run_commands(tally: &mut Tally) -> Result<(), String> {
    for path in documents()? {
        let text = fs::read_to_string(&path).map_err(|error| at(&path, &error))?;
        let mut commands = commands_of(&text);
        commands.dedup();
        run_all(&commands, tally)?;
    }
    Ok(())
}

fn run_all(commands: &[String], tally: &mut Tally) -> Result<(), String> {
    let (mut server, mut variables) = (None::<Server>, String::new());
    for command in commands.iter().map(|command| shortened(command)) {
        println!("$ {command}");
        let outcome = if sets_variables(&command) {
            variables += &format!("{command}\n");
            Ok(())
        } else if serves(&command) {
            // The one before is ended first: it may have the same ports.
            server.take().map_or(Ok(()), Server::end)?;
            Server::start(&variables, &command).map(|started| server = Some(started))
        } else {
            let script = format!("{variables}{command}");
            process::run(&mut process::command("sh", &["-ec", &script]))
        };
        outcome.inspect_err(|_| tally.failed += 1)?;
        tally.passed += 1;
    }
    server.map_or(Ok(()), Server::end)
}

/// Whether a line sets variables and runs nothing with them.
fn sets_variables(command: &str) -> bool {
    if command.starts_with("export ") {
        return true;
    }
    let Some((name, value)) = command.split_once('=') else { return false };
    let is_name = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    let is_all = value.starts_with("$(") && value.ends_with(')') || !value.contains(' ');
    !name.is_empty() && name.chars().all(is_name) && is_all
}

/// Whether a command serves until it is asked to end.
fn serves(command: &str) -> bool {
    command.contains(" sim serve") && !command.contains("--help")
}

fn documents() -> Result<Vec<PathBuf>, String> {
    let mut documents = vec![process::root().join("README.md")];
    for folder in ["docs", "docs/guide"].map(|folder| process::root().join(folder)) {
        for entry in fs::read_dir(&folder).map_err(|error| at(&folder, &error))? {
            documents.push(entry.map_err(|error| at(&folder, &error))?.path());
        }
    }
    documents.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    documents.sort();
    Ok(documents)
}

fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// The commands in the blocks marked `sh`, without comments and without the command that runs us.
fn commands_of(markdown: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut is_inside = false;
    for line in markdown.lines() {
        let line = line.trim();
        if let Some(mark) = line.strip_prefix("```") {
            is_inside = !is_inside && mark == "sh";
        } else if is_inside {
            let command = line.split(" #").next().unwrap_or_default().trim();
            let is_us = command.starts_with("cargo xtask test");
            if !command.is_empty() && !command.starts_with('#') && !is_us {
                commands.push(command.to_owned());
            }
        }
    }
    commands
}

/// The command with a benchmark cut short. To compare the results of two takes no time.
fn shortened(command: &str) -> String {
    let measures = |at: &usize| !command[*at..].starts_with(" bench compare");
    let Some(at) = command.find(" bench").filter(measures) else { return command.to_owned() };
    let options =
        [("--quick", ""), ("--passes", " 1"), ("--warmup", " 0"), ("--peers", " wireproof")];
    let missing = options.iter().filter(|(option, _)| !command.contains(option));
    let added: String = missing.map(|(option, value)| format!(" {option}{value}")).collect();
    // Options go to the end of this command, not of what it is piped into.
    let end = command[at..].find(['|', '>']).map_or(command.len(), |pipe| at + pipe);
    format!("{}{added} {}", command[..end].trim_end(), &command[end..]).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_the_lines_of_sh_blocks() {
        let markdown = "\
text\n```sh\ncargo run -- a # why\n\n# remark\ncargo xtask test\n```\n`cargo no`\n```text\nnot this\n```\n\
```rust\nnor();\n```\n```sh\ncargo run -- b | head\n```\n";
        assert_eq!(commands_of(markdown), ["cargo run -- a", "cargo run -- b | head"]);
    }

    #[test]
    fn a_line_that_only_sets_variables_is_told_from_a_command() {
        assert!(sets_variables("KEY=$(grep -o 'a b' file | head -n 1)"));
        assert!(sets_variables("export WIREPROOF_PLC=http://localhost:1 OTHER=2"));
        assert!(sets_variables("KEY=1"));
        assert!(!sets_variables("KEY=1 cargo run"));
        assert!(!sets_variables("cargo run -- --key=1"));
    }

    #[test]
    fn variables_are_those_of_the_lines_before() {
        let commands = ["NAME=$(echo a b)", "export OTHER=c", "test \"$NAME$OTHER\" = 'a bc'"];
        let mut tally = Tally::default();
        assert_eq!(run_all(&commands.map(str::to_owned), &mut tally), Ok(()));
        assert_eq!(tally.passed, 3);
        let alone = ["test -n \"$NAME\"".to_owned()];
        assert!(run_all(&alone, &mut tally).is_err());
    }

    #[test]
    fn only_a_simulated_network_serves_until_it_is_ended() {
        assert!(serves("cargo run --release -- sim serve --rate 50"));
        assert!(!serves("cargo run --release -- sim serve --help"));
        assert!(!serves("cargo run --release -- verify ada.test"));
    }

    #[test]
    fn a_benchmark_is_cut_short_and_nothing_else_is() {
        for command in ["cargo run -- inspect x", "cargo run -- bench compare old.json new.json"] {
            assert_eq!(shortened(command), command);
        }
        assert_eq!(
            shortened("cargo run -- bench decode --passes 9 --json - | head"),
            "cargo run -- bench decode --passes 9 --json - --quick --warmup 0 --peers wireproof | head"
        );
        assert_eq!(
            shortened("wireproof bench --quick --peers a"),
            "wireproof bench --quick --peers a --passes 1 --warmup 0"
        );
    }
}
