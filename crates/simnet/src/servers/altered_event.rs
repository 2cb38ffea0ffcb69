//! Events as a faulty server adds them to its log.

use std::sync::Arc;

use atproto::event::{Action, BlockIndex, Commit, Decoder, Event, Options, RepoOp, Values};
use codec::car;
use codec::cid::{Cid, Codec};

use super::event::{EventKind, NetworkEvent};
use super::event_log::EventLog;
use super::fault::{Fault, Faults};
use super::spec::Server;
use crate::block::archive;

/// Appends an event to the log of a server, altered by the enabled faults.
pub(super) fn append(faults: &Faults, server: Server, log: &EventLog, event: &Arc<NetworkEvent>) {
    if faults.none_enabled() {
        return log.append(event);
    }
    let altered = altered(faults, server, event);
    let event = altered.as_ref().unwrap_or(event);
    log.append(event);
    if event.subject.kind == EventKind::Commit
        && faults.inject(server, Fault::RepeatedCommit).is_some()
    {
        log.append(event);
    }
}

fn altered(
    faults: &Faults,
    server: Server,
    event: &Arc<NetworkEvent>,
) -> Option<Arc<NetworkEvent>> {
    let frame = event.to_frame(1);
    let mut options = Options::default();
    options.values = Values::ValidateOnly;
    let mut decoder = Decoder::new(options);
    let decoded = decoder.decode(&frame).ok()?;
    let applies =
        |(fault, applies): &(Fault, bool)| *applies && faults.inject(server, *fault).is_some();
    let (fault, _) = applicable(&decoded).into_iter().find(applies)?;
    let to_frame = |seq| with_fault(&decoded, fault, seq);
    let altered = NetworkEvent::new(event.subject.clone(), event.micros, to_frame);
    Some(Arc::new(altered))
}

/// The faults of events, and whether they alter this one.
fn applicable(event: &Event<'_>) -> Vec<(Fault, bool)> {
    match event {
        Event::Commit(commit) => {
            let has = |actions: &[Action]| commit.ops.iter().any(|op| actions.contains(&op.action));
            vec![
                (Fault::NoPrevData, true),
                (Fault::WrongPrevData, true),
                (Fault::WrongSince, true),
                (Fault::OpWithoutPrev, has(&[Action::Update, Action::Delete])),
                (Fault::HiddenOp, !commit.ops.is_empty()),
                (Fault::EventWithoutNode, true),
                (Fault::EventWithoutRecord, has(&[Action::Create, Action::Update])),
                (Fault::WrongHash, true),
                (Fault::TooBig, true),
                (Fault::WrongTime, true),
            ]
        }
        Event::Sync(_) => vec![(Fault::LargeSync, true)],
        Event::Identity(identity) => vec![(Fault::MalformedHandle, identity.handle.is_some())],
        Event::Account(account) => {
            vec![(Fault::ContradictoryAccount, account.active), (Fault::OppositeAccount, true)]
        }
        _ => Vec::new(),
    }
}

fn with_fault(event: &Event<'_>, fault: Fault, seq: i64) -> Vec<u8> {
    match event {
        Event::Commit(commit) => commit_with_fault(&Commit { seq, ..*commit }, fault),
        Event::Sync(sync) => {
            let filler = vec![0; MAX_SYNC_BYTES];
            let filler_cid = Cid::of(Codec::Raw, &filler);
            let root = sync.root.and_then(|root| root.to_cid()).expect("a root");
            let commit = sync.blocks.iter().find(|block| block.cid == root.as_cid_ref());
            let commit = commit.expect("the block of the root").data;
            let car = archive(&[root], [(&root, commit), (&filler_cid, &filler[..])]);
            Event::Sync(atproto::event::Sync { seq, car: &car, ..*sync }).to_frame()
        }
        Event::Identity(identity) => {
            let handle = Some("no handle");
            Event::Identity(atproto::event::Identity { seq, handle, ..*identity }).to_frame()
        }
        Event::Account(account) => {
            let (active, status) = match fault {
                Fault::ContradictoryAccount => (true, Some("takendown")),
                _ => (!account.active, None),
            };
            Event::Account(atproto::event::Account { seq, active, status, ..*account }).to_frame()
        }
        other => other.to_frame(),
    }
}

fn commit_with_fault(commit: &Commit<'_>, fault: Fault) -> Vec<u8> {
    let other = Cid::of(Codec::DagCbor, b"another tree");
    let mut ops: Vec<RepoOp<'_>> = commit.ops.to_vec();
    let mut car = commit.car.to_vec();
    let mut altered = *commit;
    match fault {
        Fault::NoPrevData => altered.prev_data = None,
        Fault::WrongPrevData => altered.prev_data = Some(other),
        Fault::WrongSince => altered.since = Some("2222222222222"),
        Fault::OpWithoutPrev => ops.iter_mut().for_each(|op| op.prev = None),
        Fault::HiddenOp => drop(ops.pop()),
        Fault::EventWithoutNode => {
            let block = BlockIndex::new(commit.blocks).get_sha256(&commit.commit);
            let block = block.expect("the block of the commit");
            let data = atproto::commit::Commit::parse(block.data).expect("a commit").data;
            car = without(commit, data);
        }
        Fault::EventWithoutRecord => {
            let record = commit.ops.iter().find_map(|op| op.cid?.to_cid());
            car = without(commit, record.expect("a create or an update"));
        }
        Fault::WrongHash => *car.last_mut().expect("a block") ^= 1,
        Fault::TooBig => altered.too_big = Some(true),
        Fault::WrongTime => altered.time = "at noon",
        _ => {}
    }
    altered.ops = &ops;
    altered.car = &car;
    Event::Commit(altered).to_frame()
}

/// The archive of a commit without a block.
fn without(commit: &Commit<'_>, cid: Cid) -> Vec<u8> {
    let mut car = car::Writer::new(Vec::new(), &[commit.commit]).expect(crate::block::IN_MEMORY);
    for block in commit.blocks.iter().filter(|block| block.cid != cid.as_cid_ref()) {
        let cid = block.cid.to_cid().expect("a CID of AT Protocol");
        car.block(&cid, block.data).expect(crate::block::IN_MEMORY);
    }
    car.into_inner()
}

/// The limit of the lexicon.
const MAX_SYNC_BYTES: usize = 10_000;

/// The frame with another time.
pub(super) fn with_other_time(frame: &[u8]) -> Option<Vec<u8>> {
    let mut decoder = Decoder::new(Options::default());
    Some(match decoder.decode(frame).ok()? {
        Event::Commit(commit) => Event::Commit(Commit { time: OTHER_TIME, ..commit }).to_frame(),
        Event::Sync(sync) => {
            Event::Sync(atproto::event::Sync { time: OTHER_TIME, ..sync }).to_frame()
        }
        Event::Identity(identity) => {
            Event::Identity(atproto::event::Identity { time: OTHER_TIME, ..identity }).to_frame()
        }
        Event::Account(account) => {
            Event::Account(atproto::event::Account { time: OTHER_TIME, ..account }).to_frame()
        }
        _ => return None,
    })
}

const OTHER_TIME: &str = "2026-01-01T00:00:00.000Z";

/// The sequence number of a frame.
pub(super) fn seq(frame: &[u8]) -> Option<i64> {
    match Decoder::new(Options::default()).decode(frame).ok()? {
        Event::Commit(commit) => Some(commit.seq),
        Event::Sync(sync) => Some(sync.seq),
        Event::Identity(identity) => Some(identity.seq),
        Event::Account(account) => Some(account.seq),
        _ => None,
    }
}

/// The frame with another sequence number.
pub(super) fn with_seq(frame: &[u8], seq: i64) -> Option<Vec<u8>> {
    atproto::event::renumbered(frame, seq)
}
