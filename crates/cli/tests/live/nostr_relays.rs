//! `nostr follow` and a relay on loopback, honest, faulty or hostile.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use nostr::{Arena, Limits, OwnedEvent};
use nostr_formats::Format;
use serde_json::Value;
use simnet::nostr_events::{Corpus, Spec};
use simnet::nostr_relay::{Hints, NostrRelay, Options, Order, RelayFault};

use crate::{schemas, stderr};

pub(crate) fn corpus(events: usize) -> Corpus {
    Corpus::generate(&Spec { events, authors: events * 2 / 5, ..Spec::default() })
}

pub(crate) fn relay(events: &[OwnedEvent]) -> NostrRelay {
    NostrRelay::start(events, Options { page_events: 100, ..Options::default() }).unwrap()
}

/// `nostr follow` of relays, with its state in `dir`.
pub(crate) fn follow(relays: &[&NostrRelay], dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(["nostr", "follow"]).args(relays.iter().map(|relay| relay.url())).args(args);
    command.args(["--development", "--backoff-first-ms", "10", "--backoff-max-ms", "50"]);
    command.env("XDG_CONFIG_HOME", "/nonexistent").env("XDG_STATE_HOME", dir);
    command
}

/// The output of a run that succeeds.
pub(crate) fn output(mut command: Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

/// The lines of a run that succeeds.
fn lines(command: Command) -> Vec<String> {
    text(&output(command).stdout)
}

pub(crate) fn text(bytes: &[u8]) -> Vec<String> {
    str::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

/// A line of `--json`, which the schema describes.
fn parsed(line: &str) -> Value {
    let line = serde_json::from_str(line).unwrap();
    schemas::check("nostr-follow", &line);
    line
}

pub(crate) fn json(event: &OwnedEvent) -> String {
    let (arena, mut json) = (Arena::new(), Vec::new());
    Format::Json.encode(&event.borrow_in(&arena), &mut json).unwrap();
    String::from_utf8(json).unwrap()
}

pub(crate) fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort_unstable();
    lines
}

pub(crate) fn all(events: &[OwnedEvent]) -> Vec<String> {
    sorted(events.iter().map(json).collect())
}

#[test]
fn stored_events_of_all_relays_are_written_once_as_they_were_sent() {
    let (corpus, dir) = (corpus(700), tempfile::tempdir().unwrap());
    let events = corpus.events();
    let relays = [relay(&events[..500]), relay(&events[300..])];
    let output = output(follow(&[&relays[0], &relays[1]], dir.path(), &["--stored"]));
    assert_eq!(sorted(text(&output.stdout)), all(events));
    let printed = stderr(&output);
    assert!(printed.contains(" valid, ") && printed.contains(" repeated; "), "{printed}");
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none(), "no state with --stored");
    // Six pages of 100 and the last ones, with the last second of every page again.
    let requests = relays[0].requests();
    assert!(requests.iter().filter(|request| request.contains("REQ")).count() >= 6, "{requests:?}");
}

#[test]
fn the_relay_is_asked_for_what_the_filter_names() {
    let (corpus, dir) = (corpus(300), tempfile::tempdir().unwrap());
    let relay = relay(corpus.events());
    let author = json(&corpus.events()[7]);
    let author: Value = serde_json::from_str(&author).unwrap();
    let author = author["pubkey"].as_str().unwrap();
    let args =
        ["--kind", "1,7", "--author", author, "--since", "5", "--tag", "t=a", "--tag", "t=b"];
    output(follow(&[&relay], dir.path(), &[&args[..], &["--stored"]].concat()));
    let request: Value = serde_json::from_str(&relay.requests()[0]).unwrap();
    let expected = serde_json::json!(
        ["REQ", "w1", { "kinds": [1, 7], "authors": [author], "#t": ["a", "b"], "since": 5, "limit": 500 }]
    );
    assert_eq!(request, expected);
    let kinds = lines(follow(&[&relay], dir.path(), &["--stored", "--kind", "7"]));
    let wanted: Vec<OwnedEvent> =
        corpus.events().iter().filter(|event| event.kind == 7).cloned().collect();
    assert_eq!(sorted(kinds), all(&wanted));
    let newest = lines(follow(&[&relay], dir.path(), &["--stored", "--limit", "3"]));
    assert_eq!(newest.len(), 3);
    for (args, message) in [
        (&["--tag", "title=x"][..], "relays filter by tags with a name of one letter"),
        (&[&*relay.url()], "a relay is named twice"),
        (&["data://"], "neither a host name nor a URL"),
        (&["--have", "x"], "--negentropy"),
        (&["--negentropy", "--limit", "1"], "cannot be used with"),
    ] {
        let output = follow(&[&relay], dir.path(), args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(message), "{args:?}: {}", stderr(&output));
    }
}

/// The event with a digit of a field changed.
pub(crate) fn forged(event: &OwnedEvent, field: &str) -> String {
    let line = json(event);
    let at = line.find(&format!("\"{field}\":\"")).unwrap() + field.len() + 10;
    let digit = if &line[at..=at] == "0" { "1" } else { "0" };
    format!("{}{digit}{}", &line[..at], &line[at + 1..])
}

/// A message before the first event.
pub(crate) fn say(message: impl Into<String>) -> (u64, RelayFault) {
    (0, RelayFault::Say(message.into()))
}

#[test]
fn each_hostile_event_is_refused_with_its_code_and_hides_no_valid_one() {
    let (corpus, dir) = (corpus(400), tempfile::tempdir().unwrap());
    let notes: Vec<OwnedEvent> =
        corpus.events().iter().filter(|event| event.kind == 1).cloned().collect();
    let other = corpus.events().iter().rfind(|event| event.kind != 1).unwrap();
    let relay = relay(&notes);
    // The newest ones, as a relay begins with them.
    let [.., third, second, newest] = &*notes else { panic!("{} notes", notes.len()) };
    let spaced = json(second).replace(",\"kind\"", ",\n\"kind\"");
    let mut faults = Vec::new();
    for event in [
        forged(newest, "id"),
        forged(newest, "sig"),
        json(other),
        json(newest).replace("\"kind\"", "\"king\""),
        "{},{}".to_owned(),
        spaced,
    ] {
        faults.push(say(format!(r#"["EVENT","{{sub}}",{event}]"#)));
    }
    for message in [
        format!(r#"["EVENT","other",{}]"#, json(third)),
        r#"["NOTICE","\u202egnitirw"]"#.to_owned(),
        r#"["AUTH","challenge"]"#.to_owned(),
        "garbage".to_owned(),
    ] {
        faults.push(say(message));
    }
    relay.inject(faults);
    let mut command = follow(&[&relay], dir.path(), &["--stored", "--json", "--kind", "1"]);
    let output_of_all = command.output().unwrap();
    // An unreadable message may have been an event.
    assert_eq!(output_of_all.status.code(), Some(3), "{}", stderr(&output_of_all));
    let lines: Vec<Value> = text(&output_of_all.stdout).iter().map(|line| parsed(line)).collect();
    assert_eq!(relay.pending_faults(), 0);
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    let refused: Vec<&str> = { of("event").into_iter() }
        .filter(|line| line["verdict"] == "refused")
        .map(|line| line["code"].as_str().unwrap())
        .collect();
    let expected = ["event/id", "signature/wrong", "event/unmatched", "event/unreadable"];
    assert_eq!(refused, [&expected[..], &["event/unreadable"]].concat());
    let valid = of("event").into_iter().filter(|line| line["verdict"] == "verified");
    let ids: BTreeSet<String> =
        valid.clone().map(|line| line["event"]["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!((valid.count(), ids.len()), (notes.len(), notes.len()));
    assert_eq!(of("unknown-subscription").len(), 1);
    assert_eq!(of("notice")[0]["message"], "\\u{202e}gnitirw");
    assert_eq!(of("auth")[0]["message"], "challenge");
    assert_eq!(of("unrecognized").len(), 1);
    assert_eq!(of("end-of-stored").len(), 1);
    assert_eq!(of("end-of-stored")[0]["complete"], false);
    // In lines of events alone they are messages on standard error.
    relay.inject([say(format!(r#"["EVENT","{{sub}}",{}]"#, forged(newest, "id")))]);
    let output = output(follow(&[&relay], dir.path(), &["--stored", "--kind", "1"]));
    assert_eq!(sorted(text(&output.stdout)), all(&notes));
    let printed = stderr(&output);
    let expected = "an event is refused: the id is not the hash of the event (event/id)";
    assert!(printed.contains(expected) && printed.contains(", 1 refused; "), "{printed}");
}

#[test]
fn an_event_on_several_lines_is_written_on_one() {
    let (corpus, dir) = (corpus(10), tempfile::tempdir().unwrap());
    let relay = relay(&[]);
    let event = json(&corpus.events()[3]);
    let spaced = event.replace(",\"kind\"", ",\r\n\"kind\"");
    relay.inject([say(format!(r#"["EVENT","{{sub}}",{spaced}]"#))]);
    let lines = lines(follow(&[&relay], dir.path(), &["--stored"]));
    assert_eq!(lines, [event]);
}

#[test]
fn no_event_is_lost_or_repeated_while_the_relay_cuts_stalls_and_limits() {
    let (corpus, dir) = (corpus(400), tempfile::tempdir().unwrap());
    let relay = relay(corpus.events());
    let closed = |reason: &str| RelayFault::Say(format!(r#"["CLOSED","{{sub}}","{reason}"]"#));
    relay.inject([(20, RelayFault::Stall)]);
    relay.inject([(30, RelayFault::Cut)]);
    relay.inject([(50, closed("rate-limited: slow down"))]);
    relay.inject([(70, RelayFault::Say("\0".to_owned())), (150, closed("error: shutting down"))]);
    relay.inject([(110, RelayFault::Cut)]);
    let mut command = follow(&[&relay], dir.path(), &["--stored", "--idle-seconds", "2"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(relay.pending_faults(), 0);
    assert_eq!(sorted(text(&output.stdout)), all(corpus.events()));
    let printed = stderr(&output);
    for message in [
        "the relay ended the subscription: rate-limited: slow down",
        "no message for 1 s",
        "the stream ended with CLOSED",
        "a message that is none of a relay: expected an array",
        "retrying in ",
    ] {
        assert!(printed.contains(message), "{message}: {printed}");
    }
    assert!(relay.connection_count() >= 6);
}

#[test]
fn a_relay_that_cannot_be_followed_is_exit_code_3_and_hides_no_other() {
    let (corpus, dir) = (corpus(50), tempfile::tempdir().unwrap());
    let (closed, open) = (relay(corpus.events()), relay(corpus.events()));
    // It is asked three times.
    let refuse = || {
        for _ in 0..3 {
            closed.inject([say(r#"["CLOSED","{sub}","auth-required: members only"]"#)]);
        }
    };
    refuse();
    let output = follow(&[&closed], dir.path(), &["--events", "1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let reason = "the relay refuses the request: auth-required: members only";
    assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    refuse();
    let output = follow(&[&closed, &open], dir.path(), &["--stored"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("1 of 2 relays cannot be followed"), "{}", stderr(&output));
    assert_eq!(sorted(text(&output.stdout)), all(corpus.events()));
    // Nothing listens there.
    let url = open.url();
    drop(open);
    let mut command = follow(&[], dir.path(), &["--stored"]);
    let output = command.arg(url).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("3 connections without an event"), "{}", stderr(&output));
}

/// A running `nostr follow`. Dropping it kills the process.
struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn take(&mut self, count: usize) -> Vec<String> {
        let next = |_| {
            let mut line = String::new();
            assert!(self.out.read_line(&mut line).unwrap() > 0, "the process has ended");
            line.trim_end().to_owned()
        };
        (0..count).map(next).collect()
    }

    /// Sends a signal, and returns the remaining lines and the exit code.
    fn end(mut self, signal: &str) -> (Vec<String>, Option<i32>) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        let mut rest = Vec::new();
        self.out.read_to_end(&mut rest).unwrap();
        (text(&rest), self.child.wait().unwrap().code())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a client has asked for events before the oldest one, and has the answer.
pub(crate) fn wait_for_all_pages(relay: &NostrRelay, oldest: &OwnedEvent) {
    let last = format!(r#""until":{},"#, oldest.created_at - 1);
    loop {
        let requests = relay.requests();
        let at = requests.iter().position(|request| request.contains(&last));
        if at.is_some_and(|at| requests[at..].iter().any(|request| request.contains("CLOSE"))) {
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn new_events_follow_and_the_next_run_resumes_after_them() {
    let (corpus, dir) = (corpus(300), tempfile::tempdir().unwrap());
    let events = corpus.events();
    let relay = relay(&events[..250]);
    let state = dir.path().join("state");
    let args = ["--state", state.to_str().unwrap(), "--overlap-seconds", "0"];
    let mut running = Running::start(follow(&[&relay], dir.path(), &args));
    let mut written = running.take(250);
    events[250..270].iter().for_each(|event| relay.publish(event));
    written.extend(running.take(20));
    wait_for_all_pages(&relay, &events[0]);
    let (rest, code) = running.end("INT");
    assert_eq!((rest, code), (vec![], Some(130)));
    assert_eq!(sorted(written), all(&events[..270]));
    // While no run is connected.
    events[270..290].iter().for_each(|event| relay.publish(event));
    let mut running = Running::start(follow(&[&relay], dir.path(), &args));
    let last = events[269].created_at;
    let repeated = events[..270].iter().filter(|event| event.created_at >= last).count();
    let mut written = running.take(20 + repeated);
    events[290..].iter().for_each(|event| relay.publish(event));
    written.extend(running.take(10));
    let (rest, code) = running.end("TERM");
    assert_eq!((rest, code), (vec![], Some(0)));
    assert_eq!(sorted(written), all(&events[270 - repeated..]));
    // Another filter begins anew.
    let kinds = [&args[..], &["--kind", "1", "--events", "5"]].concat();
    assert_eq!(lines(follow(&[&relay], dir.path(), &kinds)).len(), 5);
}

#[test]
fn a_run_that_is_killed_within_stored_events_begins_with_them_again() {
    let (corpus, dir) = (corpus(300), tempfile::tempdir().unwrap());
    let relay = relay(corpus.events());
    relay.inject([(180, RelayFault::Stall)]);
    let mut running = Running::start(follow(&[&relay], dir.path(), &["--overlap-seconds", "0"]));
    let mut written = running.take(120);
    written.extend(running.end("KILL").0);
    assert!(written.len() < 300);
    let events = ["--overlap-seconds", "0", "--events", "300"];
    assert_eq!(sorted(lines(follow(&[&relay], dir.path(), &events))), all(corpus.events()));
}

#[test]
fn a_relay_that_does_not_compare_is_exit_code_3_with_its_reason() {
    let (corpus, dir) = (corpus(50), tempfile::tempdir().unwrap());
    let relay =
        NostrRelay::start(corpus.events(), Options { compares: false, ..Options::default() })
            .unwrap();
    let args = ["--stored", "--negentropy"];
    let output = follow(&[&relay], dir.path(), &args).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let expected = "the relay does not compare ids (NIP-77): blocked: not here";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
}

/// The events of a relay that answers in this way, or a refusal to call them complete.
fn assert_whole_or_refused(events: &[OwnedEvent], options: Options, args: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let relay = NostrRelay::start(events, options).unwrap();
    let output = follow(&[&relay], dir.path(), &[&["--stored"], args].concat()).output().unwrap();
    let (printed, is_whole) = (stderr(&output), sorted(text(&output.stdout)) == all(events));
    match output.status.code() {
        Some(0) => assert!(is_whole, "{options:?}: {printed}"),
        code => assert!(
            code == Some(3) && printed.contains("stored events may be missing"),
            "{options:?}: {printed}"
        ),
    }
    // Where ids can be compared, every second is proved.
    assert!(is_whole || !options.compares, "{options:?}: {printed}");
}

#[test]
fn stored_events_are_whole_in_every_order_with_every_limit_of_a_relay_or_the_run_fails() {
    let corpus = corpus(60);
    for order in [Order::Descending, Order::Ascending, Order::Random(7)] {
        for page_events in [1, 2, 7, 20, 59, 60, 61] {
            for (hints, ignores_newest) in
                [(Hints::None, false), (Hints::Right, false), (Hints::None, true)]
            {
                // A single event that a relay hides, against NIP-01, cannot be noticed.
                let is_single_hidden = ignores_newest && page_events == 59;
                if is_single_hidden && matches!(order, Order::Random(_)) {
                    continue;
                }
                let options =
                    Options { order, page_events, hints, ignores_newest, ..Options::default() };
                assert_whole_or_refused(corpus.events(), options, &[]);
            }
        }
        let options = Options { order, page_events: 20, compares: false, ..Options::default() };
        assert_whole_or_refused(corpus.events(), options, &[]);
    }
}

#[test]
fn a_relay_with_one_subscription_at_a_time_and_one_that_asks_who_it_is_are_followed() {
    let (corpus, dir) = (corpus(300), tempfile::tempdir().unwrap());
    let options = Options { page_events: 50, max_subscriptions: 1, ..Options::default() };
    let single = NostrRelay::start(corpus.events(), options).unwrap();
    let output = output(follow(&[&single], dir.path(), &["--events", "300"]));
    assert_eq!(sorted(text(&output.stdout)), all(corpus.events()));
    assert_eq!(single.connection_count(), 1);
    assert_eq!(lines(follow(&[&single], dir.path(), &["--stored"])).len(), 300);
    let options = Options { requires_auth: true, ..Options::default() };
    let closed = NostrRelay::start(corpus.events(), options).unwrap();
    let key = dir.path().join("key");
    fs::write(&key, "7".repeat(64)).unwrap();
    let args = ["--stored", "--auth-key", key.to_str().unwrap()];
    let output = follow(&[&closed], dir.path(), &args).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("chmod 600"), "{}", stderr(&output));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(lines(follow(&[&closed], dir.path(), &args)).len(), 300);
    let output = follow(&[&closed], dir.path(), &["--stored"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("auth-required: who are you"), "{}", stderr(&output));
}

#[test]
fn events_with_further_items_are_written_and_unreadable_messages_fail_the_run() {
    let (corpus, dir) = (corpus(3), tempfile::tempdir().unwrap());
    let relay = relay(&corpus.events()[..2]);
    let extra = json(&corpus.events()[2]);
    relay.inject([say(format!(r#"["EVENT","{{sub}}",{extra},{{"x":1}},2]"#))]);
    let written = lines(follow(&[&relay], dir.path(), &["--stored"]));
    assert_eq!(sorted(written), all(corpus.events()));
    for message in [r#"["EVENT","{sub}",1]"#, r#"["EVENT","{sub}",{"id":1}]"#, "[", "\0"] {
        relay.inject([say(message)]);
        let output = follow(&[&relay], dir.path(), &["--stored"]).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{message}");
        assert!(!stderr(&output).contains("all stored events are received"), "{message}");
    }
}

#[test]
fn real_events_are_all_written() {
    let path = conformance::fixtures!(Captures).path("nostr/events.jsonl");
    let (file, dir) = (fs::read_to_string(path).unwrap(), tempfile::tempdir().unwrap());
    let owned = |line: &str| {
        let arena = Arena::new();
        Format::Json.decode(line.as_bytes(), &arena, &Limits::default()).unwrap().to_owned()
    };
    let events: Vec<OwnedEvent> = file.lines().map(owned).collect();
    let relay = NostrRelay::start(&events, Options::default()).unwrap();
    let ids = |lines: &[String]| -> BTreeSet<String> {
        let id = |line: &String| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["id"].as_str().unwrap().to_owned()
        };
        lines.iter().map(id).collect()
    };
    let written = lines(follow(&[&relay], dir.path(), &["--stored"]));
    assert_eq!(ids(&written), ids(&text(file.as_bytes())));
    assert_eq!(written.len(), 6_232);
}

#[test]
fn a_relay_that_is_never_reached_ends_a_run_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(["nostr", "follow", "ws://127.0.0.1:9", "--development", "--state"]);
    command.arg(dir.path()).args(["--first-contact-seconds", "1"]);
    let output = command.env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", crate::stderr(&output));
    let text = "not followed any more: no connection within 1 s";
    assert!(crate::stderr(&output).contains(text), "{}", crate::stderr(&output));
}
