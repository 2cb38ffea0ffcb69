//! The verdicts of other Nostr implementations on the events of the table in `docs/formats/nostr/json.md`, as the benchmark's
//! peers of them give them.

use std::fs::{self, File};
use std::process::Stdio;

use crate::peers;
use crate::process::{self, at};
use crate::toolchains::Without;

/// Compares the verdicts of rust-nostr and nostr-tools with their columns. The peers are built already.
pub(crate) fn check(without: &Without) -> Result<(), String> {
    let page = process::root().join(PAGE);
    let page = fs::read_to_string(&page).map_err(|error| at(&page, &error))?;
    for peer in &PEERS {
        if without.excludes(peer.id) {
            continue;
        }
        let verdicts = peer.verdicts()?;
        let faults = faults(&column(&page, peer.column)?, &verdicts);
        if !faults.is_empty() {
            return Err(format!("{PAGE}, column {}: {}", peer.column, faults.join("\n")));
        }
        println!("{}: {} verdicts are those of {PAGE}", peer.id, verdicts.lines().count());
    }
    Ok(())
}

struct Peer {
    id: &'static str,
    /// The head of its column.
    column: &'static str,
    command: &'static [&'static str],
    /// The folder under `target/` in which the command runs; the root without one.
    folder: Option<&'static str>,
}

impl Peer {
    /// The answers of the peer to all events.
    fn verdicts(&self) -> Result<String, String> {
        let texts = process::target("verdict-texts");
        let file = File::create(&texts).map_err(|error| at(&texts, &error))?;
        let mut example = process::command(&process::program("examples/nostr_verdict_texts")?, &[]);
        process::run(example.stdout(Stdio::from(file)))?;
        let file = File::open(&texts).map_err(|error| at(&texts, &error))?;
        let mut command = process::command(self.command[0], &self.command[1..]);
        if let Some(folder) = self.folder {
            command.current_dir(process::target(folder));
        }
        process::output(command.stdin(file))
    }
}

/// The event of every row and the cell of a column.
fn column<'a>(page: &'a str, head: &str) -> Result<Vec<(&'a str, &'a str)>, String> {
    let (_, section) = page.split_once(SECTION).ok_or("the section is missing")?;
    let mut rows = section.lines().filter(|line| line.starts_with("| ")).map(cells);
    let heads = rows.next().ok_or("the table is missing")?;
    let at = heads.iter().position(|cell| *cell == head);
    let at = at.ok_or_else(|| format!("no column {head}"))?;
    let pair = |row: Vec<&'a str>| Some((*row.first()?, *row.get(at)?));
    rows.map(|row| pair(row).ok_or_else(|| "a row is short".to_owned())).collect()
}

fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

/// The answers that differ from the cells, and rows without an answer. An answer is an event, a field and a verdict, separated by
/// tabs. A cell is the verdict for all fields, or has several with their fields.
fn faults(column: &[(&str, &str)], answers: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut unanswered: Vec<&str> = column.iter().map(|(event, _)| *event).collect();
    for answer in answers.lines() {
        let mut parts = answer.split('\t');
        let (event, field) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let verdict = parts.next().unwrap_or_default();
        unanswered.retain(|other| *other != event);
        let cell = column.iter().find(|(other, _)| *other == event).map(|(_, cell)| *cell);
        let expected = cell.and_then(|cell| verdict_for(cell, field));
        if expected != Some(verdict) {
            faults.push(format!("{event}: {field}: {verdict}, not {expected:?}"));
        }
    }
    faults.extend(unanswered.iter().map(|event| format!("{event}: no answer")));
    faults
}

/// The verdict for a field in ``"`id`, `pubkey` invalid; `sig` valid"`` or in `"valid"`.
fn verdict_for<'a>(cell: &'a str, field: &str) -> Option<&'a str> {
    let name = format!("`{field}`");
    let is_for = |part: &&str| !part.contains('`') || part.contains(&name);
    cell.split(';').find(is_for)?.split_whitespace().next_back()
}

const PAGE: &str = "docs/formats/nostr/json.md";
const SECTION: &str = "## Verdicts that differ";
const PEERS: [Peer; 2] = [
    Peer {
        id: "rust-nostr",
        column: "rust-nostr",
        // Shares the build of the tests' peer.
        command: &[
            "cargo",
            "run",
            "--quiet",
            "--locked",
            "--profile",
            peers::RUST_PROFILE,
            "--manifest-path",
            "bench/runners/rust-nostr/Cargo.toml",
            "--target-dir",
            "target/bench/rust",
            "--example",
            "verdicts",
        ],
        folder: None,
    },
    Peer {
        id: "ts-nostr-tools",
        column: "nostr-tools",
        command: &["node", "verdicts.mjs"],
        // `bench` installs its packages there.
        folder: Some("bench/ts-nostr-tools"),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "## Verdicts that differ from\n\n| event | ours | a | b |\n|---|---|---|---|\n\
        | one | valid | rejected | `id`, `sig` invalid; `kind` valid |\n| two | valid | valid | valid |\n";

    #[test]
    fn an_answer_is_compared_with_the_cell_of_its_row_and_field() {
        let b = column(TABLE, "b").unwrap();
        let right = "one\tid\tinvalid\none\tsig\tinvalid\none\tkind\tvalid\ntwo\tid\tvalid\n";
        assert_eq!(faults(&b, right), Vec::<String>::new());
        for (from, to) in [
            ("one\tid\tinvalid", "one\tid\tvalid"),
            ("kind\tvalid", "kind\tinvalid"),
            ("one\tkind", "one\tcontent"),
            ("two\tid\tvalid\n", ""),
            ("two\tid\tvalid", "two\tid\trejected"),
            ("two\t", "three\t"),
        ] {
            assert!(right.contains(from), "{from}");
            assert!(!faults(&b, &right.replace(from, to)).is_empty(), "{from} -> {to}");
        }
        let a = column(TABLE, "a").unwrap();
        assert_eq!(faults(&a, "one\tid\trejected\ntwo\tid\tvalid\n"), Vec::<String>::new());
    }

    #[test]
    fn a_table_without_the_column_is_an_error() {
        assert!(column(TABLE, "c").is_err());
        assert!(column("", "a").is_err());
    }

    #[test]
    fn the_page_has_the_column_of_each_peer_with_known_verdicts() {
        let page = fs::read_to_string(process::root().join(PAGE)).unwrap();
        for peer in &PEERS {
            let column = column(&page, peer.column).unwrap();
            assert!(column.len() >= 8, "{}", peer.id);
            for (event, cell) in column {
                for part in cell.split(';') {
                    let verdict = part.split_whitespace().next_back().unwrap_or_default();
                    assert!(["valid", "invalid", "rejected"].contains(&verdict), "{event}: {cell}");
                }
            }
        }
    }
}
