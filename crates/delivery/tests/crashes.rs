//! An end of the process at any crash point of the outbox, the delivery or the sinks loses no event, and repeats only
//! events whose acknowledgement was not stored, with the same ids.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use base::StopSignal;
use tokio::task::JoinHandle;
use wireproof_delivery::{
    DeadLetters, Delivery, DeliveryError, DeliveryOptions, DeliverySummary, Event, EventId,
    FailureKind, FileOptions, FileSink, NewEvent, Options, Outbox, SendFailure, Sink, SinkLimits,
    SqliteOptions, SqliteSink, StartAt,
};

/// The points, with the passage at which the process ends.
const POINTS: [(&str, u64); 29] = [
    ("outbox/created", 1),
    ("outbox/named", 1),
    ("outbox/taken", 1),
    ("outbox/taken", 4),
    ("outbox/written", 1),
    ("outbox/written", 4),
    ("outbox/committed", 1),
    ("outbox/committed", 2),
    ("outbox/committed", 5),
    ("outbox/stored", 2),
    ("outbox/stored", 6),
    ("outbox/closing", 1),
    ("outbox/closed", 1),
    ("delivery/sent", 1),
    ("delivery/sent", 3),
    ("delivery/set-aside", 1),
    ("dead-letters/written", 1),
    ("files/taken", 1),
    ("files/written", 1),
    ("files/written", 3),
    ("files/synced", 2),
    ("files/complete", 1),
    ("files/complete", 2),
    ("files/named", 1),
    ("sqlite/created", 1),
    ("sqlite/named", 1),
    ("sqlite/written", 2),
    ("sqlite/committed", 1),
    ("sqlite/committed", 2),
];

/// Points that are reached with a server alone, in the tests of `interop`.
const AT_SERVERS: [&str; 4] =
    ["kafka/acknowledged", "nats/acknowledged", "postgres/written", "postgres/committed"];

#[test]
fn an_end_at_any_crash_point_loses_nothing_and_repeats_only_what_is_not_acknowledged() {
    let mut repeated = 0;
    for (name, passage) in POINTS {
        let dir = tempfile::tempdir().unwrap();
        let ended = child(dir.path(), Some((name, passage)));
        let marker = fs::read_to_string(dir.path().join("marker"));
        let text = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success(), "{name}@{passage} was not reached\n{text}");
        assert_eq!(marker.ok().as_deref(), Some(name), "{name}@{passage}\n{text}");
        let before = stored_cursor(dir.path());
        let ended = child(dir.path(), None);
        let text = String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned();
        assert!(ended.status.success(), "after {name}@{passage}\n{text}");
        repeated += check(dir.path(), before, &format!("{name}@{passage}"));
    }
    println!("{} ends at crash points: none lost, {repeated} delivered again", POINTS.len());
}

#[test]
fn the_table_has_every_crash_point_of_the_sources() {
    let mut named = BTreeSet::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let path = entry.unwrap().path();
        let source = if path.is_file() { fs::read_to_string(path).unwrap() } else { String::new() };
        let calls = source.match_indices("crash_point(\"").map(|(at, call)| at + call.len());
        named.extend(calls.map(|at| source[at..].split('"').next().unwrap().to_owned()));
    }
    let table = POINTS.iter().map(|(name, _)| *name).chain(AT_SERVERS);
    assert_eq!(named, table.map(str::to_owned).collect());
    let tests = [
        include_str!("../../../interop/tests/interop/kafka.rs"),
        include_str!("../../../interop/tests/interop/nats.rs"),
        include_str!("../../../interop/tests/interop/postgres.rs"),
    ]
    .concat();
    for point in AT_SERVERS {
        assert!(tests.contains(&format!("\"{point}@")), "{point}");
    }
}

/// The tests run this in another process: without a crash point it delivers everything.
#[test]
fn a_run_delivers_every_event_to_files_and_sets_the_refused_ones_aside() {
    let given = std::env::var_os("WIREPROOF_CRASH_FOLDER");
    let dir = tempfile::tempdir().unwrap();
    let folder = given.as_ref().map_or(dir.path(), Path::new);
    run(folder);
    if given.is_none() {
        assert_eq!(check(folder, 0, "a run"), 0, "nothing is repeated");
    }
}

/// Runs the test above in a process of its own, which ends at the point.
fn child(folder: &Path, point: Option<(&str, u64)>) -> Output {
    let name = "a_run_delivers_every_event_to_files_and_sets_the_refused_ones_aside";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env("WIREPROOF_CRASH_FOLDER", folder);
    if let Some((point, passage)) = point {
        command.env("WIREPROOF_CRASH_POINT", format!("{point}@{passage}"));
        command.env("WIREPROOF_CRASH_MARKER", folder.join("marker"));
    }
    command.output().unwrap()
}

/// Files that refuse some events.
struct RefusingFiles(FileSink);

impl Sink for RefusingFiles {
    fn limits(&self) -> SinkLimits {
        SinkLimits::new(20, 1 << 20)
    }

    async fn send(&self, events: &[Event]) -> Result<(), SendFailure> {
        if events.iter().any(|event| event.account() == REFUSED) {
            Err(SendFailure::new(FailureKind::Refused, "this account is refused"))
        } else {
            self.0.send(events).await
        }
    }

    async fn close(&self) -> Result<(), SendFailure> {
        self.0.close().await
    }
}

/// Appends all events from the source's own cursor on, and delivers them to files and to tables.
#[tokio::main(flavor = "current_thread")]
async fn run(folder: &Path) {
    let options = Options::default();
    let outbox = Outbox::open(&folder.join("outbox.sqlite"), options).unwrap();
    outbox.register("files", StartAt::Oldest).unwrap();
    outbox.register("tables", StartAt::Oldest).unwrap();
    let stop = StopSignal::new();
    let running =
        [deliver_to_files(&outbox, folder, &stop), deliver_to_tables(&outbox, folder, &stop)];
    let (source, path) = (outbox.clone(), folder.join("source"));
    tokio::task::spawn_blocking(move || append(&source, &path)).await.unwrap();
    while outbox.status().consumers.iter().any(|consumer| consumer.behind > 0) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stop.request();
    for delivery in running {
        delivery.await.unwrap().unwrap();
    }
}

type Running = JoinHandle<Result<DeliverySummary, DeliveryError>>;

fn deliver_to_files(outbox: &Outbox, folder: &Path, stop: &StopSignal) -> Running {
    let mut file_options = FileOptions::default();
    file_options.max_bytes = 1_000;
    let sink = FileSink::open(&folder.join("files"), file_options).unwrap();
    let letters = DeadLetters::open(&folder.join("refused.ndjson"), "files", 1 << 20).unwrap();
    let consumer = outbox.consumer("files").unwrap();
    let mut options = DeliveryOptions::default();
    options.backoff.initial = Duration::from_millis(1);
    let delivery = Delivery::new(consumer, RefusingFiles(sink), Some(letters), options);
    tokio::spawn(delivery.run(stop.clone()))
}

fn deliver_to_tables(outbox: &Outbox, folder: &Path, stop: &StopSignal) -> Running {
    let path = folder.join("tables.db");
    let sink = SqliteSink::open(&path, outbox.identity(), SqliteOptions::default()).unwrap();
    let consumer = outbox.consumer("tables").unwrap();
    let delivery = Delivery::new(consumer, sink, None, DeliveryOptions::default());
    tokio::spawn(delivery.run(stop.clone()))
}

/// The source: it stores its cursor after every fifty events. A cursor that was cut off counts as the start.
fn append(outbox: &Outbox, path: &Path) {
    let cursor = fs::read_to_string(path).map_or(0, |text| text.parse().unwrap_or(0));
    for first in (cursor..EVENTS).step_by(50) {
        outbox.append_all((first..first + 50).map(event)).unwrap();
        fs::write(path, (first + 50).to_string()).unwrap();
    }
}

fn account(number: u64) -> String {
    format!("did:web:{}.test", number % 7)
}

fn event(number: u64) -> NewEvent {
    let (did, rev) = (account(number), format!("{number:06}"));
    let id = EventId::of_commit(&did, &rev);
    let payload = format!(
        r#"{{"v":1,"id":"{id}","n":{number},"host":"https://a","kind":"commit","verdict":"verified","code":"verified","did":"{did}","rev":"{rev}","ops":[{{"action":"create","collection":"a.b.c","rkey":"{number}"}}]}}"#
    );
    NewEvent::new(id, &did, payload).unwrap()
}

/// The cursor in the file. The event with the number N has the position N + 1, as no event is stored twice.
fn stored_cursor(folder: &Path) -> u64 {
    let outbox = Outbox::open(&folder.join("outbox.sqlite"), Options::default()).unwrap();
    outbox.status().consumers.first().map_or(0, |consumer| consumer.cursor)
}

/// Checks that every event was delivered or set aside, in order within an account, and that none before the cursor
/// was repeated. Returns how many others were.
fn check(folder: &Path, cursor: u64, what: &str) -> usize {
    let mut counts = BTreeMap::<String, usize>::new();
    let mut last = BTreeMap::<String, u64>::new();
    for (id, number) in delivered(folder) {
        assert_eq!(id, event(number).id().as_str(), "{what}: ids are the same");
        if counts.insert(id.clone(), counts.get(&id).map_or(1, |count| count + 1)).is_none() {
            let before = last.insert(account(number), number);
            assert!(before < Some(number), "{what}: {number} of its account");
        }
    }
    for line in fs::read_to_string(folder.join("refused.ndjson")).unwrap().lines() {
        let letter: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(letter["account"], REFUSED);
        *counts.entry(letter["id"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let missing = (0..EVENTS).find(|number| !counts.contains_key(event(*number).id().as_str()));
    assert_eq!((missing, counts.len() as u64), (None, EVENTS), "{what}");
    check_tables(folder, what);
    let is_repeated = |number: &u64| counts[event(*number).id().as_str()] > 1;
    let first = (0..EVENTS).find(is_repeated);
    assert!(first.is_none_or(|number| number >= cursor), "{what}: {first:?} before {cursor}");
    counts.values().sum::<usize>() - counts.len()
}

/// Checks that every event has changed the tables exactly once.
fn check_tables(folder: &Path, what: &str) {
    let tables = rusqlite::Connection::open(folder.join("tables.db")).unwrap();
    let count = |table: &str| {
        let select = format!("SELECT count(*) FROM {table}");
        tables.query_row(&select, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let all = EVENTS.cast_signed();
    assert_eq!((count("event"), count("record")), (all, all), "{what}");
}

/// The events of all complete files, in the order of the files.
fn delivered(folder: &Path) -> Vec<(String, u64)> {
    let files = fs::read_dir(folder.join("files")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().unwrap() != "lock").collect();
    files.sort();
    let line = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        (value["id"].as_str().unwrap().to_owned(), value["n"].as_u64().unwrap())
    };
    let lines = files.iter().flat_map(|path| {
        assert_eq!(path.extension().unwrap(), "ndjson", "{}", path.display());
        fs::read_to_string(path).unwrap().lines().map(line).collect::<Vec<_>>()
    });
    lines.collect()
}

const EVENTS: u64 = 400;

/// The account of every seventh event.
const REFUSED: &str = "did:web:3.test";
