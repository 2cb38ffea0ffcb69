//! A client of `wireproof serve` that is killed and continues at its cursor, and the events that it received.

use std::collections::{BTreeMap, HashSet};
use std::thread::sleep;

use codec::cbor::{self, Arena};
use codec::cid::Codec;
use codec::{Cid, json};
use serde_json::Value;
use simnet::servers::{EventKind, SentEvent, Simulation};
use wireproof_interop::reader::Reader;

use crate::served::{RELAY, Records, Served, records_of};

/// The form of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Frames of `com.atproto.sync.subscribeRepos`.
    Frames,
    /// The same, of which the client passes on no `#sync`.
    FramesWithoutSync,
    /// Version 1 of a Jetstream.
    JetstreamV1,
    /// Version 2 of a Jetstream.
    JetstreamV2,
    /// The same without `#sync`.
    JetstreamV2WithoutSync,
}

impl Form {
    /// A cursor before the first event. Some clients take 0 for none.
    fn first_cursor(self) -> i64 {
        match self {
            Self::Frames => 0,
            _ => 1,
        }
    }

    /// The number of lines of a reader for a sent event.
    fn lines(self, sent: &SentEvent, is_first_sync: bool) -> u32 {
        match (sent.subject.kind, self) {
            (EventKind::Commit, _) => sent.subject.jetstream_events,
            (EventKind::Sync, Self::Frames | Self::JetstreamV2) if is_first_sync => 1,
            // One with a revision that is known is ignored, and not served.
            (EventKind::Sync, _) => 0,
            _ => 1,
        }
    }
}

/// A client that begins with the first event, and continues at its cursor when it has ended.
pub(crate) struct Client<S> {
    form: Form,
    start: S,
    reader: Option<Reader>,
    received: Received,
}

impl<S: Fn(&Served, i64) -> Reader> Client<S> {
    /// A client that `start` starts with a cursor.
    pub(crate) fn new(served: &Served, form: Form, start: S) -> Self {
        Self { form, start, reader: None, received: Received::new(served, form) }
    }

    /// Receives this many new lines.
    pub(crate) fn receive(&mut self, served: &Served, count: usize) {
        let until = self.received.events.len() + count;
        let mut starts = 0;
        while self.received.events.len() < until {
            let reader = self.reader.get_or_insert_with(|| {
                starts += 1;
                assert!(starts < MAX_STARTS, "the client ends again and again");
                (self.start)(served, self.received.cursor())
            });
            match reader.next_or_end() {
                Some(event) => self.received.add(event),
                None => self.reader = None,
            }
        }
    }

    /// Receives all lines of the events sent until now, and compares them per account with the sent events, in order.
    pub(crate) fn receive_all(&mut self, served: &Served) {
        let sent = expected_lines(&served.sim, self.form);
        let count: usize = sent.values().map(Vec::len).sum();
        self.receive(served, count.saturating_sub(self.received.events.len()));
        assert_eq!(self.received.lines(), sent);
    }

    /// Kills the client without notice.
    pub(crate) fn kill(&mut self) {
        let events = self.reader.take().map(Reader::kill).unwrap_or_default();
        events.into_iter().for_each(|event| self.received.add(event));
    }

    /// All lines until now.
    pub(crate) fn events(&self) -> &[Value] {
        &self.received.events
    }

    /// Asserts that nothing more arrives, and that the events give these records.
    pub(crate) fn ends_with(&mut self, records: &Records) {
        let rest = self.reader.as_ref().map(Reader::rest).unwrap_or_default();
        rest.into_iter().for_each(|event| assert!(self.received.has(&event), "{event}"));
        assert_eq!(self.received.records, *records);
    }
}

/// Follows the events of a network while the client and the server are killed.
pub(crate) fn follows_through_kills<S: Fn(&Served, i64) -> Reader>(
    form: Form,
    start: S,
) -> (Served, Client<S>) {
    let mut served = Served::start();
    let mut client = Client::new(&served, form, start);
    client.receive(&served, 40);
    client.kill();
    client.receive_all(&served);
    for round in 0..2 {
        served.sim.write_commits(60);
        sleep(crate::round_time(round));
        served.kill_and_restart();
    }
    served.change();
    client.receive_all(&served);
    // Both are away.
    client.kill();
    served.sim.write_commits(40);
    served.kill_and_restart();
    client.receive_all(&served);
    let records = records_of(&served.sim);
    // Its record is in no event.
    served.sim.write_unannounced(SYNCED);
    served.sim.send_sync(SYNCED);
    client.receive_all(&served);
    client.ends_with(&records);
    (served, client)
}

/// The events of a client: each once, although a stream that is resumed may repeat some.
struct Received {
    form: Form,
    known: HashSet<(i64, String)>,
    events: Vec<Value>,
    records: Records,
}

impl Received {
    fn new(served: &Served, form: Form) -> Self {
        let records = served.initial.clone();
        Self { form, known: HashSet::new(), events: Vec::new(), records }
    }

    fn add(&mut self, event: Value) {
        if !self.known.insert(key(&event)) {
            return;
        }
        if event["kind"] == "commit" {
            self.apply(&event);
        }
        self.events.push(event);
    }

    fn has(&self, event: &Value) -> bool {
        self.known.contains(&key(event))
    }

    /// The cursor that the client stored.
    fn cursor(&self) -> i64 {
        let mut seqs = self.events.iter().rev().map(seq);
        let last = seqs.next();
        let cursor = match self.form {
            // The operations of the last frame may be cut off.
            Form::Frames | Form::FramesWithoutSync => seqs.find(|seq| Some(*seq) < last),
            // The stream begins with the event at the cursor.
            _ => last,
        };
        cursor.unwrap_or(self.form.first_cursor())
    }

    fn apply(&mut self, event: &Value) {
        let records = self.records.get_mut(&text(event, "did")).expect("an account of the network");
        match event["cid"].as_str() {
            Some(cid) => {
                if event["record"].is_object() {
                    assert_eq!(cid_of(&event["record"]), cid, "{event}");
                }
                records.insert(text(event, "path"), cid.to_owned());
            }
            None => drop(records.remove(&text(event, "path"))),
        }
    }

    /// The kind and, of a commit, the revision of every line, per account.
    fn lines(&self) -> Lines {
        let mut lines = Lines::new();
        for event in &self.events {
            let kind = text(event, "kind");
            let rev = if kind == "commit" { text(event, "rev") } else { String::new() };
            lines.entry(text(event, "did")).or_default().push((kind, rev));
        }
        lines
    }
}

type Lines = BTreeMap<String, Vec<(String, String)>>;

/// The lines of the events sent until now.
fn expected_lines(sim: &Simulation, form: Form) -> Lines {
    let mut lines = Lines::new();
    let commits: HashSet<(String, String)> = sim
        .sent_events(RELAY)
        .into_iter()
        .filter(|sent| sent.subject.kind == EventKind::Commit)
        .map(|sent| (sent.subject.did, sent.subject.rev))
        .collect();
    for sent in &sim.sent_events(RELAY) {
        let subject = &sent.subject;
        let (kind, rev) = match subject.kind {
            EventKind::Commit => ("commit", subject.rev.as_str()),
            EventKind::Sync => ("sync", ""),
            EventKind::Identity => ("identity", ""),
            EventKind::Account => ("account", ""),
            EventKind::Hostile => ("hostile", ""),
        };
        let is_new = !commits.contains(&(subject.did.clone(), subject.rev.clone()));
        let of_account = lines.entry(subject.did.clone()).or_default();
        of_account.extend((0..form.lines(sent, is_new)).map(|_| (kind.to_owned(), rev.to_owned())));
    }
    lines
}

/// What tells a line from all others.
fn key(event: &Value) -> (i64, String) {
    (seq(event), format!("{} {} {}", event["kind"], event["did"], event["path"]))
}

fn seq(event: &Value) -> i64 {
    event["seq"].as_i64().unwrap_or_else(|| panic!("no number: {event}"))
}

fn text(event: &Value, name: &str) -> String {
    event[name].as_str().unwrap_or_else(|| panic!("no {name}: {event}")).to_owned()
}

/// The CID of a record, from its JSON.
fn cid_of(record: &Value) -> String {
    let arena = Arena::new();
    let value = json::decode(&record.to_string(), &arena).expect("the JSON of a record");
    Cid::of(Codec::DagCbor, &cbor::encode(&value).expect("a record")).to_string()
}

/// The account whose last revision only `#sync` names.
const SYNCED: usize = 3;

/// Maximum number of starts of a client until it has received what it is to receive.
const MAX_STARTS: usize = 60;
