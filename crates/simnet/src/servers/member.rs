//! An account of the network: what it has, who it says that it is, and how its host stands to it.

use atproto::event::{self, Event};
use atproto::plc::{AccountData, Operation, Service, UnsignedOperation, Update};
use codec::Cid;
use codec::car;

use super::told::{EventKind, EventSubject, Told};
use super::writing;
use crate::account::{Account, AccountHistory};
use crate::keys::{Curve, SigningKey};
use crate::random::{Random, Seed};
use crate::repository::Repository;
use crate::tid::datetime;

/// An account with all that servers keep of it.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) handle: String,
    /// The PDS, by its number.
    pub(super) host: usize,
    pub(super) status: AccountStatus,
    pub(super) repository: Repository,
    /// Its operations in the PLC directory.
    pub(super) log: Vec<Registered>,
    rotation_key: SigningKey,
    random: Random,
}

/// An operation, and when the directory took it.
#[derive(Clone, Debug)]
pub(super) struct Registered {
    pub(super) operation: Operation,
    pub(super) micros: u64,
}

/// What a host says of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountStatus {
    /// It is there.
    Active,
    /// The host has taken it down.
    TakenDown,
    /// The host has suspended it.
    Suspended,
    /// Its owner has put it to rest.
    Deactivated,
    /// It is gone for good.
    Deleted,
}

impl AccountStatus {
    /// The word of the protocol; none for an account that is there.
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

impl Member {
    /// The account with this number, which has joined at `micros` on the PDS at `endpoint`.
    pub(super) fn new(
        seed: u64,
        number: usize,
        records: usize,
        micros: u64,
        home: Home<'_>,
    ) -> Self {
        let seed = Seed::new(seed, &format!("member {number}"));
        let mut random = seed.stream(WRITES_STREAM);
        let rotation_key = SigningKey::generate(Curve::K256, &mut random);
        let account = Account::new(seed, AccountHistory::Full(records.max(1)), micros);
        let handle = handle(number);
        let data = AccountData {
            rotation_keys: vec![rotation_key.did_key()],
            verification_methods: [("atproto".to_owned(), account.key().did_key())].into(),
            also_known_as: vec![format!("at://{handle}")],
            services: [("atproto_pds".to_owned(), pds(FIRST_ENDPOINT))].into(),
        };
        let genesis = UnsignedOperation::Update(Update { data: data.clone(), prev: None });
        let genesis = sign(genesis, &rotation_key);
        let did = genesis.did().expect("a first operation makes a DID");
        let repository = account.with_did(did.as_str().to_owned()).open_repository();
        let first = Registered { operation: genesis, micros: micros - LIFE_MICROS };
        let mut member = Self {
            handle,
            host: home.number,
            status: AccountStatus::Active,
            repository,
            log: vec![first],
            rotation_key,
            random,
        };
        // The DID is of the seed alone; the port is not, and so the account has moved once.
        member.register(micros - LIFE_MICROS / 2, |data| {
            data.services.insert("atproto_pds".to_owned(), pds(home.endpoint));
        });
        member
    }

    pub(super) fn did(&self) -> &str {
        self.repository.account().did()
    }

    /// What is true of it by the directory; `None` behind a tombstone.
    pub(super) fn data(&self) -> Option<AccountData> {
        self.log.last().and_then(|last| last.operation.unsigned().to_data())
    }

    /// Has the directory take an operation that makes `change`.
    pub(super) fn register(&mut self, micros: u64, change: impl FnOnce(&mut AccountData)) {
        let Some(mut data) = self.data() else { return };
        change(&mut data);
        let prev = self.log.last().map(|last| last.operation.cid());
        self.append(UnsignedOperation::Update(Update { data, prev }), micros);
    }

    /// Has the directory take the last operation of all.
    pub(super) fn bury(&mut self, micros: u64) {
        if let Some(last) = self.log.last() {
            let prev = last.operation.cid();
            self.append(UnsignedOperation::Tombstone { prev }, micros);
        }
    }

    fn append(&mut self, operation: UnsignedOperation, micros: u64) {
        let operation = sign(operation, &self.rotation_key);
        let newest = self.log.last().map_or(0, |last| last.micros);
        // The directory tells times in milliseconds, and no two alike.
        let micros = micros.max(newest + 1000);
        self.log.push(Registered { operation, micros });
    }

    /// Signs with another key from now on, and says so to the directory.
    pub(super) fn rotate(&mut self, micros: u64) {
        let curve = self.repository.account().key().curve();
        let key = SigningKey::generate(curve, &mut self.random);
        let did_key = key.did_key();
        self.repository.change_key(key);
        self.register(micros, |data| {
            data.verification_methods.insert("atproto".to_owned(), did_key);
        });
    }

    /// Writes something at `micros` of the network's time; the event is of `now`.
    pub(super) fn write(&mut self, micros: u64, now: u64) -> Told {
        let writes = writing::writes(&self.repository, micros, &mut self.random);
        let rev = self.repository.account().tid(micros);
        let committed = self.repository.commit(&writes, rev);
        let postings = committed.ops.len() as u32;
        let subject = self.subject(EventKind::Commit, rev.to_string(), postings);
        Told::new(subject, now, |seq| committed.to_frame(seq, now))
    }

    /// The event that says where the repository is.
    pub(super) fn tell_sync(&self, now: u64) -> Told {
        let (head, rev) = (self.repository.head(), self.repository.rev().to_string());
        let car = archive(&[head.cid], &[(head.cid, &head.data)]);
        let (did, time) = (self.did(), datetime(now));
        Told::new(self.subject(EventKind::Sync, rev.clone(), 1), now, |seq| {
            let (car, rev, time) = (&car, &*rev, &*time);
            Event::Sync(event::Sync { seq, did, car, root: None, blocks: &[], rev, time })
                .to_frame()
        })
    }

    /// The event that says that something about the account's names or keys may have changed.
    pub(super) fn tell_identity(&self, now: u64) -> Told {
        let (did, time, handle) = (self.did(), datetime(now), Some(&*self.handle));
        Told::new(self.subject(EventKind::Identity, String::new(), 1), now, |seq| {
            Event::Identity(event::Identity { seq, did, time: &time, handle }).to_frame()
        })
    }

    /// The event that says how the host stands to the account.
    pub(super) fn tell_account(&self, now: u64) -> Told {
        let (did, time, status) = (self.did(), datetime(now), self.status.as_str());
        let active = self.status == AccountStatus::Active;
        Told::new(self.subject(EventKind::Account, String::new(), 1), now, |seq| {
            Event::Account(event::Account { seq, did, time: &time, active, status }).to_frame()
        })
    }

    fn subject(&self, kind: EventKind, rev: String, jetstream_events: u32) -> EventSubject {
        EventSubject { did: self.did().to_owned(), kind, rev, jetstream_events }
    }

    /// The blocks that prove what the repository has at `key`, and the record if there is one.
    pub(super) fn prove(&self, key: &str) -> Vec<u8> {
        let head = self.repository.head();
        let proof = self.repository.tree().covering_proof([key]);
        let record = self.repository.tree().get(key);
        let record = record.map(|cid| (cid, self.repository.record(key)));
        let mut blocks = vec![(head.cid, head.data.as_slice())];
        blocks.extend(proof.iter().map(|(cid, node)| (*cid, node.data.as_slice())));
        blocks.extend(record.iter().map(|(cid, data)| (*cid, data.as_slice())));
        archive(&[head.cid], &blocks)
    }

    /// The blocks of these names, in an archive without roots; `Err` has the first that there is not.
    pub(super) fn blocks(&self, names: &[Cid]) -> Result<Vec<u8>, Cid> {
        let blocks: Result<Vec<(Cid, Vec<u8>)>, Cid> =
            names.iter().map(|cid| Ok((*cid, self.block(cid).ok_or(*cid)?))).collect();
        let blocks = blocks?;
        let borrowed: Vec<(Cid, &[u8])> =
            blocks.iter().map(|(cid, data)| (*cid, &data[..])).collect();
        Ok(archive(&[], &borrowed))
    }

    fn block(&self, cid: &Cid) -> Option<Vec<u8>> {
        let head = self.repository.head();
        if head.cid == *cid {
            return Some(head.data.clone());
        }
        let tree = self.repository.tree();
        if let Some(node) = tree.nodes().find(|node| node.cid == *cid) {
            return Some(node.data.clone());
        }
        let entry = tree.entries().iter().find(|entry| entry.value == *cid)?;
        Some(self.repository.record(&entry.key))
    }

    /// Whether it has a record of this collection.
    pub(super) fn has_collection(&self, collection: &str) -> bool {
        let entries = self.repository.tree().entries();
        let first = entries.partition_point(|entry| &*entry.key < collection);
        let keys = entries[first..].iter().map(|entry| &entry.key);
        keys.take_while(|key| key.starts_with(collection))
            .any(|key| key.as_bytes().get(collection.len()) == Some(&b'/'))
    }
}

/// A PDS that an account is on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home<'a> {
    pub(super) number: usize,
    pub(super) endpoint: &'a str,
}

/// A service entry for a PDS.
pub(super) fn pds(endpoint: &str) -> Service {
    Service { kind: "AtprotoPersonalDataServer".to_owned(), endpoint: endpoint.to_owned() }
}

fn sign(operation: UnsignedOperation, key: &SigningKey) -> Operation {
    let signature = key.sign(&operation.to_bytes());
    operation.with_signature(signature)
}

/// An archive of these blocks.
pub(super) fn archive(roots: &[Cid], blocks: &[(Cid, &[u8])]) -> Vec<u8> {
    let mut car = car::Writer::new(Vec::new(), roots).expect(MEMORY);
    blocks.iter().for_each(|(cid, data)| car.block(cid, data).expect(MEMORY));
    car.into_inner()
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

/// Where every account was once.
const FIRST_ENDPOINT: &str = "https://pds.test";

/// How long before it joined the stream an account was made: four years.
const LIFE_MICROS: u64 = 4 * 365 * 86_400_000_000;

/// The stream number of an account's seed for what it writes; its other uses have others.
const WRITES_STREAM: u64 = 1 << 36;

/// Why writing an archive cannot fail here.
const MEMORY: &str = "writing to memory does not fail";
