//! The commands that the documents show, run as tests.
//!
//! Every line of a block marked `sh` in `README.md`, `docs/`, `docs/guide/` and `docs/reference/` is a command, run from the root
//! of the repository. `cargo run --release`, whatever the package and the features, and `wireproof` are replaced by the program that the
//! tests built, and `cargo install` checks its arguments, the manifest and the lock file without building: a release build has
//! minutes of its own and no other claim. Benchmarks are shortened to one pass over a small corpus with our
//! own rows, since the peers have a stage of their own. A command that serves until Ctrl-C runs next to the following commands of its
//! document, as the servers of queues and databases do, and a `follow` with an admin API. A line that only sets variables sets them
//! for all following lines.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use crate::left_out;
use crate::peers::RUST_PROFILE;
use crate::process::{self, at};
use crate::server::Server;
use crate::toolchains::{Toolchain, Without};

#[cfg(test)]
mod tests;

/// Runs every command once. Commands that need a missing toolchain are left out.
pub(crate) fn run_commands(without: &Without) -> Result<(), String> {
    let program = process::program("wireproof")?;
    for path in documents()? {
        let text = fs::read_to_string(&path).map_err(|error| at(&path, &error))?;
        let mut commands = commands_of(&text);
        commands.dedup();
        for (part, toolchain) in NEEDS.iter().filter(|(_, toolchain)| !without.has(*toolchain)) {
            let missing = commands.extract_if(.., |command| command.contains(part));
            missing
                .into_iter()
                .try_for_each(|command| left_out::note(&command, toolchain.name()))?;
        }
        run_all(&commands, &program)?;
    }
    Ok(())
}

/// Runs commands in order, with `program` as the program that they build.
fn run_all(commands: &[String], program: &str) -> Result<(), String> {
    let mut server = None::<Server>;
    let mut beside = Vec::new();
    let mut variables = String::new();
    for command in commands.iter().map(|command| shortened(&built(command, program))) {
        println!("$ {command}");
        if sets_variables(&command) {
            variables += &format!("{command}\n");
        } else if serves(&command) {
            // The previous server may use the same ports.
            server.take().map_or(Ok(()), Server::end)?;
            // `exec`, so that the process is the server and not the shell.
            let script = format!("{variables}exec {command}");
            server = Some(Server::start(&mut process::command("sh", &["-ec", &script]))?);
        } else if serves_beside(&command) {
            beside.push(Beside::start(&variables, &command)?);
        } else {
            let script = format!("{variables}{command}");
            process::run(&mut process::command("sh", &["-ec", &script]))?;
        }
    }
    server.map_or(Ok(()), Server::end)
}

/// Whether a line only sets variables, or unsets them.
fn sets_variables(command: &str) -> bool {
    if command.starts_with("export ") || command.starts_with("unset ") {
        return true;
    }
    let Some((name, value)) = command.split_once('=') else { return false };
    let is_name = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    let is_all = value.starts_with("$(") && value.ends_with(')') || !value.contains(' ');
    !name.is_empty() && name.chars().all(is_name) && is_all
}

/// Whether a command serves until it is terminated.
fn serves(command: &str) -> bool {
    let servers = [" sim serve", " sim nostr", " sim labeler"];
    servers.iter().any(|server| command.contains(server)) && !command.contains("--help")
}

/// Whether a command serves until it is killed, next to the network. The commands after the server of a queue, a database or an
/// object store wait for it themselves.
fn serves_beside(command: &str) -> bool {
    let servers = ["kafka.sh broker ", "/nats-server ", "postgres.sh server ", "/versitygw "];
    servers.iter().any(|server| command.contains(server)) || served_address(command).is_some()
}

/// The address of the admin API that a `follow` serves, or of the stream that a server does.
fn served_address(command: &str) -> Option<&str> {
    let servers = [(" serve ", "--listen "), (" follow ", "--admin ")];
    servers.iter().find_map(|(name, option)| {
        let (_, options) = command.split_once(name)?;
        options.split_once(option)?.1.split_whitespace().next()
    })
}

fn documents() -> Result<Vec<PathBuf>, String> {
    let mut documents = vec![process::root().join("README.md")];
    for folder in FOLDERS.map(|folder| process::root().join(folder)) {
        for entry in fs::read_dir(&folder).map_err(|error| at(&folder, &error))? {
            documents.push(entry.map_err(|error| at(&folder, &error))?.path());
        }
    }
    documents.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    documents.sort();
    Ok(documents)
}

/// A fenced block: its mark and its lines.
struct Block<'m> {
    mark: &'m str,
    lines: Vec<&'m str>,
}

fn blocks(markdown: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for line in markdown.lines() {
        match (line.trim().strip_prefix("```"), &mut open) {
            (Some(mark), None) => open = Some(Block { mark, lines: Vec::new() }),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.lines.push(line),
            (None, None) => {}
        }
    }
    blocks
}

/// The commands in blocks marked `sh`, without comments and without the commands of `xtask`, one of which runs this.
fn commands_of(markdown: &str) -> Vec<String> {
    let blocks = blocks(markdown).into_iter().filter(|block| block.mark == "sh");
    let lines = blocks.flat_map(|block| block.lines).map(str::trim);
    let commands = lines.map(|line| line.split(" #").next().unwrap_or_default().trim());
    let is_run = |line: &&str| {
        !line.is_empty() && !line.starts_with('#') && !line.starts_with("cargo xtask ")
    };
    commands.filter(is_run).map(str::to_owned).collect()
}

/// The command with a program that is built already.
fn built(command: &str, program: &str) -> String {
    if let Some(arguments) = command.strip_prefix("cargo install") {
        return format!("{CHECK_INSTALL}{arguments} --root target/install");
    }
    if command == DEMO {
        // With the peer that the stage `peers` builds.
        return format!("WIREPROOF_RUST_PROFILE={RUST_PROFILE} {program}-demo");
    }
    match command.strip_prefix("wireproof ") {
        Some(arguments) => format!("{program} {arguments}"),
        None => with_program(command, program),
    }
}

/// The command with the program, which has every feature, in place of the command that builds one: `wireproof` starts the others.
fn with_program(command: &str, program: &str) -> String {
    let Some((before, after)) = command.split_once("cargo run --release ") else {
        return command.to_owned();
    };
    let arguments = after.split_once("-- ").map_or(after, |(_, arguments)| arguments);
    format!("{before}{program} {}", with_program(arguments, program))
}

/// The command with its benchmark shortened; commands with other options stay as they are.
fn shortened(command: &str) -> String {
    let others = [" bench archive", " bench compare", " bench claims"];
    let measures = |at: &usize| !others.iter().any(|other| command[*at..].starts_with(other));
    let Some(at) = command.find(" bench").filter(measures) else { return command.to_owned() };
    let options =
        [("--quick", ""), ("--passes", " 1"), ("--warmup", " 0"), ("--peers", " wireproof")];
    let missing = options.iter().filter(|(option, _)| !command.contains(option));
    let added: String = missing.map(|(option, value)| format!(" {option}{value}")).collect();
    // Options go to the end of this command, not of the command that it is piped into.
    let end = command[at..].find(['|', '>']).map_or(command.len(), |pipe| at + pipe);
    format!("{}{added} {}", command[..end].trim_end(), &command[end..]).trim_end().to_owned()
}

/// A process that serves next to the network; dropping it kills it.
struct Beside(Child);

impl Beside {
    /// Starts `command` with these variables, and waits until its address can be reached if it names one.
    fn start(variables: &str, command: &str) -> Result<Self, String> {
        // `exec`, so that the process is the server and not the shell.
        let mut shell = process::command("sh", &["-ec", &format!("{variables}exec {command}")]);
        let mut beside = process::start(&mut shell).map(Self)?;
        served_address(command).map_or(Ok(()), |address| beside.wait_for(address))?;
        Ok(beside)
    }

    fn wait_for(&mut self, address: &str) -> Result<(), String> {
        for _ in 0..ATTEMPTS {
            if TcpStream::connect(address).is_ok() {
                return Ok(());
            }
            if let Ok(Some(status)) = self.0.try_wait() {
                return Err(format!("ended before it served {address}: {status}"));
            }
            std::thread::sleep(BETWEEN_ATTEMPTS);
        }
        Err(format!("{address} cannot be reached"))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Killing a process that has ended is an error without consequence.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The folders of the documents, all but the README.
const FOLDERS: [&str; 3] = ["docs", "docs/guide", "docs/reference"];

/// Parts of commands, and the toolchains without which they are left out.
const NEEDS: [(&str, Toolchain); 10] = [
    ("node ", Toolchain::Node),
    ("postgres.sh", Toolchain::Node),
    ("postgres://", Toolchain::Node),
    ("kafka.sh", Toolchain::Java),
    ("kafka://", Toolchain::Java),
    ("/nats-server", Toolchain::Go),
    ("nats://", Toolchain::Go),
    ("/versitygw", Toolchain::Go),
    ("AWS_", Toolchain::Go),
    ("s3://", Toolchain::Go),
];

/// Attempts to reach an admin API: a minute.
const ATTEMPTS: u32 = 600;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

/// The command that the README begins with.
const DEMO: &str = "cargo run --release -p wireproof-demo";

/// Every check of an installation, without a build; the option is not stable yet.
const CHECK_INSTALL: &str = "RUSTC_BOOTSTRAP=1 cargo install --dry-run -Zunstable-options";
