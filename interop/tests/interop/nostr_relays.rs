//! `nostr follow` and the relay of rust-nostr, with events of the network.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};
use simnet::nostr_events::{Corpus, Spec};
use tokio::task::block_in_place;
use wireproof_interop::kit;
use wireproof_interop::nostr::{NostrRelay, RelayKind};

use crate::activity::wireproof;

/// `nostr follow` of a relay, with its state in a folder.
pub(crate) fn follow(relay: &NostrRelay, state: &Path, args: &[&str]) -> Command {
    let mut follow = Command::new(wireproof());
    follow.args(["nostr", "follow", &relay.url(), "--development"]).args(args);
    follow.args(["--backoff-first-ms", "10", "--backoff-max-ms", "50"]).arg("--state").arg(state);
    follow.env("XDG_CONFIG_HOME", "/nonexistent").stdin(Stdio::null());
    follow
}

/// Runs the command to its end.
pub(crate) fn output(mut command: Command) -> Output {
    block_in_place(|| command.output().expect("the command runs"))
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The ids of the events that a run to its end has written, none of them twice.
fn ids(command: Command) -> BTreeSet<String> {
    let output = output(command);
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = str::from_utf8(&output.stdout).unwrap().lines();
    let mut ids = BTreeSet::new();
    for line in lines {
        assert!(ids.insert(id(line)), "twice: {line}");
    }
    ids
}

fn id(line: &str) -> String {
    let line: Value = serde_json::from_str(line).unwrap();
    line["id"].as_str().unwrap().to_owned()
}

/// Writes lines to a file.
fn write<'l>(path: &Path, lines: impl IntoIterator<Item = &'l str>) {
    let lines: Vec<&str> = lines.into_iter().collect();
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn all_stored_events_of_the_network_are_read_page_by_page_and_by_filters() {
    let kit = kit!(NostrRelay);
    let events = conformance::fixtures!(Captures).path("nostr/events.jsonl");
    let dir = tempfile::tempdir().unwrap();
    let relay = NostrRelay::start(&kit, &events, RelayKind::Open).await;
    // It keeps the newest of events that replace each other, and none that another one deletes.
    let stored = relay.ids(&json!({})).await;
    assert!(stored.len() > 3_000, "{}", stored.len());
    assert_eq!(ids(follow(&relay, dir.path(), &["--stored"])), stored);
    for (args, filter) in [
        (["--kind", "1,7"], json!({ "kinds": [1, 7] })),
        (["--since", "1735689600"], json!({ "since": 1_735_689_600 })),
        (["--until", "1704067200"], json!({ "until": 1_704_067_200 })),
        (["--tag", "t=nostr"], json!({ "#t": ["nostr"] })),
    ] {
        let expected = relay.ids(&filter).await;
        assert!(!expected.is_empty() && expected.len() < stored.len(), "{filter}");
        let args = [&args[..], &["--stored"]].concat();
        assert_eq!(ids(follow(&relay, dir.path(), &args)), expected, "{filter}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_compared_and_only_missing_events_are_fetched() {
    let kit = kit!(NostrRelay);
    let events = conformance::fixtures!(Captures).path("nostr/events.jsonl");
    let dir = tempfile::tempdir().unwrap();
    let relay = NostrRelay::start(&kit, &events, RelayKind::Open).await;
    let stored = relay.ids(&json!({})).await;
    let file = fs::read_to_string(&events).unwrap();
    let have = dir.path().join("have.jsonl");
    let (missing, known): (Vec<_>, Vec<_>) =
        file.lines().enumerate().partition(|(index, _)| index % 100 == 57);
    write(&have, known.into_iter().map(|(_, line)| line));
    let missing = missing.into_iter().map(|(_, line)| id(line));
    let expected: BTreeSet<String> = missing.filter(|id| stored.contains(id)).collect();
    assert!(expected.len() > 30, "{}", expected.len());
    let args = ["--stored", "--negentropy", "--have", have.to_str().unwrap()];
    assert_eq!(ids(follow(&relay, dir.path(), &args)), expected);
    assert_eq!(ids(follow(&relay, dir.path(), &["--stored", "--negentropy"])), stored);
}

/// A running `nostr follow`. Dropping it kills the process.
struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the command starts");
        let out = BufReader::new(child.stdout.take().expect("standard output is piped"));
        Self { child, out }
    }

    /// The ids of the next events, until all of these have come.
    fn take_all(&mut self, expected: &BTreeSet<String>) -> Vec<String> {
        let (mut taken, mut missing) = (Vec::new(), expected.clone());
        block_in_place(|| {
            while !missing.is_empty() {
                let mut line = String::new();
                assert!(self.out.read_line(&mut line).unwrap() > 0, "the process has ended");
                missing.remove(&id(&line));
                taken.push(id(&line));
            }
        });
        taken
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Notes and reactions, which no other event replaces, in the order of their times.
fn regular_events(file: &str) -> Vec<&str> {
    let parse = |line| -> (Value, &str) { (serde_json::from_str(line).unwrap(), line) };
    let has_tag = |event: &Value, name: &str| {
        event["tags"].as_array().unwrap().iter().any(|tag| tag[0] == name)
    };
    let mut events: Vec<_> = file
        .lines()
        .map(parse)
        .filter(|(event, _)| event["kind"] == 1 || event["kind"] == 7)
        .filter(|(event, _)| !has_tag(event, "-") && !has_tag(event, "expiration"))
        .map(|(event, line)| (event["created_at"].as_i64().unwrap(), line))
        .filter(|(created_at, _)| *created_at < 1_790_000_000)
        .collect();
    events.sort_unstable();
    events.into_iter().map(|(_, line)| line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn new_events_follow_and_a_run_that_is_killed_resumes_without_loss() {
    let kit = kit!(NostrRelay);
    let file = conformance::fixtures!(Captures).text("nostr/events.jsonl");
    let dir = tempfile::tempdir().unwrap();
    let events = regular_events(&file);
    assert!(events.len() > 2_000, "{}", events.len());
    let (stored, rest) = events.split_at(1_200);
    let (live, while_away) = rest[..300].split_at(200);
    let path = dir.path().join("events.jsonl");
    write(&path, stored.iter().copied());
    let relay = NostrRelay::start(&kit, &path, RelayKind::Open).await;
    let ids_of = |events: &[&str]| events.iter().map(|event| id(event)).collect();

    let state = dir.path().join("state");
    let mut running = Running::start(follow(&relay, &state, &[]));
    let mut taken = running.take_all(&ids_of(stored));
    relay.publish(live).await;
    taken.extend(running.take_all(&ids_of(live)));
    let different: BTreeSet<&String> = taken.iter().collect();
    assert_eq!(different.len(), taken.len(), "no event is written twice in one run");
    // The times are stored once a second.
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    drop(running);

    relay.publish(while_away).await;
    let mut running = Running::start(follow(&relay, &state, &[]));
    let resumed = running.take_all(&ids_of(while_away));
    let again = resumed.len() - while_away.len();
    assert!(again < stored.len(), "it resumes, with {again} events again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_limits_subscriptions_and_refuses_a_request_is_read_whole() {
    let kit = kit!(NostrRelay);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.jsonl");
    let corpus = Corpus::generate(&Spec { events: 2_000, authors: 800, ..Spec::default() });
    write(&path, corpus.to_file().lines());
    let relay = NostrRelay::start(&kit, &path, RelayKind::Busy).await;
    let output = output(follow(&relay, dir.path(), &["--stored"]));
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = stderr(&output);
    for message in ["the relay ended the subscription: error: try later", "retrying in "] {
        assert!(printed.contains(message), "{message}: {printed}");
    }
    let lines: Vec<&str> = str::from_utf8(&output.stdout).unwrap().lines().collect();
    let written: BTreeSet<String> = lines.iter().map(|line| id(line)).collect();
    assert_eq!(written.len(), lines.len());
    assert_eq!(written, relay.ids(&json!({})).await);
    assert!(written.len() > 1_000, "{}", written.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_requires_authentication_is_reported() {
    let kit = kit!(NostrRelay);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.jsonl");
    let corpus = Corpus::generate(&Spec { events: 5, authors: 2, ..Spec::default() });
    write(&path, corpus.to_file().lines());
    let relay = NostrRelay::start(&kit, &path, RelayKind::Auth).await;
    let output = output(follow(&relay, dir.path(), &["--stored"]));
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let printed = stderr(&output);
    for message in ["asks for authentication (NIP-42)", "auth-required: "] {
        assert!(printed.contains(message), "{printed}");
    }
}
