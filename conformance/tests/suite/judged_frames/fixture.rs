//! Fixtures: an account that commits, frames rewritten and signed again, and a verifier with keys, states
//! and time.

use std::collections::HashMap;

use atproto::commit::{Commit as CommitObject, UnsignedCommit};
use atproto::event::{Action, Commit, Decoder, Event, Options, RepoOp, Sync};
use codec::car::Writer;
use codec::cid::Codec;
use codec::{Cid, CidRef};
use crypto::{CompressedKey, KeyCache};
use simnet::account::{Account, AccountHistory};
use simnet::keys::{Curve, SigningKey};
use simnet::random::Seed;
use simnet::record::{Collection, RecordPath};
use simnet::repository::{RecordWrite, Repository};
use verify::sync::{AccountState, Chain, Judge, Judged, MemoryState, Outcome, Policy, SyncEffect};

/// The strict policy with these changes.
pub(crate) fn policy(change: impl FnOnce(&mut Policy)) -> Policy {
    let mut policy = Policy::default();
    change(&mut policy);
    policy
}

/// A verifier with its stored states, known keys, and the time.
pub(crate) struct TestJudge {
    judge: Judge,
    pub(crate) state: MemoryState,
    pub(crate) keys: HashMap<String, CompressedKey>,
    pub(crate) now_micros: u64,
}

impl TestJudge {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            judge: Judge::new(policy, KeyCache::new(1 << 20, [7; 16])),
            state: MemoryState::new([8; 16]),
            keys: HashMap::new(),
            now_micros: LATER_MICROS,
        }
    }

    /// A verifier with the keys of these accounts.
    pub(crate) fn of<'a>(accounts: impl IntoIterator<Item = &'a Account>) -> Self {
        let mut judge = Self::new(Policy::default());
        accounts.into_iter().for_each(|account| judge.know(account));
        judge
    }

    pub(crate) fn know(&mut self, account: &Account) {
        let key = CompressedKey::from_did_key(&account.key().did_key()).unwrap();
        self.keys.insert(account.did().to_owned(), key);
    }

    pub(crate) fn judge<'j>(&'j mut self, frame: &'j [u8]) -> Judged<'j> {
        let Self { judge, state, keys, now_micros } = self;
        judge.judge(frame, &|did: &str| keys.get(did).copied(), state, *now_micros).unwrap()
    }

    pub(crate) fn judge_batch<'j>(&'j mut self, frames: &[&'j [u8]]) -> Vec<Judged<'j>> {
        let Self { judge, state, keys, now_micros } = self;
        judge.judge_batch(frames, &|did: &str| keys.get(did).copied(), state, *now_micros).unwrap()
    }

    /// The verdict on a frame as text.
    pub(crate) fn verdict(&mut self, frame: &[u8]) -> String {
        verdict(&self.judge(frame).outcome)
    }

    pub(crate) fn account(&self, did: &str) -> AccountState {
        self.state.get(did)
    }
}

/// An outcome as text: its kind, and the row and code of the rule.
pub(crate) fn verdict(outcome: &Outcome<'_>) -> String {
    match outcome {
        Outcome::Commit(_, Chain::Intact) => "intact".to_owned(),
        Outcome::Commit(_, Chain::FirstSeen) => "first".to_owned(),
        Outcome::Commit(_, Chain::StillDesynchronized) => "still desynchronized".to_owned(),
        Outcome::Commit(_, Chain::Broken(by)) => format!("broken {} {}", by.row(), by.code()),
        Outcome::Commit(_, Chain::Unproved(leniency)) => format!("unproved {leniency:?}"),
        Outcome::Sync(_, SyncEffect::Unchanged) => "sync unchanged".to_owned(),
        Outcome::Sync(_, SyncEffect::FirstSeen) => "sync first".to_owned(),
        Outcome::Sync(_, SyncEffect::Desynchronized) => "sync desynchronized".to_owned(),
        Outcome::Ignored(why) => format!("ignored {} {}", why.row(), why.code()),
        Outcome::Rejected(why) => format!("rejected {} {}", why.row(), why.code()),
        Outcome::Unjudged(event) => format!("unjudged {}", event.kind().unwrap_or("error")),
    }
}

/// An account with a repository, and the frames of its commits.
#[derive(Clone)]
pub(crate) struct Author {
    pub(crate) repository: Repository,
    micros: u64,
}

impl Author {
    /// An account with `records` records.
    pub(crate) fn new(number: u64, records: usize) -> Self {
        let seed = Seed::new(number, "judged frames");
        let account = Account::new(seed, AccountHistory::Full(records), JOINED_MICROS);
        Self { repository: account.open_repository(), micros: JOINED_MICROS }
    }

    /// The first of the accounts, from `number` on, that signs on K-256.
    pub(crate) fn on_k256(number: u64) -> Self {
        let authors = (number..).map(|number| Self::new(number, 60));
        let is_k256 = |author: &Self| author.key().curve() == Curve::K256;
        authors.into_iter().find(is_k256).unwrap()
    }

    pub(crate) fn account(&self) -> &Account {
        self.repository.account()
    }

    pub(crate) fn did(&self) -> &str {
        self.account().did()
    }

    pub(crate) fn key(&self) -> &SigningKey {
        self.account().key()
    }

    /// An unused path.
    pub(crate) fn new_path(&mut self) -> RecordPath {
        self.micros += 1_000;
        RecordPath { collection: Collection::Like, tid: self.account().tid(self.micros) }
    }

    /// The frame of a commit of these writes.
    pub(crate) fn commit(&mut self, writes: &[RecordWrite]) -> Vec<u8> {
        self.micros += 1_000;
        let rev = self.account().tid(self.micros);
        self.repository.commit(writes, rev).to_frame(1, self.micros)
    }

    /// The frame of a commit that creates a record.
    pub(crate) fn create(&mut self) -> Vec<u8> {
        let path = self.new_path();
        self.commit(&[RecordWrite { action: Action::Create, path }])
    }

    /// The frame of a commit that deletes the record at this index of the tree.
    pub(crate) fn delete(&mut self, place: usize) -> Vec<u8> {
        let path = self.path(place);
        self.commit(&[RecordWrite { action: Action::Delete, path }])
    }

    /// The path of the record at this index of the tree.
    pub(crate) fn path(&self, place: usize) -> RecordPath {
        let key = &self.repository.tree().entries()[place].key;
        self.repository.path(key).unwrap()
    }

    /// The frame of a `#sync` about the newest commit.
    pub(crate) fn sync(&self) -> Vec<u8> {
        let head = self.repository.head();
        let car = archive(Some(&head.cid), [(head.cid.as_cid_ref(), &head.data[..])]);
        let rev = self.repository.rev().to_string();
        sync_frame(self.did(), &rev, &car)
    }
}

/// A `#sync` with these fields.
pub(crate) fn sync_frame(did: &str, rev: &str, car: &[u8]) -> Vec<u8> {
    let sync = Sync { seq: 1, did, car, root: None, blocks: &[], rev, time: TIME };
    Event::Sync(sync).to_frame()
}

/// Rewrites the `#commit` in a frame.
pub(crate) fn rewritten(frame: &[u8], rewrite: impl FnOnce(Commit<'_>) -> Vec<u8>) -> Vec<u8> {
    match Decoder::new(Options::default()).decode(frame).unwrap() {
        Event::Commit(commit) => rewrite(commit),
        other => panic!("a {:?} is no #commit", other.kind()),
    }
}

/// The frame of a commit.
pub(crate) fn frame(commit: Commit<'_>) -> Vec<u8> {
    Event::Commit(commit).to_frame()
}

/// The frame of a commit whose operations are changed.
pub(crate) fn with_ops<'a>(
    commit: Commit<'a>,
    change: impl FnOnce(&mut Vec<RepoOp<'a>>),
) -> Vec<u8> {
    let mut ops = commit.ops.to_vec();
    change(&mut ops);
    frame(Commit { ops: &ops, ..commit })
}

/// The frame of a commit whose CAR slice holds other blocks.
pub(crate) fn with_blocks<'a>(
    commit: Commit<'a>,
    blocks: impl IntoIterator<Item = (CidRef<'a>, &'a [u8])>,
) -> Vec<u8> {
    let car = archive(Some(&commit.commit), blocks);
    frame(Commit { car: &car, ..commit })
}

/// The blocks of a commit with their CIDs.
pub(crate) fn blocks<'a>(commit: &Commit<'a>) -> impl Iterator<Item = (CidRef<'a>, &'a [u8])> {
    commit.blocks.iter().map(|block| (block.cid, block.data))
}

/// The commit object in a `#commit`.
pub(crate) fn object<'a>(commit: &Commit<'a>) -> CommitObject<'a> {
    let is_object = |block: &&(CidRef<'_>, &[u8])| block.0 == commit.commit.as_cid_ref();
    CommitObject::parse(blocks(commit).find(|block| is_object(&block)).unwrap().1).unwrap()
}

/// The frame of a commit with this block instead of its commit object.
pub(crate) fn with_object(commit: Commit<'_>, object: &[u8]) -> Vec<u8> {
    let root = Cid::of(Codec::DagCbor, object);
    let others = blocks(&commit).filter(|(cid, _)| *cid != commit.commit.as_cid_ref());
    let car = archive(Some(&root), others.chain([(root.as_cid_ref(), object)]));
    frame(Commit { commit: root, car: &car, ..commit })
}

/// The block of a commit object, signed.
pub(crate) fn sign(key: &SigningKey, unsigned: UnsignedCommit<'_>) -> Vec<u8> {
    unsigned.with_signature(&key.sign(&unsigned.to_bytes()))
}

/// The fields of a commit object, to be signed again.
pub(crate) fn unsigned<'a>(object: &CommitObject<'a>) -> UnsignedCommit<'a> {
    let CommitObject { did, rev, data, prev, .. } = *object;
    UnsignedCommit { did, rev, data, prev }
}

/// The signature r, n − s, which a verifier without the low-s rule accepts as well.
pub(crate) fn high_s_twin(curve: Curve, mut signature: [u8; 64]) -> [u8; 64] {
    let order: [u8; 32] = match curve {
        Curve::K256 => {
            *b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe\
            \xba\xae\xdc\xe6\xaf\x48\xa0\x3b\xbf\xd2\x5e\x8c\xd0\x36\x41\x41"
        }
        Curve::P256 => {
            *b"\xff\xff\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\
            \xbc\xe6\xfa\xad\xa7\x17\x9e\x84\xf3\xb9\xca\xc2\xfc\x63\x25\x51"
        }
    };
    let mut borrow = 0;
    for (s, n) in signature[32..].iter_mut().zip(order).rev() {
        let difference = i16::from(n) - i16::from(*s) - borrow;
        (*s, borrow) = (difference as u8, i16::from(difference < 0));
    }
    signature
}

/// An archive.
pub(crate) fn archive<'a>(
    root: Option<&Cid>,
    blocks: impl IntoIterator<Item = (CidRef<'a>, &'a [u8])>,
) -> Vec<u8> {
    let roots: Vec<Cid> = root.into_iter().copied().collect();
    let mut writer = Writer::new(Vec::new(), &roots).unwrap();
    for (cid, data) in blocks {
        writer.block(&cid.to_cid().unwrap(), data).unwrap();
    }
    writer.into_inner()
}

/// When the accounts joined: 2026-07-01.
pub(crate) const JOINED_MICROS: u64 = 1_782_864_000_000_000;

/// The time of verification: a day later.
pub(crate) const LATER_MICROS: u64 = JOINED_MICROS + 86_400_000_000;

pub(crate) const TIME: &str = "2026-07-01T12:00:00.000Z";
