//! A database that nostrdb writes, read by `wireproof nostr`.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use simnet::nostr_events::{Corpus, Spec};
use wireproof::nostr::Arena;
use wireproof::nostr::formats::Format;
use wireproof_interop::kit;
use wireproof_interop::program::Kit;

use crate::activity::wireproof;

#[test]
fn every_simulated_event_that_nostrdb_stored_is_proved_and_the_same() {
    let kit = kit!(Nostrdb);
    let corpus = Corpus::generate(&Spec { events: 500, authors: 20, ..Spec::quick() });
    let arena = Arena::new();
    let line = |event: &OwnedEvent| {
        let mut json = Vec::new();
        Format::Json.encode(&event.borrow_in(&arena), &mut json).unwrap();
        String::from_utf8(json).unwrap()
    };
    let lines: Vec<String> = corpus.events().iter().map(line).collect();
    let folder = tempfile::tempdir().unwrap();
    let stored = store(&kit, folder.path(), &lines);
    let report = verify(folder.path());
    assert_eq!(report["findings"], Value::Array(Vec::new()), "{report}");
    // The text of simulated events is the one that we encode.
    let sent: BTreeSet<&str> = lines.iter().map(String::as_str).collect();
    let read = emitted(folder.path());
    assert!(read.lines().all(|line| sent.contains(line)));
    assert!(stored.is_subset(&ids(&read)));
    assert!(stored.len() > 450, "{} of 500", stored.len());
}

#[test]
fn every_real_event_that_nostrdb_stored_is_proved_or_lost_the_case_of_digits() {
    let kit = kit!(Nostrdb);
    let path = conformance::fixtures!(Captures).path("nostr/events.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let folder = tempfile::tempdir().unwrap();
    let stored = store(&kit, folder.path(), &lines);
    let report = verify(folder.path());
    let mut read = ids(&emitted(folder.path()));
    for finding in report["findings"].as_array().unwrap() {
        assert_eq!(finding["code"], "event/id", "{finding}");
        let id = finding["id"].as_str().unwrap();
        let line = lines.iter().find(|line| line.contains(id)).unwrap();
        assert!(has_upper_case_id(line), "{line}");
        read.insert(id.to_owned());
    }
    assert!(stored.is_subset(&read));
    assert!(stored.len() > 6_000, "{} of {}", stored.len(), lines.len());
}

/// The ids of events in lines.
fn ids(lines: &str) -> BTreeSet<String> {
    let id = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["id"].as_str().unwrap().to_owned()
    };
    lines.lines().map(id).collect()
}

/// Whether a text has 64 digits that are not all in lower case.
fn has_upper_case_id(line: &str) -> bool {
    let is_id = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    line.split('"').any(|text| is_id(text) && text.bytes().any(|byte| byte.is_ascii_uppercase()))
}

/// Lets nostrdb store events; the ids of those that it finds.
fn store(kit: &Kit, folder: &Path, lines: &[String]) -> BTreeSet<String> {
    let mut program = Command::new(kit.nostrdb())
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It prints nothing before it has read all.
    let mut input = program.stdin.take().unwrap();
    lines.iter().for_each(|line| writeln!(input, "{line}").unwrap());
    drop(input);
    let output = program.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn verify(folder: &Path) -> Value {
    let mut command = Command::new(wireproof());
    let output = command.args(["nostr", "verify", "--json"]).arg(folder).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The valid events as lines.
fn emitted(folder: &Path) -> String {
    let mut command = Command::new(wireproof());
    command.args(["nostr", "verify", "--emit", "valid"]).arg(folder);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}
