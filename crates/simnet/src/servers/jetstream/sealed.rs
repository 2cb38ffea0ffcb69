//! The hosted archive of a Jetstream: segments with the history of all accounts, sealed once.
//!
//! Every account has the records of its repository, in rows of several kinds: created, replaced, fetched again after a `#sync`, next
//! to rows of records that were deleted since. The rows of one account are in order, between rows of others.

use std::sync::Arc;

use atproto::syntax::Tid;
use codec::cbor::Encoder;

use super::super::fault::{Fault, UNPOISONED};
use super::super::hosted_account::{AccountStatus, HostedAccount};
use super::super::network::{NetworkState, lock};
use super::super::spec::{HostedArchive, Server};
use crate::jetstream_segment::{SealedSegment, SegmentEvent};
use crate::random::{Random, Seed};
use crate::time::{START_MICROS, datetime};

/// The segments of a server.
#[derive(Debug)]
pub(in super::super) struct SealedArchive {
    pub(in super::super) segments: Vec<SealedSegment>,
}

impl SealedArchive {
    /// The hosted archive of a server. The first call seals it.
    pub(in super::super) fn kept(network: &NetworkState, server: Server) -> Arc<Self> {
        let mut archives = network.jetstream_state.archives.lock().expect(UNPOISONED);
        let sealed = archives.entry(server);
        sealed.or_insert_with(|| Arc::new(Self::of(network, server))).clone()
    }

    /// Seals the hosted archive of a server anew.
    pub(in super::super) fn renew(network: &NetworkState, server: Server) {
        let sealed = Arc::new(Self::of(network, server));
        network.jetstream_state.archives.lock().expect(UNPOISONED).insert(server, sealed);
    }

    /// Seals the history of all accounts as they are now.
    fn of(network: &NetworkState, server: Server) -> Self {
        let mut random = Seed::new(network.spec.seed, &format!("archive of {server}")).stream(0);
        let histories: Vec<Vec<SegmentEvent>> = (0..network.account_count())
            .filter_map(|number| network.account(number))
            .map(|account| history(network, server, &lock(&account), &mut random))
            .collect();
        let events = interleaved(histories, &mut random);
        let HostedArchive { events_per_block, blocks_per_segment, .. } = network.spec.archive;
        let per_segment = events_per_block.max(1) * blocks_per_segment.max(1);
        let segments = events.chunks(per_segment);
        Self {
            segments: segments
                .map(|events| SealedSegment::write(events, events_per_block))
                .collect(),
        }
    }

    /// The name of a segment: its number in base 36.
    pub(super) fn name(number: usize) -> String {
        let (mut digits, mut rest) = (Vec::new(), number);
        for _ in 0..10 {
            digits.push(char::from(b"0123456789abcdefghijklmnopqrstuvwxyz"[rest % 36]));
            rest /= 36;
        }
        format!("seg_{}.jss", digits.iter().rev().collect::<String>())
    }

    /// The segment of this name, and its number.
    pub(super) fn get(&self, name: &str) -> Option<(usize, &SealedSegment)> {
        let digits = name.strip_prefix("seg_")?.strip_suffix(".jss")?;
        let number = usize::from_str_radix(digits, 36).ok()?;
        Some((number, self.segments.get(number)?))
    }

    /// The last sequence number.
    pub(super) fn tip(&self) -> u64 {
        self.segments.last().and_then(|last| last.blocks.last()).map_or(0, |block| block.seqs.1)
    }
}

/// Mixes the events of all accounts, and numbers them.
fn interleaved(histories: Vec<Vec<SegmentEvent>>, random: &mut Random) -> Vec<SegmentEvent> {
    // A turn of an account is a run of its events, as where its repository was fetched.
    let mut turns = Vec::new();
    for (number, history) in histories.iter().enumerate() {
        let mut left = history.len();
        while left > 0 {
            let run = (random.between(1, 40) as usize).min(left);
            turns.push((number, run));
            left -= run;
        }
    }
    random.shuffle(&mut turns);
    let mut histories: Vec<_> = histories.into_iter().map(Vec::into_iter).collect();
    let runs = turns
        .into_iter()
        .flat_map(|(number, run)| histories[number].by_ref().take(run).collect::<Vec<_>>());
    let mut events: Vec<SegmentEvent> = runs.collect();
    for (event, seq) in events.iter_mut().zip(1..) {
        event.seq = seq;
        event.witnessed = (START_MICROS + seq * 1_000) as i64;
    }
    events
}

/// The rows of an account, without numbers.
fn history(
    network: &NetworkState,
    server: Server,
    account: &HostedAccount,
    random: &mut Random,
) -> Vec<SegmentEvent> {
    let repository = account.repository.get();
    let rows = Rows { did: account.did(), rev: repository.rev() };
    let mut events = Vec::new();
    let is_fetched_again = random.chance(1, 5);
    for entry in repository.tree().entries() {
        let record = repository.record(&entry.key);
        if is_fetched_again {
            if random.chance(1, 3) {
                events.push(rows.former(&entry.key));
            }
            continue;
        }
        rows.create(&entry.key, &record, random, &mut events);
    }
    if is_fetched_again {
        events.push(rows.marker(SYNC, sync_event(account.did(), rows.rev)));
        for entry in repository.tree().entries() {
            events.push(rows.record(RESYNC, &entry.key, &repository.record(&entry.key)));
        }
    }
    if random.chance(1, 4) {
        events.push(rows.marker(IDENTITY, identity_event(account.did())));
    }
    if random.chance(1, 4) || account.status != AccountStatus::Active {
        events.push(rows.marker(ACCOUNT, account_event(account.did(), account.status)));
    }
    misrepresent(network, server, &rows, &mut events);
    events
}

/// The events of one account.
struct Rows<'a> {
    did: &'a str,
    rev: Tid,
}

impl Rows<'_> {
    /// A record that is there, and perhaps another one that is not.
    fn create(&self, key: &str, record: &[u8], random: &mut Random, out: &mut Vec<SegmentEvent>) {
        match random.below(8) {
            0 => {
                out.push(self.former(key));
                out.push(self.record(UPDATE, key, record));
            }
            1 => {
                let other = format!("{key}-former");
                out.push(self.record(CREATE, &other, record));
                out.push(self.record(CREATE, key, record));
                out.push(self.record(DELETE, &other, &[]));
            }
            2 => {
                out.push(self.record(CREATE, key, record));
                out.push(self.record(CREATE, key, record));
            }
            _ => out.push(self.record(CREATE, key, record)),
        }
    }

    /// The creation of a record that is replaced later.
    fn former(&self, key: &str) -> SegmentEvent {
        let event = self.record(CREATE, key, &[]);
        let payload = other_record(&event.collection, &event.rkey);
        SegmentEvent { payload, ..event }
    }

    fn record(&self, kind: u8, key: &str, payload: &[u8]) -> SegmentEvent {
        let (collection, rkey) = key.split_once('/').expect("the path of a record");
        SegmentEvent {
            kind,
            did: self.did.to_owned(),
            collection: collection.to_owned(),
            rkey: rkey.to_owned(),
            rev: self.rev.to_string(),
            payload: payload.to_vec(),
            ..SegmentEvent::default()
        }
    }

    fn marker(&self, kind: u8, payload: Vec<u8>) -> SegmentEvent {
        SegmentEvent { kind, did: self.did.to_owned(), payload, ..SegmentEvent::default() }
    }
}

/// Adds, replaces and removes records that the account has not changed.
fn misrepresent(
    network: &NetworkState,
    server: Server,
    rows: &Rows<'_>,
    events: &mut Vec<SegmentEvent>,
) {
    let inject = |fault| network.faults.inject(server, fault).is_some();
    let last = events.iter().rposition(|event| matches!(event.kind, CREATE | UPDATE | RESYNC));
    let Some(last) = last else { return };
    if inject(Fault::WithheldRecord) {
        let (collection, rkey) = (events[last].collection.clone(), events[last].rkey.clone());
        events.retain(|event| (&event.collection, &event.rkey) != (&collection, &rkey));
    } else if inject(Fault::AlteredRecord) {
        let SegmentEvent { collection, rkey, .. } = &events[last];
        events[last].payload = other_record(collection, rkey);
    } else if inject(Fault::ForgedRecord) {
        let key = format!("{}/{FORGED_KEY}", events[last].collection);
        let forged = rows.record(CREATE, &key, &events[last].payload);
        events.push(forged);
    }
}

/// Another record than the one at a path.
fn other_record(collection: &str, rkey: &str) -> Vec<u8> {
    let mut out = Encoder::new();
    out.map(2).text("text").text(&format!("not the record {rkey}"));
    out.text("$type").text(collection);
    out.into_bytes()
}

fn account_event(did: &str, status: AccountStatus) -> Vec<u8> {
    let mut out = Encoder::new();
    let status = status.as_str();
    out.map(4 + usize::from(status.is_some()));
    out.text("did").text(did).text("seq").integer(1).text("time").text(&datetime(START_MICROS));
    out.text("active").boolean(status.is_none());
    if let Some(status) = status {
        out.text("status").text(status);
    }
    out.into_bytes()
}

fn identity_event(did: &str) -> Vec<u8> {
    let mut out = Encoder::new();
    out.map(3).text("did").text(did).text("seq").integer(1);
    out.text("time").text(&datetime(START_MICROS));
    out.into_bytes()
}

fn sync_event(did: &str, rev: Tid) -> Vec<u8> {
    let mut out = Encoder::new();
    out.map(5).text("did").text(did).text("rev").text(&rev.to_string());
    out.text("seq").integer(1).text("time").text(&datetime(START_MICROS));
    out.text("blocks").bytes(&[]);
    out.into_bytes()
}

const CREATE: u8 = 1;
const UPDATE: u8 = 2;
const DELETE: u8 = 3;
const IDENTITY: u8 = 4;
const ACCOUNT: u8 = 5;
const SYNC: u8 = 6;
const RESYNC: u8 = 7;

/// The record key of forged records, after all keys of accounts.
pub(super) const FORGED_KEY: &str = "zzzzzzzzzzzzz";
