//! The programs that make up the command `wireproof`, and how one starts another.
//!
//! `wireproof` has the commands that most people need. Archives and the benchmark are programs of their own, found next
//! to it or on PATH as git and cargo find theirs, and started with the same arguments: `wireproof archive verify DIR`
//! runs `wireproof-archive archive verify DIR`. The programs know each other's arguments from a description, for the
//! help, completions, manual pages and files of options.

mod description;

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process;

use clap::Command;

use crate::failure::Failure;

pub use description::description;

/// A program.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// The name of its file.
    pub name: &'static str,
    /// The folder of its package in the repository.
    pub folder: &'static str,
    /// The commands for which `wireproof` starts it, with their texts in its help.
    commands: &'static [(&'static str, &'static str)],
    /// The commands that no help names.
    hidden: &'static [&'static str],
    /// Its arguments.
    description: &'static str,
}

/// Verification, streams, Nostr, files.
pub static WIREPROOF: Program = Program {
    name: "wireproof",
    folder: "crates/cli",
    commands: &[],
    hidden: &[],
    description: include_str!("wireproof.json"),
};

/// Archives, and the backfill into them.
pub static ARCHIVE: Program = Program {
    name: "wireproof-archive",
    folder: "crates/archive-cli",
    commands: &[
        ("archive", "Keep verified history in open tables, and prove it again"),
        (
            "backfill",
            "Fetch the repositories of all accounts of hosts, verify them, and store them in an archive",
        ),
        ("blobs", "Fetch the blobs that records name, and check them"),
        ("serve", "Serve a verified stream to the clients of relays and Jetstreams"),
    ],
    hidden: &[],
    description: include_str!("wireproof-archive.json"),
};

/// The benchmark, its corpora and reports, and the simulated network.
pub static BENCH: Program = Program {
    name: "wireproof-bench",
    folder: "crates/bench-cli",
    commands: &[
        ("bench", "Measure how fast implementations do the same work"),
        (
            "report",
            "Render results of `wireproof bench` as an HTML page, and as SVG charts for a document",
        ),
        ("corpus", "Generate files for tests and measurements"),
        ("sim", "Serve a simulated network of accounts and servers, a labeler, or a Nostr relay"),
    ],
    hidden: &["runner"],
    description: include_str!("wireproof-bench.json"),
};

/// All programs.
static PROGRAMS: [&Program; 3] = [&WIREPROOF, &ARCHIVE, &BENCH];

/// The program that has the command in these arguments of a process, the first of which is the program; `wireproof` if no other has.
pub fn of(arguments: &[OsString]) -> &'static Program {
    let named = command_in(arguments);
    let is_named = |name: &&str| named == Some(OsStr::new(name));
    let has = |program: &&&Program| {
        let mut names = program.commands.iter().map(|(name, _)| name).chain(program.hidden);
        names.any(is_named)
    };
    PROGRAMS.iter().find(has).unwrap_or(&&WIREPROOF)
}

/// The first argument that is not a global option.
fn command_in(arguments: &[OsString]) -> Option<&OsStr> {
    let mut rest = arguments.iter().skip(1);
    while let Some(argument) = rest.next() {
        match argument.to_str() {
            Some("--") => return None,
            Some(option) if GLOBAL_OPTIONS.contains(&option) => drop(rest.next()),
            Some(option) if option.starts_with('-') => {}
            _ => return Some(argument),
        }
    }
    None
}

/// The global options with a value.
const GLOBAL_OPTIONS: [&str; 4] = ["--color", "--config", "--backend", "--log"];

impl Program {
    /// Adds the commands of the other programs to this one's, as far as its help needs them.
    pub fn with_others(&self, command: Command, arguments: &[OsString]) -> Command {
        if command_in(arguments) == Some(OsStr::new("help")) {
            return self.with_described_others(command);
        }
        self.with_named_others(command)
    }

    fn with_named_others(&self, command: Command) -> Command {
        let named =
            |(name, about): &(&'static str, &'static str)| Command::new(*name).about(*about);
        command.subcommands(self.others().flat_map(|of| of.commands).map(named))
    }

    /// Adds the commands of the other programs, with their arguments.
    pub fn with_described_others(&self, command: Command) -> Command {
        command.subcommands(self.others().flat_map(|of| description::commands(of.description)))
    }

    fn others(&self) -> impl Iterator<Item = &'static Self> {
        PROGRAMS.into_iter().filter(move |of| *of != self)
    }

    /// Whether the description of this program is up to date.
    ///
    /// # Errors
    /// The command to run, if it is not.
    pub fn check_description(&self, command: &Command) -> Result<(), String> {
        let new = description(command);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/programs").join(self.name);
        let path = path.with_extension("json");
        if env::var_os(UPDATE).is_some() {
            return std::fs::write(&path, new).map_err(|error| error.to_string());
        }
        if new == self.description {
            return Ok(());
        }
        Err(format!("{} is out of date: run this test with {UPDATE}=1", path.display()))
    }

    /// Says that a part of the program needs a feature that this build does not have, and how to get it.
    pub fn missing_feature(&self, part: &str, feature: &str) -> String {
        format!(
            "{part} needs the feature `{feature}`, which this build does not have. In a clone of the repository, run: \
             cargo install --locked --path {} --features {feature}",
            self.folder
        )
    }

    /// Replaces this process by the program.
    ///
    /// # Errors
    /// If it cannot be found or started. On systems without such a replacement it is run, and this process ends with its
    /// exit code.
    pub fn start(&self, arguments: &[OsString]) -> Failure {
        let Some(path) = self.find() else {
            let command = command_in(arguments).unwrap_or_default().display();
            return Failure::Usage(format!(
                "`wireproof {command}` is the program {}, which is neither next to this one nor on PATH. In a clone of the \
                 repository, run: cargo install --locked --path {}",
                self.name, self.folder
            ));
        };
        let mut child = process::Command::new(&path);
        child.args(arguments.iter().skip(1));
        Failure::file(&path)(replace_by(child))
    }

    /// Its file: next to this program, or on PATH.
    fn find(&self) -> Option<PathBuf> {
        let name = format!("{}{}", self.name, env::consts::EXE_SUFFIX);
        let own = env::current_exe().ok();
        let beside = own.as_deref().and_then(Path::parent).map(Path::to_owned);
        let on_path = env::var_os("PATH").unwrap_or_default();
        let mut folders = beside.into_iter().chain(env::split_paths(&on_path));
        // A relative folder could be among a stranger's files.
        folders
            .by_ref()
            .filter(|folder| folder.is_absolute())
            .map(|of| of.join(&name))
            .find(|path| path.is_file())
    }
}

/// Replaces this process, and returns why it could not be done.
#[cfg(unix)]
fn replace_by(mut command: process::Command) -> std::io::Error {
    std::os::unix::process::CommandExt::exec(&mut command)
}

#[cfg(not(unix))]
fn replace_by(mut command: process::Command) -> std::io::Error {
    match command.status() {
        Ok(status) => process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}

/// The variable with which tests rewrite descriptions.
const UPDATE: &str = "WIREPROOF_UPDATE_DESCRIPTIONS";

#[cfg(test)]
mod tests {
    use super::*;

    fn of_line(line: &str) -> &'static Program {
        of(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_command_decides_the_program_wherever_global_options_are() {
        assert_eq!(of_line("wireproof archive verify x"), &ARCHIVE);
        assert_eq!(of_line("wireproof --log json -q --color=never backfill"), &ARCHIVE);
        assert_eq!(of_line("wireproof --config sim bench decode"), &BENCH);
        for line in
            ["wireproof", "wireproof verify archive", "wireproof help bench", "wireproof -- bench"]
        {
            assert_eq!(of_line(line), &WIREPROOF, "{line}");
        }
    }

    #[test]
    fn the_help_names_what_the_other_programs_describe() {
        for program in PROGRAMS {
            let described = description::commands(program.description);
            for (name, about) in program.commands {
                let found = described.iter().find(|of| of.get_name() == *name);
                let text = found.and_then(|of| of.get_about()).map(ToString::to_string);
                assert_eq!(text.as_deref(), Some(*about), "{name}");
            }
            if program != &WIREPROOF {
                assert_eq!(described.len(), program.commands.len(), "{}", program.name);
            }
        }
    }
}
