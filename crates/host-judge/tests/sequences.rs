//! Made sequences of events: a valid one is never accused, and each mutation is accused by its code.
//!
//! The generator is the oracle: it makes the events from the rules of the specification, without the judge, and knows which rule a
//! mutation breaks.

use std::collections::{BTreeSet, HashMap};

use atproto::event::{
    Account as AccountEvent, Action, Commit, Decoder, Event, Identity, Options, Sync, renumbered,
};
use codec::car;
use codec::cid::{Cid, Codec};
use crypto::CompressedKey;
use simnet::account::{Account, AccountHistory};
use simnet::keys::SigningKey;
use simnet::random::{Random, Seed};
use simnet::record::{Collection, RecordPath};
use simnet::repository::{RecordWrite, Repository};
use simnet::time::START_MICROS;
use wireproof_host_judge::{Arrival, Keys, Kind, Stream, judge_stream};

/// An event of a made sequence.
#[derive(Clone, Debug)]
struct Made {
    seq: i64,
    frame: Vec<u8>,
    did: String,
    kind: MadeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MadeKind {
    Commit,
    Sync,
    Identity,
    Active,
    Inactive,
}

/// A made sequence, and the keys of its accounts.
#[derive(Clone, Debug)]
struct Sequence {
    events: Vec<Made>,
    keys: Keys,
    /// A `#sync` of the first commit of every account.
    first_syncs: HashMap<String, Vec<u8>>,
}

const ACCOUNTS: usize = 3;
const EVENTS: usize = 18;

/// Makes a valid sequence.
fn make(number: u64) -> Sequence {
    let seed = Seed::new(number, "sequences");
    let mut random = seed.stream(0);
    let mut repositories: Vec<Repository> = (0..ACCOUNTS)
        .map(|account| {
            let seed = Seed::new(number, &format!("account {account}"));
            Account::new(seed, AccountHistory::Full(5), START_MICROS).open_repository()
        })
        .collect();
    let mut sequence =
        Sequence { events: Vec::new(), keys: Keys::default(), first_syncs: HashMap::new() };
    for repository in &repositories {
        add_key(&mut sequence.keys, repository);
        sequence.first_syncs.insert(did(repository), sync(repository, 1));
    }
    let (mut micros, mut seq) = (START_MICROS + 1_000_000, random.between(1, 1000) as i64);
    while sequence.events.len() < EVENTS {
        let repository = &mut repositories[random.below(ACCOUNTS as u64) as usize];
        micros += random.between(1_000, 50_000);
        let made = match random.below(20) {
            0 => vec![(MadeKind::Identity, identity(repository))],
            1 => vec![(MadeKind::Sync, sync(repository, 1))],
            2 => vec![
                (MadeKind::Inactive, account(repository, false, Some("deactivated"))),
                (MadeKind::Active, account(repository, true, None)),
                (MadeKind::Sync, sync(repository, 1)),
            ],
            3 => {
                // A change that was not announced is resynced.
                commit(repository, &mut random, micros);
                micros += 1_000;
                vec![(MadeKind::Sync, sync(repository, 1))]
            }
            4 => {
                let key = SigningKey::generate(repository.account().key().curve(), &mut random);
                repository.change_key(key);
                add_key(&mut sequence.keys, repository);
                vec![(MadeKind::Identity, identity(repository))]
            }
            _ => vec![(MadeKind::Commit, commit(repository, &mut random, micros))],
        };
        for (kind, frame) in made {
            seq += random.between(1, 3) as i64;
            let frame = renumbered(&frame, seq).unwrap();
            sequence.events.push(Made { seq, frame, did: did(repository), kind });
        }
    }
    sequence
}

/// The newest key first.
fn add_key(keys: &mut Keys, repository: &Repository) {
    let key = CompressedKey::from_did_key(&repository.account().key().did_key()).unwrap();
    keys.keys.entry(did(repository)).or_default().insert(0, key);
}

fn did(repository: &Repository) -> String {
    repository.account().did().to_owned()
}

fn commit(repository: &mut Repository, random: &mut Random, micros: u64) -> Vec<u8> {
    let rev = repository.account().tid(micros);
    let entry = &repository.tree().entries()[0];
    let profile = repository.path(&entry.key).unwrap();
    let like = RecordPath { collection: Collection::Like, tid: rev };
    let writes = match random.below(4) {
        0 => vec![RecordWrite { action: Action::Update, path: profile }],
        1 => {
            let post = RecordPath { collection: Collection::Post, tid: rev };
            vec![like, post].into_iter().map(create).collect()
        }
        _ => vec![create(like)],
    };
    repository.commit(&writes, rev).to_frame(1, micros)
}

fn create(path: RecordPath) -> RecordWrite {
    RecordWrite { action: Action::Create, path }
}

fn sync(repository: &Repository, seq: i64) -> Vec<u8> {
    let head = repository.head();
    let mut car = car::Writer::new(Vec::new(), &[head.cid]).unwrap();
    car.block(&head.cid, &head.data).unwrap();
    let (car, rev, did) = (car.into_inner(), repository.rev().to_string(), did(repository));
    Event::Sync(Sync { seq, did: &did, car: &car, root: None, blocks: &[], rev: &rev, time: TIME })
        .to_frame()
}

fn identity(repository: &Repository) -> Vec<u8> {
    let handle = Some("ada.test");
    Event::Identity(Identity { seq: 1, did: repository.account().did(), time: TIME, handle })
        .to_frame()
}

fn account(repository: &Repository, active: bool, status: Option<&str>) -> Vec<u8> {
    let did = repository.account().did();
    Event::Account(AccountEvent { seq: 1, did, time: TIME, active, status }).to_frame()
}

const TIME: &str = "2026-07-01T00:00:00.000Z";
/// The time of arrival: one hour after the first event.
const NOW: u64 = START_MICROS + 3_600_000_000;

fn arrivals(events: &[Made]) -> Vec<Arrival> {
    events.iter().map(|made| arrival(&made.frame)).collect()
}

fn arrival(frame: &[u8]) -> Arrival {
    Arrival { frame: Some(frame.to_vec().into()), at_micros: NOW, connection: 0 }
}

/// The codes of violations.
fn codes(live: &[Arrival], replay: Option<&[Arrival]>, keys: &Keys) -> BTreeSet<&'static str> {
    let judgement = judge_stream(&Stream { oldest: &[], live, replay }, keys);
    let violations = judgement.findings.iter().filter(|found| found.kind == Kind::Violation);
    violations.map(|found| found.code).collect()
}

/// A frame with its event changed.
fn changed(frame: &[u8], change: impl FnOnce(Event<'_>) -> Vec<u8>) -> Vec<u8> {
    let mut decoder = Decoder::new(Options::default());
    let event = decoder.decode(frame).unwrap();
    change(event)
}

fn changed_commit(frame: &[u8], change: impl FnOnce(&mut Commit<'_>)) -> Vec<u8> {
    changed(frame, |event| {
        let Event::Commit(mut commit) = event else { panic!("a commit") };
        change(&mut commit);
        Event::Commit(commit).to_frame()
    })
}

impl Sequence {
    /// The index of an event of this kind after the first quarter.
    fn find(&self, kind: MadeKind) -> Option<usize> {
        let start = EVENTS / 4;
        (start..self.events.len()).find(|at| self.events[*at].kind == kind)
    }

    /// A commit that directly follows a commit of its account, and is directly followed by one: the indices of both.
    fn chained(&self) -> Option<(usize, usize)> {
        (1..self.events.len()).find_map(|at| {
            let made = &self.events[at];
            let is_same = |other: &&usize| self.events[**other].did == made.did;
            let before: Vec<usize> = (0..at).collect();
            let before = before.iter().rev().find(is_same)?;
            let after: Vec<usize> = (at + 1..self.events.len()).collect();
            let after = *after.iter().find(is_same)?;
            let are_commits =
                [*before, at, after].iter().all(|at| self.events[*at].kind == MadeKind::Commit);
            are_commits.then_some((at, after))
        })
    }
}

/// The arrivals of a mutated sequence, its replay if it matters, and its keys.
type Mutated = (Vec<Arrival>, Option<Vec<Arrival>>, Keys);

/// A mutation; `None` if the sequence has no event for it.
type Mutation = fn(&Sequence) -> Option<Mutated>;

fn with_frame(made: &Sequence, at: usize, frame: Vec<u8>) -> Option<Mutated> {
    let mut events = made.events.clone();
    events[at].frame = frame;
    Some((arrivals(&events), None, made.keys.clone()))
}

fn with_commit(made: &Sequence, change: impl FnOnce(&mut Commit<'_>)) -> Option<Mutated> {
    let (at, _) = made.chained()?;
    with_frame(made, at, changed_commit(&made.events[at].frame, change))
}

/// The sequence with a frame between two events.
fn inserted(made: &Sequence, after: usize, frame: &[u8]) -> Option<Mutated> {
    let mut live = Vec::new();
    for (at, made) in made.events.iter().enumerate() {
        // Every number twice as high, so that there is room.
        live.push(arrival(&renumbered(&made.frame, made.seq * 2)?));
        if at == after {
            let frame = renumbered(frame, made.seq * 2 + 1).unwrap_or_else(|| frame.to_vec());
            live.push(arrival(&frame));
        }
    }
    Some((live, None, made.keys.clone()))
}

const MUTATIONS: &[(&str, Mutation)] = &[
    ("event/since", |made| {
        let (at, _) = made.chained()?;
        let mut events = made.events.clone();
        events.remove(at);
        Some((arrivals(&events), None, made.keys.clone()))
    }),
    ("event/since", |made| with_commit(made, |commit| commit.since = Some("2222222222222"))),
    ("event/prev-data-missing", |made| with_commit(made, |commit| commit.prev_data = None)),
    ("event/prev-data", |made| {
        let other = Cid::of(Codec::DagCbor, b"another tree");
        with_commit(made, |commit| commit.prev_data = Some(other))
    }),
    ("event/inversion", |made| with_commit(made, |commit| commit.ops = &commit.ops[1..])),
    ("event/too-big", |made| with_commit(made, |commit| commit.too_big = Some(true))),
    ("event/rebase", |made| with_commit(made, |commit| commit.rebase = Some(true))),
    ("event/time", |made| with_commit(made, |commit| commit.time = "noon")),
    ("event/rev-mismatch", |made| {
        // A revision of the past that is newer than the last one.
        let (at, _) = made.chained()?;
        let rev = atproto::syntax::Tid::new(NOW, 1).to_string();
        let frame = changed(&made.events[at].frame, |event| {
            let Event::Commit(commit) = event else { panic!("a commit") };
            Event::Commit(Commit { rev: &rev, ..commit }).to_frame()
        });
        with_frame(made, at, frame)
    }),
    ("event/future-rev", |made| {
        let (at, _) = made.chained()?;
        let rev = atproto::syntax::Tid::new(NOW + 600_000_000, 1).to_string();
        let frame = changed(&made.events[at].frame, |event| {
            let Event::Commit(commit) = event else { panic!("a commit") };
            Event::Commit(Commit { rev: &rev, ..commit }).to_frame()
        });
        with_frame(made, at, frame)
    }),
    ("event/commit-cid", |made| {
        let other = Cid::of(Codec::DagCbor, b"another commit");
        with_commit(made, |commit| commit.commit = other)
    }),
    ("event/duplicate-path", |made| {
        let (at, _) = made.chained()?;
        let frame = changed(&made.events[at].frame, |event| {
            let Event::Commit(commit) = event else { panic!("a commit") };
            let ops = [commit.ops, commit.ops].concat();
            Event::Commit(Commit { ops: &ops, ..commit }).to_frame()
        });
        with_frame(made, at, frame)
    }),
    ("car/hash", |made| {
        let (at, _) = made.chained()?;
        let frame = changed(&made.events[at].frame, |event| {
            let Event::Commit(commit) = event else { panic!("a commit") };
            let mut car = commit.car.to_vec();
            *car.last_mut().unwrap() ^= 1;
            Event::Commit(Commit { car: &car, ..commit }).to_frame()
        });
        with_frame(made, at, frame)
    }),
    ("signature/wrong", |made| {
        let at = made.find(MadeKind::Commit)?;
        let other = made.events.iter().find(|other| other.did != made.events[at].did)?;
        let mut keys = made.keys.clone();
        let foreign = keys.keys[&other.did].clone();
        keys.keys.insert(made.events[at].did.clone(), foreign);
        Some((arrivals(&made.events), None, keys))
    }),
    ("event/stale-rev", |made| {
        let (at, _) = made.chained()?;
        inserted(made, at, &made.events[at].frame)
    }),
    ("sync/stale-rev", |made| {
        let (at, _) = made.chained()?;
        inserted(made, at, &made.first_syncs[&made.events[at].did])
    }),
    ("account/inactive-commit", |made| {
        let (at, _) = made.chained()?;
        let did = &made.events[at].did;
        let (active, status) = (false, Some("takendown"));
        let event = Event::Account(AccountEvent { seq: 1, did, time: TIME, active, status });
        inserted(made, at, &event.to_frame())
    }),
    ("account/contradiction", |made| {
        let did = &made.events[EVENTS / 2].did;
        let (active, status) = (true, Some("suspended"));
        let event = Event::Account(AccountEvent { seq: 1, did, time: TIME, active, status });
        inserted(made, EVENTS / 2, &event.to_frame())
    }),
    ("event/handle", |made| {
        let did = &made.events[EVENTS / 2].did;
        let event =
            Event::Identity(Identity { seq: 1, did, time: TIME, handle: Some("no handle") });
        inserted(made, EVENTS / 2, &event.to_frame())
    }),
    ("sync/limit", |made| {
        let at = made.find(MadeKind::Sync)?;
        let frame = changed(&made.events[at].frame, |event| {
            let Event::Sync(sync) = event else { panic!("a sync") };
            let filler = vec![0; 10_000];
            let cid = Cid::of(Codec::Raw, &filler);
            let root = sync.root.unwrap().to_cid().unwrap();
            let mut car = car::Writer::new(Vec::new(), &[root]).unwrap();
            car.block(&root, sync.blocks[0].data).unwrap();
            car.block(&cid, &filler).unwrap();
            let car = car.into_inner();
            Event::Sync(Sync { car: &car, ..sync }).to_frame()
        });
        with_frame(made, at, frame)
    }),
    ("event/host", |made| {
        let at = made.find(MadeKind::Commit)?;
        let mut keys = made.keys.clone();
        keys.elsewhere.insert(made.events[at].did.clone(), START_MICROS);
        Some((arrivals(&made.events), None, keys))
    }),
    ("seq/repeated", |made| {
        let mut live = arrivals(&made.events);
        live.insert(EVENTS / 2, live[EVENTS / 2].clone());
        Some((live, None, made.keys.clone()))
    }),
    ("seq/regressed", |made| {
        let mut live = arrivals(&made.events);
        live.swap(EVENTS / 2, EVENTS / 2 + 1);
        Some((live, None, made.keys.clone()))
    }),
    ("seq/reused", |made| {
        let at = made.find(MadeKind::Identity)?;
        (made.events[at - 1].kind != MadeKind::Identity).then_some(())?;
        let frame = renumbered(&made.events[at].frame, made.events[at - 1].seq)?;
        with_frame(made, at, frame)
    }),
    ("seq/reset", |made| {
        let mut live = arrivals(&made.events);
        let event = renumbered(&made.events[made.find(MadeKind::Identity)?].frame, 1)?;
        live.push(Arrival { connection: 1, ..arrival(&event) });
        (made.events[0].seq > 1).then_some((live, None, made.keys.clone()))
    }),
    ("frame/text", |made| {
        let mut live = arrivals(&made.events);
        live.insert(EVENTS / 2, Arrival { frame: None, ..live[0].clone() });
        Some((live, None, made.keys.clone()))
    }),
    ("frame/cbor", |made| inserted(made, EVENTS / 2, b"\xff\x00")),
    ("frame/limit", |made| inserted(made, EVENTS / 2, &vec![b' '; 5_000_001])),
    ("stream/lost-event", |made| {
        let (at, _) = made.chained()?;
        let mut events = made.events.clone();
        events.remove(at);
        Some((arrivals(&events), Some(arrivals(&made.events)), made.keys.clone()))
    }),
    ("replay/missing", |made| {
        let (at, _) = made.chained()?;
        let mut events = made.events.clone();
        events.remove(at);
        Some((arrivals(&made.events), Some(arrivals(&events)), made.keys.clone()))
    }),
    ("replay/differs", |made| {
        let (at, _) = made.chained()?;
        let mut events = made.events.clone();
        events[at].frame = changed_commit(&events[at].frame, |commit| commit.time = TIME_AGAIN);
        Some((arrivals(&made.events), Some(arrivals(&events)), made.keys.clone()))
    }),
];

const TIME_AGAIN: &str = "2026-07-01T00:00:01.000Z";
const VALID: u64 = 700;
const OF_MUTATION: usize = 60;

#[test]
fn a_valid_sequence_is_never_accused() {
    for number in 0..VALID {
        let made = make(number);
        let live = arrivals(&made.events);
        let none = BTreeSet::new();
        assert_eq!(codes(&live, None, &made.keys), none, "{number}: {made:#?}");
        assert_eq!(codes(&live, Some(&live), &made.keys), none, "{number}");
        // A replay may begin with the event at the cursor, or with the next one, and go on.
        let (part, rest) = (&live[..EVENTS / 2], &live[1..]);
        assert_eq!(codes(part, Some(rest), &made.keys), none, "{number}");
        let relay = Keys { is_relay: true, ..made.keys.clone() };
        assert_eq!(codes(&live, None, &relay), none, "{number}");
        // A second connection repeats the events after its cursor.
        let again =
            live[EVENTS / 2..].iter().map(|arrival| Arrival { connection: 1, ..arrival.clone() });
        let both: Vec<Arrival> = live.iter().cloned().chain(again).collect();
        assert_eq!(codes(&both, None, &made.keys), none, "{number}");
    }
}

#[test]
fn every_mutation_is_accused_by_its_code_alone() {
    let mut cases = 0;
    for (place, (code, mutate)) in MUTATIONS.iter().enumerate() {
        let (mut made, mut number) = (0, 10_000 * (place as u64 + 1));
        while made < OF_MUTATION {
            number += 1;
            let Some((live, replay, keys)) = mutate(&make(number)) else { continue };
            let found = codes(&live, replay.as_deref(), &keys);
            assert_eq!(found, [*code].into(), "mutation {place}, sequence {number}");
            made += 1;
            cases += 1;
        }
    }
    assert!(cases >= 1_800, "{cases} cases");
}

#[test]
fn a_gap_in_the_stream_of_a_relay_is_a_note() {
    let made = (0..).map(make).find(|made| made.chained().is_some()).unwrap();
    let (at, _) = made.chained().unwrap();
    let mut events = made.events.clone();
    events.remove(at);
    let keys = Keys { is_relay: true, ..made.keys.clone() };
    assert_eq!(codes(&arrivals(&events), None, &keys), BTreeSet::new());
}
