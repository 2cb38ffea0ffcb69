//! A database that nostrdb writes, read by `wireproof nostr`.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use nostr::{Arena, OwnedEvent};
use nostr_formats::Format;
use serde_json::Value;
use simnet::nostr_events::{Corpus, Spec};
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
    // The text of simulated events is the one that we encode. nostrdb also stores the events in reposts.
    let reposts = corpus.events().iter().filter(|event| event.kind == 6);
    let sent = lines.iter().chain(reposts.map(|repost| &repost.content));
    let sent: BTreeSet<&str> = sent.map(String::as_str).collect();
    let read = emitted(folder.path());
    for line in read.lines() {
        assert!(sent.contains(line), "{line}");
    }
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

#[test]
fn a_database_that_nostrdb_has_open_is_not_read_and_the_reason_is_named() {
    let kit = kit!(Nostrdb);
    let folder = tempfile::tempdir().unwrap();
    // Until its input ends.
    let mut program = start(&kit, folder.path());
    let output = nostr_verify(folder.path(), &[]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("a program with another version of LMDB has it open"), "{errors}");
    assert_eq!(output.status.code(), Some(1));
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(nostr_verify(folder.path(), &[]).status.success());
}

/// Lets nostrdb store events; the ids of the events that it finds.
fn store(kit: &Kit, folder: &Path, lines: &[String]) -> BTreeSet<String> {
    let mut program = start(kit, folder);
    // It prints nothing before it has read all.
    let mut input = program.stdin.take().unwrap();
    lines.iter().for_each(|line| writeln!(input, "{line}").unwrap());
    drop(input);
    let output = program.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The program, which has opened the database.
fn start(kit: &Kit, folder: &Path) -> Child {
    let mut program = Command::new(kit.nostrdb())
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = [0; 5];
    program.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    assert_eq!(&line, b"open\n");
    program
}

fn verify(folder: &Path) -> Value {
    serde_json::from_slice(&nostr_verify(folder, &["--json"]).stdout).unwrap()
}

/// The valid events as lines.
fn emitted(folder: &Path) -> String {
    String::from_utf8(nostr_verify(folder, &["--emit", "valid"]).stdout).unwrap()
}

fn nostr_verify(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(wireproof());
    command.args(["nostr", "verify"]).arg(folder).args(args).output().unwrap()
}
