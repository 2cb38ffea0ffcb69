//! What must be typed to measure this again?

use std::collections::BTreeSet;

use bench::{Results, Row};

use super::{Placed, View};
use crate::html::{Tag, tag};
use crate::ratios::Name;

pub(super) fn of(view: &View<'_>, tasks: &[(&str, Vec<Placed<'_>>)]) -> Tag {
    let names: Vec<&str> = tasks.iter().map(|(task, _)| *task).collect();
    let all = command(view.newest, &names, &[]);
    let lead = "From a copy of the repository, with the tools of the languages above. Corpora come from a \
                seed and have the hashes above on every machine; peers that cannot be built are left out \
                with the reason.";
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

/// The command for a row and the one that it is held against.
pub(super) fn of_row(view: &View<'_>, row: &Row) -> String {
    let against = view.newest_ratios().get(Name::of(row)).map(|(_, against)| against.peer.as_str());
    let mut peers = vec![row.peer.as_str()];
    peers.extend(against.filter(|against| *against != row.peer));
    command(view.newest, &[&row.task], &peers)
}

fn command(results: &Results, tasks: &[&str], peers: &[&str]) -> String {
    let mut words = vec!["wireproof".to_owned(), "bench".to_owned()];
    words.extend(tasks.iter().map(|task| quoted(task)));
    if !peers.is_empty() {
        words.extend(["--peers".to_owned(), quoted(&peers.join(","))]);
    }
    if let Some(settings) = &results.settings {
        words.extend(settings.quick.then(|| "--quick".to_owned()));
        words.push(format!("--passes {} --warmup {}", settings.passes, settings.warmup));
        words.extend(settings.corpus.iter().map(|name| format!("--corpus {}", quoted(name))));
    }
    words.join(" ")
}

/// A word for a shell: a peer may choose any name, and someone may paste it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./,@:".contains(letter);
    let word = word.replace(char::is_control, "\u{fffd}");
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
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
