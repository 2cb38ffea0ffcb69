//! The machine, the corpora, and the commands that repeat the measurements.

use std::collections::BTreeSet;

use results::Results;
use results::terminal::thousands;

use super::View;
use crate::html::{Tag, plain_table, tag};

pub(super) fn of(view: &View<'_>) -> Tag {
    let names: Vec<&str> = view.tasks().into_iter().map(|(task, _)| task).collect();
    let all = command(view.newest, &names, &[]);
    let lead = "Run this in a clone of the repository, with the tools of the languages above. Corpora come from a \
                seed and have the hashes above on every machine. A peer that cannot be built is listed as not \
                measured, with the reason.";
    tag("section")
        .attr("id", "repeat")
        .attr("aria-labelledby", "repeat-title")
        .with(tag("h2").attr("id", "repeat-title").text("Repeat it"))
        .with(tag("p").class("lead").text(lead))
        .with(tag("p").class("again").with(tag("code").class("command").text(all)))
}

/// The command for a task with the peers of this run.
pub(super) fn of_task(view: &View<'_>, task: &str) -> String {
    let peers: BTreeSet<&str> = view
        .newest
        .rows
        .iter()
        .filter(|row| row.task == task)
        .map(|row| row.peer.as_str())
        .collect();
    command(view.newest, &[task], &peers.into_iter().collect::<Vec<_>>())
}

fn command(results: &Results, tasks: &[&str], peers: &[&str]) -> String {
    let mut words = vec![PROGRAM.to_owned()];
    words.extend(tasks.iter().map(|task| quoted(task)));
    if !peers.is_empty() {
        words.extend(["--peers".to_owned(), quoted(&peers.join(","))]);
    }
    words.extend(settings(results));
    words.join(" ")
}

/// The options that repeat the settings of the run.
pub(super) fn settings(results: &Results) -> Vec<String> {
    let Some(settings) = &results.settings else { return Vec::new() };
    let mut words = Vec::from_iter(settings.quick.then(|| "--quick".to_owned()));
    let is_whole = !settings.quick && settings.one_pass_over_ms.is_none();
    words.extend(is_whole.then(|| "--all".to_owned()));
    words.push(format!("--passes {} --warmup {}", settings.passes, settings.warmup));
    words.extend(settings.corpus.iter().map(|name| format!("--corpus {}", quoted(name))));
    words.extend(settings.backend.iter().map(|level| format!("--backend {}", quoted(level))));
    words
}

/// The command before its arguments.
pub(super) const PROGRAM: &str = "wireproof bench";

/// Quotes a word for a shell: peers choose their names, and readers paste commands.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./,@:".contains(letter);
    let word = word.replace(char::is_control, "\u{fffd}");
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

pub(super) fn machine(view: &View<'_>) -> Tag {
    let machine = &view.newest.machine;
    let virtual_machine =
        machine.virtual_machine.clone().unwrap_or_else(|| "not detected".to_owned());
    let fixed = [
        ("processor".to_owned(), machine.cpu.clone()),
        ("cores".to_owned(), machine.cores.to_string()),
        ("virtual machine".to_owned(), virtual_machine),
        ("in short".to_owned(), crate::machine::words(machine)),
        ("instructions".to_owned(), machine.features.join(", ")),
        ("system".to_owned(), machine.os.clone()),
    ];
    let tools = machine.toolchains.iter().map(|(name, version)| (name.clone(), version.clone()));
    let rows = fixed.into_iter().chain(tools).map(|(name, value)| [name, value]);
    tag("section")
        .attr("id", "machine")
        .attr("aria-labelledby", "machine-title")
        .with(tag("h2").attr("id", "machine-title").text("Machine and corpora"))
        .with(plain_table("The machine and its tools", ["part", "value"], 2, rows))
        .with(corpora(view))
}

fn corpora(view: &View<'_>) -> Tag {
    let rows = view.newest.corpora.iter().map(|corpus| {
        let units = thousands(corpus.units as f64);
        let bytes = thousands(corpus.bytes as f64);
        [corpus.name.clone(), corpus.sha256.clone(), bytes, units]
    });
    plain_table("The input files", ["corpus", "SHA-256", "bytes", "units"], 2, rows)
}

/// A plain line per peer that could not be measured; empty if there are none.
pub(super) fn unavailable(view: &View<'_>) -> Option<Tag> {
    let missing = &view.newest.unavailable;
    (!missing.is_empty()).then(|| {
        let lines = missing.iter().map(|peer| {
            let reason = format!(": not measured: {}", peer.plain_reason());
            tag("li").with(tag("b").text(&peer.peer)).text(reason)
        });
        tag("section")
            .attr("id", "unavailable")
            .attr("aria-labelledby", "unavailable-title")
            .with(tag("h2").attr("id", "unavailable-title").text("Not measured"))
            .with(tag("ul").class("unavailable").with_all(lines))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_shell_would_read_is_quoted() {
        assert_eq!(quoted("go-indigo,rust-raw"), "go-indigo,rust-raw");
        assert_eq!(quoted("a; rm -rf ~ 'x'\n"), "'a; rm -rf ~ '\\''x'\\''\u{fffd}'");
        assert_eq!(quoted("$(id)"), "'$(id)'");
    }
}
