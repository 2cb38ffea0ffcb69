//! `nostr` and `corpus nostr`: output and exit codes.

#[cfg(feature = "nostr-lmdb")]
mod databases;
mod inputs;
mod layouts;
mod samples;
mod strfry_plugin;
mod verify;

use std::fs;
use std::path::PathBuf;

use assert_cmd::assert::Assert;
use tempfile::TempDir;

use crate::{run, text};

fn nostr(args: &[&str]) -> Assert {
    run(&[&["nostr"][..], args].concat())
}

/// A small simulated corpus, made by the command.
struct Corpus {
    dir: TempDir,
}

impl Corpus {
    fn make() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let out = text(dir.path());
        run(&["corpus", "nostr", "--events", "60", "--out", out]).success();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn events(&self) -> PathBuf {
        self.path("nostr-events.jsonl")
    }

    /// The corpus in another layout.
    fn converted(&self, layout: &str) -> PathBuf {
        let out = self.path(&format!("events.{layout}"));
        nostr(&["convert", text(&self.events()), "--to", layout, "-o", text(&out)]).success();
        out
    }

    /// The corpus with its line `at` changed.
    fn changed(&self, at: usize, change: impl Fn(&str) -> String) -> PathBuf {
        let file = fs::read_to_string(self.events()).unwrap();
        let line = |(index, line)| if index == at { change(line) } else { String::from(line) };
        let lines: Vec<_> = file.split_terminator('\n').enumerate().map(line).collect();
        let path = self.path("changed.jsonl");
        fs::write(&path, lines.join("\n")).unwrap();
        path
    }
}

/// The line with a digit of a field changed.
fn forged(line: &str, field: &str) -> String {
    let at = line.find(&format!("\"{field}\":\"")).unwrap() + field.len() + 10;
    let digit = if &line[at..=at] == "0" { "1" } else { "0" };
    format!("{}{digit}{}", &line[..at], &line[at + 1..])
}

/// A signed event with U+0001 in its content, whose id is the hash of the JSON with `\u0001`.
const ESCAPED_ID: &str = concat!(
    r#"{"id":"6f91552294802bedb75a5dec37da702788443992e6a65eb21acf729e808e64e3","pubkey":"989c0b76cb563971fdc9bef31ec06c3560f3249d6ee9e5d83c57625596e05f6f","created_at":1700000123,"kind":1,"tags":[],"content":"a\u0001b","sig":"a7f425e891816d0c0f569201c8334a378fca584faf1a74fb4eef1928dc253394220ee66d86998bdb80984dae6fc6e707d0e077711b6df2b6fa9190fcf02012b8"}"#,
    "\n"
);
