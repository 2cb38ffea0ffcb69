//! `nostr follow --to`: destinations after kills, and the refusals.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nostr::OwnedEvent;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use simnet::nostr_relay::{NostrRelay, RelayFault};

use crate::deliveries::receive;
use crate::nostr_relays::{all, corpus, follow, json, output, relay, say, sorted, text};
use crate::stderr;

/// `nostr follow --to` of a relay, which always begins within the last events.
fn deliver(relay: &NostrRelay, dir: &Path, to: &str, args: &[&str]) -> Command {
    let state = dir.join("state").display().to_string();
    let given = ["--to", to, "--state", &state, "--overlap-seconds", "0"];
    let mut command = follow(&[relay], dir, &[&given[..], args].concat());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Runs a command to its end, which prints nothing to standard output.
fn run(mut command: Command) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = output(command);
    assert!(output.stdout.is_empty());
    output
}

/// Runs a command that is refused, and returns its messages.
fn run_to_failure(mut command: Command) -> String {
    let output = command.stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    stderr(&output)
}

/// Waits until the process has ended by itself.
fn wait_for_end(mut child: Child) -> Option<i32> {
    let since = Instant::now();
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return status.code(),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
        if since.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            panic!("the process does not end");
        }
    }
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The events of a table, as lines, in the order of their numbers.
fn rows(tables: &Path) -> Vec<String> {
    let file = Connection::open_with_flags(tables, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let select =
        "SELECT id, pubkey, created_at, kind, tags, content, sig FROM event ORDER BY number";
    let mut select = file.prepare(select).unwrap();
    let line = |row: &rusqlite::Row<'_>| {
        let text = |at| row.get::<_, String>(at);
        let content = serde_json::to_string(&text(5)?).unwrap();
        Ok(format!(
            r#"{{"id":"{}","pubkey":"{}","created_at":{},"kind":{},"tags":{},"content":{content},"sig":"{}"}}"#,
            text(0)?,
            text(1)?,
            row.get::<_, i64>(2)?,
            row.get::<_, u16>(3)?,
            text(4)?,
            text(6)?
        ))
    };
    select.query_map([], line).unwrap().map(Result::unwrap).collect()
}

/// Lines as values, whose strings do not depend on how they are escaped.
fn values(lines: &[String]) -> Vec<Value> {
    lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The lines of all complete files in a folder.
fn file_lines(folder: &Path) -> Vec<String> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|name| name == "ndjson"));
    files.sort();
    files.iter().flat_map(|path| text(&fs::read(path).unwrap())).collect()
}

/// Points at which the process ends itself, with the passage.
#[cfg(debug_assertions)]
const POINTS: [&str; 7] = [
    "outbox/committed@1",
    "outbox/stored@1",
    "sqlite/written@1",
    "sqlite/committed@1",
    "delivery/sent@1",
    "checkpoint/written@1",
    "checkpoint/committed@1",
];
#[cfg(not(debug_assertions))]
const POINTS: [&str; 0] = [];

/// Runs with kills: at every point, and then at some moments. New events are published before every kill.
fn run_with_kills(
    relay: &NostrRelay,
    dir: &Path,
    to: &str,
    points: &[&str],
    published: &[OwnedEvent],
) {
    const MOMENTS: usize = 6;
    let mut published = published.chunks(published.len().div_ceil(points.len() + MOMENTS));
    let mut publish = || published.next().unwrap().iter().for_each(|event| relay.publish(event));
    for point in points {
        publish();
        let mut command = deliver(relay, dir, to, &[]);
        command.env("WIREPROOF_CRASH_POINT", point);
        command.env("WIREPROOF_CRASH_MARKER", dir.join("marker"));
        assert_eq!(wait_for_end(command.spawn().unwrap()), None, "{point}");
    }
    for moment in 0..MOMENTS {
        publish();
        let running = deliver(relay, dir, to, &[]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(60 + 97 * (moment as u64 % 5)));
        kill(running);
    }
}

#[test]
fn after_kills_at_any_moment_the_table_has_each_event_once_and_whole() {
    let (corpus, dir) = (corpus(700), tempfile::tempdir().unwrap());
    let relay = relay(&corpus.events()[..500]);
    relay.inject([(130, RelayFault::Cut)]);
    let tables = dir.path().join("events.db");
    let to = format!("sqlite:{}", tables.display());
    run_with_kills(&relay, dir.path(), &to, &POINTS, &corpus.events()[500..]);
    run(deliver(&relay, dir.path(), &to, &["--stored"]));
    assert_eq!(values(&sorted(rows(&tables))), values(&all(corpus.events())));
    // Another state, which remembers nothing: the table knows its events.
    let again = tempfile::tempdir().unwrap();
    run(deliver(&relay, again.path(), &to, &["--stored"]));
    assert_eq!(rows(&tables).len(), 700);
}

#[test]
fn after_kills_at_any_moment_files_have_every_event_and_its_repetitions_are_equal() {
    let (corpus, dir) = (corpus(500), tempfile::tempdir().unwrap());
    let relay = relay(&corpus.events()[..400]);
    let folder = dir.path().join("events");
    let to = format!("file://{}", folder.display());
    run_with_kills(&relay, dir.path(), &to, &[], &corpus.events()[400..]);
    run(deliver(&relay, dir.path(), &to, &["--stored"]));
    let lines: BTreeSet<String> = file_lines(&folder).into_iter().collect();
    assert_eq!(lines.into_iter().collect::<Vec<_>>(), all(corpus.events()));
    // A run that is not killed repeats nothing.
    let lines = file_lines(&folder).len();
    run(deliver(&relay, dir.path(), &to, &["--stored"]));
    assert_eq!(file_lines(&folder).len(), lines);
}

#[test]
fn what_a_destination_has_not_taken_is_delivered_although_no_relay_has_it_any_more() {
    let (corpus, dir) = (corpus(300), tempfile::tempdir().unwrap());
    let secret = dir.path().join("secret");
    fs::write(&secret, "a secret of twenty-four bytes").unwrap();
    let secret = ["--webhook-secret-file", secret.to_str().unwrap(), "--webhook-body", "ndjson"];
    let tables = dir.path().join("events.db");
    let to = format!("sqlite:{}", tables.display());
    let address = conformance::own_address();
    let webhook = format!("http://{address}/hook");
    let full = relay(corpus.events());
    // The webhook is away, and the table has all events: so has the outbox.
    let args = [&["--to", &*webhook], &secret[..]].concat();
    let running = deliver(&full, dir.path(), &to, &args).spawn().unwrap();
    let since = Instant::now();
    while !tables.exists() || rows(&tables).len() < 300 {
        assert!(since.elapsed() < Duration::from_secs(60), "the table has all events");
        std::thread::sleep(Duration::from_millis(50));
    }
    kill(running);
    drop(full);
    let empty = relay(&[]);
    let without = run_to_failure(deliver(&empty, dir.path(), &to, &["--stored"]));
    assert!(without.contains("the outbox has 300 events for webhook-"), "{without}");
    let (url, requests) = receive(TcpListener::bind(address).unwrap());
    assert_eq!(url, webhook);
    let args = [&["--to", &*webhook, "--stored"], &secret[..]].concat();
    run(deliver(&empty, dir.path(), &to, &args));
    let received = requests.try_iter().flat_map(|request| text(&request.body)).collect();
    assert_eq!(sorted(received), all(corpus.events()));
}

#[test]
fn events_of_several_relays_in_other_forms_are_one_line_of_their_seven_fields() {
    let (corpus, dir) = (corpus(10), tempfile::tempdir().unwrap());
    let (first, second) = (relay(&corpus.events()[..6]), relay(&corpus.events()[4..]));
    let event = json(&corpus.events()[3]);
    let other = event.replace(",\"kind\"", ",\n\"seen_on\":[\"wss://a\"],  \"kind\"");
    second.inject([say(format!(r#"["EVENT","{{sub}}",{other}]"#))]);
    let folder = dir.path().join("events");
    let to = format!("file://{}", folder.display());
    let url = second.url();
    let printed = stderr(&run(deliver(&first, dir.path(), &to, &[&url, "--stored"])));
    assert!(printed.contains(": 10 valid, "), "{printed}");
    assert_eq!(sorted(file_lines(&folder)), all(corpus.events()));
}

#[test]
fn a_run_of_some_events_ends_once_each_destination_has_them() {
    let (corpus, dir) = (corpus(60), tempfile::tempdir().unwrap());
    let relay = relay(corpus.events());
    let (folder, tables) = (dir.path().join("events"), dir.path().join("events.db"));
    let files = format!("file://{}", folder.display());
    let to = format!("sqlite:{}", tables.display());
    run(deliver(&relay, dir.path(), &files, &["--to", &to, "--events", "7"]));
    assert_eq!((file_lines(&folder).len(), rows(&tables).len()), (7, 7));
    assert_eq!(values(&file_lines(&folder)), values(&rows(&tables)));
}

#[test]
fn what_cannot_be_delivered_is_refused_before_a_relay_is_asked() {
    let (corpus, dir) = (corpus(5), tempfile::tempdir().unwrap());
    let relay = relay(corpus.events());
    let path = |name: &str| dir.path().join(name).display().to_string();
    let tables = format!("sqlite:{}", path("events.db"));
    fs::write(path("other.db"), "no database").unwrap();
    let other = format!("sqlite:{}", path("other.db"));
    for (args, code, message) in [
        (&["--to", &*tables, "--json"][..], 2, "cannot be used with"),
        (&["--to", "ws://127.0.0.1:2480"], 2, "has no server for WebSocket clients"),
        (&["--forget", "x"], 2, "--forget needs --to"),
        (&["--to", &tables, "--to", &tables], 2, "is named twice"),
        (&["--to", "amqp://broker/queue"], 2, "expected file:///FOLDER"),
        (&["--to", "https://hook.test/"], 2, "needs --webhook-secret-file"),
        (&["--to", &other], 4, "other.db"),
    ] {
        let state = path("state");
        let args = [args, &["--stored", "--state", &state]].concat();
        let output = follow(&[&relay], dir.path(), &args).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{args:?}: {}", stderr(&output));
    }
    assert_eq!(relay.connection_count(), 0);
}
