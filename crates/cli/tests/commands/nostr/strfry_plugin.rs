//! `nostr strfry-plugin`: the program speaks with a strfry that the test plays.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::{Corpus, ESCAPED_ID, forged, nostr};
use crate::{command, stderr, stdout};

/// A running plugin.
struct Plugin {
    process: Child,
    requests: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Plugin {
    fn start(args: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_wireproof"))
            .args(["nostr", "strfry-plugin"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let requests = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, requests, answers }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.requests, "{line}").unwrap();
    }

    /// The answer to a line, which is awaited before the next line is sent, as strfry does.
    fn ask(&mut self, line: &str) -> Value {
        self.send(line);
        let answer = self.answers.next().unwrap().unwrap();
        assert!(answer.len() < 8_192, "strfry reads no longer line");
        serde_json::from_str(&answer).unwrap()
    }

    /// Ends the input. The lines of standard error.
    fn end(self) -> Vec<String> {
        let Self { mut process, requests, mut answers } = self;
        drop(requests);
        assert!(answers.next().is_none(), "an answer without a request");
        let mut printed = String::new();
        process.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
        assert_eq!(process.wait().unwrap().code(), Some(0), "{printed}");
        printed.lines().map(str::to_owned).collect()
    }
}

/// A request with the keys of strfry, in its order.
fn request(event: &str) -> String {
    format!(
        r#"{{"authed":"{}","event":{event},"receivedAt":1700000000,"sourceInfo":"wss://relay.example.com","sourceType":"Stream","type":"new"}}"#,
        "ab".repeat(32)
    )
}

fn id_of(event: &str) -> String {
    serde_json::from_str::<Value>(event).unwrap()["id"].as_str().unwrap().to_owned()
}

/// Checks that an answer rejects an event, with a code.
#[track_caller]
fn assert_rejected(answer: &Value, id: &str, word: &str, code: &str) {
    assert_eq!((&answer["id"], &answer["action"]), (&id.into(), &"reject".into()), "{answer}");
    let message = answer["msg"].as_str().unwrap();
    assert!(message.starts_with(&format!("{word}: ")), "{message}");
    assert!(message.ends_with(&format!(" ({code})")), "{message}");
}

#[test]
fn each_request_is_answered_before_the_next_one_and_forged_events_are_rejected() {
    let corpus = Corpus::make();
    let events = fs::read_to_string(corpus.events()).unwrap();
    let mut plugin = Plugin::start(&[]);
    for event in events.lines() {
        let expected = json!({ "id": id_of(event), "action": "accept" });
        assert_eq!(plugin.ask(&request(event)), expected);
        let changed = forged(event, "sig");
        let answer = plugin.ask(&request(&changed));
        assert_rejected(&answer, &id_of(event), "invalid", "signature/wrong");
        let changed = forged(event, "id");
        let answer = plugin.ask(&request(&changed));
        assert_rejected(&answer, &id_of(&changed), "invalid", "event/id");
        let changed = event.replacen("\"kind\"", "\"king\"", 1);
        let answer = plugin.ask(&request(&changed));
        assert_rejected(&answer, &id_of(event), "invalid", "event/unreadable");
    }
    assert_eq!(plugin.ask(&request(ESCAPED_ID.trim_end()))["action"], "accept");
    assert!(plugin.end().is_empty(), "strfry prints why an event is rejected");
}

#[test]
fn the_verdicts_are_those_of_verify_with_the_same_options() {
    let corpus = Corpus::make();
    let events = fs::read_to_string(corpus.events()).unwrap();
    let first: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    let author = first["pubkey"].as_str().unwrap();
    let since = first["created_at"].to_string();
    for args in [
        vec!["--ids", "verbatim"],
        vec!["--kind", "1,7"],
        vec!["--author", author],
        vec!["--since", &since, "--tag", "t=gm"],
        vec!["--until", &since],
    ] {
        let lines = format!("{events}{ESCAPED_ID}");
        let piped = |words: &[&str], lines: String| {
            let args = [&["nostr"], words, &args].concat();
            stdout(&command(&args).write_stdin(lines).assert().code(0))
        };
        let valid = piped(&["verify", "-", "--emit", "valid", "--skip-invalid"], lines.clone());
        let valid: Vec<String> = valid.lines().map(id_of).collect();
        let requests = lines.lines().map(|event| request(event) + "\n").collect();
        let answers = piped(&["strfry-plugin"], requests);
        assert_eq!(answers.lines().count(), 61, "{args:?}");
        let answers = answers.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let accepted: Vec<String> = answers
            .inspect(|answer| {
                let message = answer["msg"].as_str().unwrap_or("accepted");
                let known = ["(event/unmatched)", "(event/id-form)", "accepted"];
                assert!(known.iter().any(|end| message.ends_with(end)), "{message}");
            })
            .filter(|answer| answer["action"] == "accept")
            .map(|answer| answer["id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(accepted, valid, "{args:?}");
    }
}

#[test]
fn lines_that_are_no_request_are_reported_and_rejected_by_their_id_and_the_next_ones_judged() {
    let corpus = Corpus::make();
    let events = fs::read_to_string(corpus.events()).unwrap();
    let event = events.lines().next().unwrap();
    let (whole, id) = (request(event), id_of(event));
    let accepted = json!({ "id": id, "action": "accept" });
    let mut plugin = Plugin::start(&["--kind", &json_kind(event)]);
    let cut = &whole[..whole.len() - 9];
    assert_rejected(&plugin.ask(cut), &id, "invalid", "event/unreadable");
    let long = event.replacen('{', &format!("{{\"x\":\"{}\",", "y".repeat(16 << 20)), 1);
    assert_rejected(&plugin.ask(&request(&long)), &id, "invalid", "event/unreadable");
    for unanswered in [
        "",
        r#"{"type":"lookback","event":{"id":"aa"}}"#,
        r#"{"type":"other","event":{"id":"aa"}}"#,
        "no JSON \u{1b}[2J",
        &"[".repeat(1 << 20),
        &"z".repeat(17 << 20),
        &request(&event.replacen(&format!("\"{id}\""), "7", 1)),
        &request("null"),
    ] {
        plugin.send(unanswered);
        assert_eq!(plugin.ask(&whole), accepted);
    }
    let printed = plugin.end();
    let expected = [
        "line 1: no request, at byte ",
        "line 2: longer than 16777216 bytes: rejected",
        "line 7: unknown type `other`: not answered",
        "line 9: no request, at byte 2: not answered",
        "line 11: no request, at byte ",
        "line 13: longer than 16777216 bytes: not answered",
        "line 15: an event without an id: not answered",
        "line 17: a request without an event: not answered",
    ];
    assert_eq!(printed.len(), expected.len(), "{printed:#?}");
    for (printed, expected) in printed.iter().zip(expected) {
        assert!(printed.starts_with("wireproof: standard input: "), "{printed}");
        assert!(printed.contains(expected) && printed.len() < 200, "{printed}");
    }
}

fn json_kind(event: &str) -> String {
    serde_json::from_str::<Value>(event).unwrap()["kind"].to_string()
}

#[test]
fn wrong_options_are_exit_code_2_before_anything_is_read() {
    for wrong in [["--kind", "70000"], ["--ids", "both"], ["--author", "npub1"]] {
        let assert = nostr(&[&["strfry-plugin"], &wrong[..]].concat()).code(2);
        assert!(stdout(&assert).is_empty() && stderr(&assert).contains(wrong[0]), "{wrong:?}");
    }
}
