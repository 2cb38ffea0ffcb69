//! An account of the network: its repository, its identity in the PLC directory, and its events.

use std::borrow::Cow;
use std::sync::Arc;

use atproto::event::{self, Action, Event};
use atproto::plc::{AccountData, Operation, Service, UnsignedOperation, Update};
use atproto::syntax::Tid;
use codec::Cid;
use codec::cid::Codec;

use super::event::{EventKind, EventSubject, NetworkEvent};
use crate::account::{Account, AccountHistory};
use crate::blob_account::BlobAccount;
use crate::block::archive;
use crate::hostile;
use crate::keys::{Curve, SigningKey};
use crate::random::{Random, Seed};
use crate::record::{Collection, RecordPath};
use crate::repository::{RecordWrite, Repository, record_proof};
use crate::time::{DAY_MICROS, START_MICROS, datetime, later};
use crate::tree::TreeEntry;

/// An account and the state that its servers keep.
#[derive(Debug)]
pub(super) struct HostedAccount {
    pub(super) handle: String,
    /// The number of its PDS.
    pub(super) host: usize,
    pub(super) status: AccountStatus,
    pub(super) repository: HostedRepository,
    /// Its operations in the PLC directory.
    pub(super) log: Vec<LoggedOperation>,
    rotation_key: SigningKey,
    random: Random,
}

/// The repository of an account: kept, or built from the seed whenever it is asked for.
#[derive(Debug)]
pub(super) enum HostedRepository {
    Kept(Box<Repository>),
    /// As it was when the account joined.
    Derived(Account),
}

impl HostedRepository {
    /// The account.
    pub(super) fn account(&self) -> &Account {
        match self {
            Self::Kept(repository) => repository.account(),
            Self::Derived(account) => account,
        }
    }

    /// The newest revision.
    pub(super) fn rev(&self) -> Tid {
        match self {
            Self::Kept(repository) => repository.rev(),
            Self::Derived(account) => first_rev(account),
        }
    }

    /// The CID that lists state of the newest commit. That of a derived repository is of no commit, as the repository would have
    /// to be built for it; readers of lists need the revision only.
    pub(super) fn stated_head(&self) -> Cid {
        match self {
            Self::Kept(repository) => repository.head().cid,
            Self::Derived(account) => stated_head(account.did()),
        }
    }

    /// The repository.
    pub(super) fn get(&self) -> Cow<'_, Repository> {
        match self {
            Self::Kept(repository) => Cow::Borrowed(repository),
            Self::Derived(account) => Cow::Owned(account.open_repository()),
        }
    }

    /// The repository, which is kept from now on.
    pub(super) fn keep(&mut self) -> &mut Repository {
        if let Self::Derived(account) = self {
            *self = Self::Kept(Box::new(account.open_repository()));
        }
        match self {
            Self::Kept(repository) => repository,
            Self::Derived(_) => unreachable!("it is kept since the line above"),
        }
    }
}

/// The revision of an account that has written nothing since it joined.
fn first_rev(account: &Account) -> Tid {
    account.tid(account.joined_micros())
}

/// The CID that lists state of a repository that is not built.
pub(super) fn stated_head(did: &str) -> Cid {
    Cid::of(Codec::DagCbor, did.as_bytes())
}

/// An operation and the time of its registration.
#[derive(Clone, Debug)]
pub(super) struct LoggedOperation {
    pub(super) operation: Operation,
    pub(super) micros: u64,
}

/// The status of an account on its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountStatus {
    /// Active.
    Active,
    /// Taken down by the host.
    TakenDown,
    /// Suspended by the host.
    Suspended,
    /// Deactivated by its owner.
    Deactivated,
    /// Deleted.
    Deleted,
}

impl AccountStatus {
    /// The name in the protocol; `None` for an active account.
    pub fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Active => None,
            Self::TakenDown => Some("takendown"),
            Self::Suspended => Some("suspended"),
            Self::Deactivated => Some("deactivated"),
            Self::Deleted => Some("deleted"),
        }
    }
}

/// An account at its creation.
struct NewAccount {
    handle: String,
    account: Account,
    genesis: Operation,
    rotation_key: SigningKey,
    random: Random,
}

impl NewAccount {
    fn new(seed: u64, number: usize, records: usize, micros: u64) -> Self {
        let seed = Seed::new(seed, &format!("member {number}"));
        let mut random = seed.stream(WRITES_STREAM);
        let rotation_key = SigningKey::generate(Curve::K256, &mut random);
        let account = Account::new(seed, AccountHistory::Full(records.max(1)), micros).with_blobs();
        let handle = handle(number);
        let data = AccountData {
            rotation_keys: vec![rotation_key.did_key()],
            verification_methods: [("atproto".to_owned(), account.key().did_key())].into(),
            also_known_as: vec![format!("at://{handle}")],
            services: [("atproto_pds".to_owned(), pds(FIRST_ENDPOINT))].into(),
        };
        let genesis = UnsignedOperation::Update(Update { data, prev: None });
        let genesis = sign(genesis, &rotation_key);
        let did = genesis.did().expect("a genesis operation has a DID");
        let account = account.with_did(did.as_str().to_owned());
        Self { handle, account, genesis, rotation_key, random }
    }
}

/// The stored part of an account that is derived from the seed: it has joined at the start of the stream, and nothing of it
/// has changed since.
#[derive(Clone, Debug)]
pub(super) struct DerivedAccount {
    pub(super) did: Arc<str>,
    pub(super) rev: Tid,
    /// The number of its PDS.
    pub(super) host: usize,
}

impl DerivedAccount {
    /// The account of this number, and its handle.
    pub(super) fn new(seed: u64, number: usize, records: usize, host: usize) -> (Self, String) {
        let new = NewAccount::new(seed, number, records, START_MICROS);
        let (did, rev) = (new.account.did().into(), first_rev(&new.account));
        (Self { did, rev, host }, new.handle)
    }

    /// The times of its operations in the directory.
    pub(super) const LOG_MICROS: [u64; 2] = log_micros(START_MICROS);
}

/// The times of the first two operations of an account that joined at `micros`.
const fn log_micros(micros: u64) -> [u64; 2] {
    [micros - LIFE_MICROS, micros - LIFE_MICROS / 2]
}

impl HostedAccount {
    /// The account of this number, which joined at `micros` on the PDS `home`. Its repository is derived.
    pub(super) fn new(
        seed: u64,
        number: usize,
        records: usize,
        micros: u64,
        home: HomePds<'_>,
    ) -> Self {
        let new = NewAccount::new(seed, number, records, micros);
        let [created, moved] = log_micros(micros);
        let first = LoggedOperation { operation: new.genesis, micros: created };
        let mut account = Self {
            handle: new.handle,
            host: home.number,
            status: AccountStatus::Active,
            repository: HostedRepository::Derived(new.account),
            log: vec![first],
            rotation_key: new.rotation_key,
            random: new.random,
        };
        // The DID depends on the seed only, not on the port of the PDS, so the account has moved once.
        account.register(moved, |data| {
            data.services.insert("atproto_pds".to_owned(), pds(home.endpoint));
        });
        account
    }

    /// The same account with its repository kept.
    pub(super) fn with_repository(mut self) -> Self {
        self.repository.keep();
        self
    }

    pub(super) fn did(&self) -> &str {
        self.repository.account().did()
    }

    /// Its data in the directory; `None` after a tombstone.
    pub(super) fn data(&self) -> Option<AccountData> {
        self.log.last().and_then(|last| last.operation.unsigned().to_data())
    }

    /// Registers an operation that applies `change`.
    pub(super) fn register(&mut self, micros: u64, change: impl FnOnce(&mut AccountData)) {
        let Some(mut data) = self.data() else { return };
        change(&mut data);
        let prev = self.log.last().map(|last| last.operation.cid());
        self.append(UnsignedOperation::Update(Update { data, prev }), micros);
    }

    /// Registers a tombstone.
    pub(super) fn tombstone(&mut self, micros: u64) {
        if let Some(last) = self.log.last() {
            let prev = last.operation.cid();
            self.append(UnsignedOperation::Tombstone { prev }, micros);
        }
    }

    fn append(&mut self, operation: UnsignedOperation, micros: u64) {
        let operation = sign(operation, &self.rotation_key);
        let newest = self.log.last().map_or(0, |last| last.micros);
        // Times in the directory are in milliseconds and all differ.
        let micros = micros.max(newest + 1000);
        self.log.push(LoggedOperation { operation, micros });
    }

    /// Replaces the signing key and registers the new one.
    pub(super) fn rotate(&mut self, micros: u64) {
        let did_key = self.change_key();
        self.register(micros, |data| {
            data.verification_methods.insert("atproto".to_owned(), did_key);
        });
    }

    /// Replaces the signing key, and returns the new one as a `did:key`.
    pub(super) fn change_key(&mut self) -> String {
        let curve = self.repository.account().key().curve();
        let key = SigningKey::generate(curve, &mut self.random);
        let did_key = key.did_key();
        self.repository.keep().change_key(key);
        did_key
    }

    /// Commits random writes at the simulated time `micros`; the event has the time `now`.
    pub(super) fn write(&mut self, micros: u64, now: u64) -> NetworkEvent {
        let repository = self.repository.keep();
        let writes = writes(repository, micros, &mut self.random);
        let rev = repository.account().tid(micros);
        let committed = repository.commit(&writes, rev);
        let jetstream_events = committed.ops.len() as u32;
        let subject = self.subject(EventKind::Commit, rev.to_string(), jetstream_events);
        NetworkEvent::new(subject, now, |seq| committed.to_frame(seq, now))
    }

    /// A `#sync` event of the current commit.
    pub(super) fn sync_event(&self, now: u64) -> NetworkEvent {
        let repository = self.repository.get();
        let (head, rev) = (repository.head(), repository.rev().to_string());
        let car = archive(&[head.cid], [(&head.cid, &head.data[..])]);
        let (did, time) = (self.did(), datetime(now));
        NetworkEvent::new(self.subject(EventKind::Sync, rev.clone(), 1), now, |seq| {
            let car = &car;
            let rev = &*rev;
            let time = &*time;
            Event::Sync(event::Sync { seq, did, car, root: None, blocks: &[], rev, time })
                .to_frame()
        })
    }

    /// An `#identity` event.
    pub(super) fn identity_event(&self, now: u64) -> NetworkEvent {
        let did = self.did();
        let time = datetime(now);
        let handle = Some(&*self.handle);
        NetworkEvent::new(self.subject(EventKind::Identity, String::new(), 1), now, |seq| {
            Event::Identity(event::Identity { seq, did, time: &time, handle }).to_frame()
        })
    }

    /// An `#account` event with the current status.
    pub(super) fn account_event(&self, now: u64) -> NetworkEvent {
        let did = self.did();
        let time = datetime(now);
        let status = self.status.as_str();
        let active = self.status == AccountStatus::Active;
        NetworkEvent::new(self.subject(EventKind::Account, String::new(), 1), now, |seq| {
            Event::Account(event::Account { seq, did, time: &time, active, status }).to_frame()
        })
    }

    fn subject(&self, kind: EventKind, rev: String, jetstream_events: u32) -> EventSubject {
        EventSubject { did: self.did().to_owned(), kind, rev, jetstream_events }
    }

    /// An archive that proves the record at `key`, or its absence.
    pub(super) fn record_proof(&self, key: &str) -> Vec<u8> {
        let repository = self.repository.get();
        let tree = repository.tree();
        let record = tree.get(key).map(|cid| (cid, repository.record(key)));
        record_proof(repository.head(), tree, key, record)
    }

    /// An archive of the blocks `cids` without roots; `Err` has the first missing CID.
    pub(super) fn blocks(&self, cids: &[Cid]) -> Result<Vec<u8>, Cid> {
        let repository = self.repository.get();
        let blocks: Result<Vec<(Cid, Vec<u8>)>, Cid> =
            cids.iter().map(|cid| Ok((*cid, block(&repository, cid).ok_or(*cid)?))).collect();
        let blocks = blocks?;
        Ok(archive(&[], blocks.iter().map(|(cid, data)| (cid, &data[..]))))
    }

    /// Whether it has a record of this collection.
    pub(super) fn has_collection(&self, collection: &str) -> bool {
        let repository = self.repository.get();
        let entries = repository.tree().entries();
        let first = entries.partition_point(|entry| &*entry.key < collection);
        let keys = entries[first..].iter().map(|entry| &entry.key);
        keys.take_while(|key| key.starts_with(collection))
            .any(|key| key.as_bytes().get(collection.len()) == Some(&b'/'))
    }
}

fn block(repository: &Repository, cid: &Cid) -> Option<Vec<u8>> {
    let head = repository.head();
    if head.cid == *cid {
        return Some(head.data.clone());
    }
    let tree = repository.tree();
    if let Some(node) = tree.nodes().find(|node| node.cid == *cid) {
        return Some(node.data.clone());
    }
    let entry = tree.entries().iter().find(|entry| entry.value == *cid)?;
    Some(repository.record(&entry.key))
}

/// An account of a hostile case or an attack, or with given blobs. Its DID is not derived from operations, so the
/// directory has a document of it but no log.
#[derive(Clone, Debug, Default)]
pub(super) struct GuestAccount {
    /// The signing key, as a `did:key`.
    pub(super) signing_key: String,
    /// The repository archive of the case, if it is one.
    pub(super) archive: Option<Vec<u8>>,
    /// The number of its PDS.
    pub(super) pds: usize,
    /// Another name of its PDS, under which it sends the archive slowly.
    pub(super) slow_host: Option<String>,
    /// The account whose blobs it has.
    pub(super) blobs: Option<Arc<BlobAccount>>,
}

impl GuestAccount {
    /// The account of a case.
    pub(super) fn of(case: &hostile::Case) -> Self {
        let archive = (case.kind == hostile::InputKind::Repo).then(|| case.bytes.clone());
        Self { signing_key: case.signing_key.clone(), archive, ..Self::default() }
    }
}

/// The events of a case; none if it is of a repository.
pub(super) fn guest_events(case: &hostile::Case, now: u64) -> Vec<NetworkEvent> {
    if case.kind != hostile::InputKind::Frames {
        return Vec::new();
    }
    let frames = atproto::corpus::read(&case.bytes).expect("a file of the hostile set");
    let subject = EventSubject {
        did: case.did.clone(),
        kind: EventKind::Hostile,
        rev: String::new(),
        jetstream_events: 0,
    };
    frames.iter().map(|frame| NetworkEvent::from_bytes(subject.clone(), now, frame)).collect()
}

/// The PDS of an account.
#[derive(Clone, Copy, Debug)]
pub(super) struct HomePds<'a> {
    pub(super) number: usize,
    pub(super) endpoint: &'a str,
}

/// The service entry of a PDS.
pub(super) fn pds(endpoint: &str) -> Service {
    Service { kind: "AtprotoPersonalDataServer".to_owned(), endpoint: endpoint.to_owned() }
}

fn sign(operation: UnsignedOperation, key: &SigningKey) -> Operation {
    let signature = key.sign(&operation.to_bytes());
    operation.with_signature(signature)
}

/// `ada.test`, `ben.test`, …, `ada1.test`, …
fn handle(number: usize) -> String {
    let name = NAMES[number % NAMES.len()];
    match number / NAMES.len() {
        0 => format!("{name}.test"),
        round => format!("{name}{round}.test"),
    }
}

const NAMES: [&str; 20] = [
    "ada", "ben", "cleo", "dora", "emil", "fay", "gus", "hana", "ivo", "june", "kofi", "lena",
    "milo", "nora", "otto", "pia", "quin", "rosa", "sami", "tove",
];

/// The first PDS of every account.
const FIRST_ENDPOINT: &str = "https://pds.test";

/// The time from the creation of an account to the stream: four years.
const LIFE_MICROS: u64 = 4 * 365 * DAY_MICROS;

/// The stream number of an account's seed for its writes; its other uses have others.
const WRITES_STREAM: u64 = 1 << 36;

/// The writes of the commit at `micros`: mostly one, sometimes several.
fn writes(repository: &Repository, micros: u64, random: &mut Random) -> Vec<RecordWrite> {
    let tid = repository.account().tid(micros - random.between(100, 900));
    let updates = update(repository, random);
    match random.below(100) {
        0..72 => vec![create(*random.pick(&CREATED), tid)],
        72..75 => GATED_POST.map(|collection| create(collection, tid)).into(),
        75..77 => {
            (0..random.between(2, 20)).map(|at| create(Collection::Like, later(tid, at))).collect()
        }
        77..82 => updates,
        // Deletes keep repositories from growing without limit.
        _ => delete(repository, random).unwrap_or(updates),
    }
}

fn create(collection: Collection, tid: Tid) -> RecordWrite {
    RecordWrite { action: Action::Create, path: RecordPath { collection, tid } }
}

/// An update of the profile, or of any record.
fn update(repository: &Repository, random: &mut Random) -> Vec<RecordWrite> {
    let entries = repository.tree().entries();
    let entry = if random.chance(1, 2) { &entries[0] } else { random.pick(entries) };
    vec![RecordWrite { action: Action::Update, path: path(repository, entry) }]
}

/// The deletion of any record but the profile.
fn delete(repository: &Repository, random: &mut Random) -> Option<Vec<RecordWrite>> {
    let entries = &repository.tree().entries()[1..];
    let path = path(repository, (!entries.is_empty()).then(|| random.pick(entries))?);
    Some(vec![RecordWrite { action: Action::Delete, path }])
}

fn path(repository: &Repository, entry: &TreeEntry) -> RecordPath {
    repository.path(&entry.key).expect("a key of the tree")
}

/// The collections of created records, in proportion to their entries here.
const CREATED: [Collection; 12] = [
    Collection::Like,
    Collection::Like,
    Collection::Like,
    Collection::Like,
    Collection::Like,
    Collection::Like,
    Collection::Post,
    Collection::Post,
    Collection::Repost,
    Collection::Follow,
    Collection::Block,
    Collection::Document,
];

const GATED_POST: [Collection; 3] =
    [Collection::Post, Collection::Postgate, Collection::Threadgate];
