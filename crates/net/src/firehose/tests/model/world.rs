//! The simulated network: accounts with signed histories, and the streams of hosts, whose events are known to
//! be genuine or forged.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

use atproto::commit::UnsignedCommit;
use atproto::event::{self, Action, Event, RepoOp};
use atproto::mst::reference;
use atproto::syntax::Tid;
use bytes::Bytes;
use codec::{Cid, car, cid::Codec};
use crypto::{CompressedKey, Curve, PublicKey, SecretKey};

use super::schedule::Step;

/// A key by its number: the keys of an account in their order, and [`FORGER`].
pub(super) type KeyNumber = u8;

/// The key of no account.
pub(super) const FORGER: KeyNumber = 99;

/// Maximum number of accounts.
pub(super) const MAX_ACCOUNTS: usize = 4;

/// Number of commits in a prepared history.
const HISTORY_LEN: usize = 256;

/// An event, with the truth about it.
#[derive(Clone, Debug)]
pub(super) struct SimEvent {
    pub(super) seq: Option<u64>,
    pub(super) frame: Bytes,
    pub(super) account: Option<usize>,
    pub(super) content: Content,
    /// Whether the host sent it at a wrong place, so that no cursor covers it.
    pub(super) was_reordered: bool,
}

/// The truth about an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Commit(Signed),
    Sync(Signed),
    Identity,
    Account { is_active: bool },
    Info,
    Garbage,
}

/// A signed commit object, and the event's statements about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signed {
    pub(super) rev: Tid,
    pub(super) since: Option<Tid>,
    pub(super) prev_data: Option<Cid>,
    pub(super) data: Cid,
    pub(super) commit: Cid,
    pub(super) signer: KeyNumber,
    pub(super) fault: Option<Fault>,
}

/// How a forged event differs from the commit that it pretends to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A block was altered.
    Altered,
    /// The commit object is of another account.
    OtherAccount,
    /// Marked as too big.
    TooBig,
    /// An operation is left out.
    MissingOp,
    /// It starts from another tree than the commit before.
    PrevData,
    /// It names another revision before it, which only breaks the chain.
    Since,
}

impl Fault {
    pub(super) const ALL: [Self; 6] = [
        Self::Altered,
        Self::OtherAccount,
        Self::TooBig,
        Self::MissingOp,
        Self::PrevData,
        Self::Since,
    ];
}

/// An account as it is now.
#[derive(Clone, Debug)]
pub(super) struct SimAccount {
    pub(super) did: String,
    /// Number of commits so far.
    pub(super) commits: usize,
    pub(super) key: KeyNumber,
    /// Whether its own server calls it active.
    pub(super) is_active: bool,
    /// Whether the followed PDS hosts it.
    pub(super) is_hosted: bool,
}

/// All accounts, and the streams of all hosts.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) accounts: Vec<SimAccount>,
    /// The events by host, in order.
    pub(super) streams: Vec<Vec<SimEvent>>,
}

impl World {
    pub(super) fn new(accounts: usize, hosts: usize) -> Self {
        let account = |number: usize| SimAccount {
            did: HISTORIES[number].did.clone(),
            commits: 0,
            key: 0,
            is_active: true,
            is_hosted: true,
        };
        Self { accounts: (0..accounts).map(account).collect(), streams: vec![vec![]; hosts] }
    }

    /// The account with this DID.
    pub(super) fn account(&self, did: &str) -> Option<usize> {
        self.accounts.iter().position(|account| account.did == did)
    }

    /// Makes a commit without an event. Its index in the history, unless the history is at its end.
    pub(super) fn commit(&mut self, account: usize) -> Option<usize> {
        let commits = &mut self.accounts[account].commits;
        *commits += 1;
        (*commits < HISTORY_LEN).then_some(*commits - 1)
    }

    /// Appends the event of a commit, signed with `signer`, to the streams of `hosts`.
    pub(super) fn publish_commit(
        &mut self,
        account: usize,
        index: usize,
        signer: KeyNumber,
        fault: Option<Fault>,
        host: Option<usize>,
    ) {
        let content = Content::Commit(signed(account, index, signer, fault));
        self.publish(account, content, host, |seq| {
            commit_frame(account, index, signer, fault, seq)
        });
    }

    /// Appends a `#sync` to a commit.
    pub(super) fn publish_sync(&mut self, account: usize, index: usize, signer: KeyNumber) {
        let content = Content::Sync(signed(account, index, signer, None));
        self.publish(account, content, None, |seq| sync_frame(account, index, signer, seq));
    }

    /// Appends an `#identity`.
    pub(super) fn publish_identity(&mut self, account: usize) {
        let did = &*HISTORIES[account].did;
        self.publish(account, Content::Identity, None, |seq| {
            Event::Identity(event::Identity { seq, did, time: TIME, handle: None }).to_frame()
        });
    }

    /// Appends an `#account` to one stream, or to all.
    pub(super) fn publish_status(&mut self, account: usize, active: bool, host: Option<usize>) {
        let did = &*HISTORIES[account].did;
        self.publish(account, Content::Account { is_active: active }, host, |seq| {
            Event::Account(event::Account { seq, did, time: TIME, active, status: None }).to_frame()
        });
    }

    /// Appends bytes that are not a frame, or an `#info`, to one stream.
    pub(super) fn publish_other(&mut self, host: usize, is_info: bool) {
        let (content, frame) = if is_info {
            let info = event::Info { name: "Notice", message: None };
            (Content::Info, Event::Info(info).to_frame())
        } else {
            (Content::Garbage, b"garbage".to_vec())
        };
        let seq = None;
        let account = None;
        let was_reordered = false;
        let frame = frame.into();
        self.streams[host].push(SimEvent { seq, frame, account, content, was_reordered });
    }

    fn publish(
        &mut self,
        account: usize,
        content: Content,
        host: Option<usize>,
        frame: impl Fn(i64) -> Vec<u8>,
    ) {
        for (number, stream) in self.streams.iter_mut().enumerate() {
            if host.is_some_and(|host| host != number) {
                continue;
            }
            let last = stream.iter().rev().find_map(|event| event.seq);
            // Relays skip numbers.
            let seq = last.map_or(100, |last| last + 1 + u64::from(last % 7 == 0));
            stream.push(SimEvent {
                seq: Some(seq),
                frame: frame(seq as i64).into(),
                account: Some(account),
                content: content.clone(),
                was_reordered: false,
            });
        }
    }
}

impl World {
    /// A step of the accounts and their servers.
    pub(super) fn step(&mut self, step: Step) {
        let (accounts, hosts) = (self.accounts.len(), self.streams.len());
        let host = |host: usize| Some(host % hosts);
        match step {
            Step::Commit(account) => {
                let (account, key) = (account % accounts, self.accounts[account % accounts].key);
                if let Some(index) = self.commit(account) {
                    self.publish_commit(account, index, key, None, None);
                }
            }
            Step::MissedCommit(account) => drop(self.commit(account % accounts)),
            Step::Sync(account) => {
                let (account, key) = (account % accounts, self.accounts[account % accounts].key);
                if let Some(index) = self.commit(account) {
                    self.publish_sync(account, index, key);
                }
            }
            Step::Forge { account, fault, host: at } => {
                let (account, key) = (account % accounts, self.accounts[account % accounts].key);
                if fault != Fault::Since {
                    let next = self.accounts[account].commits;
                    self.publish_commit(account, next, key, Some(fault), host(at));
                } else if let Some(index) = self.commit(account) {
                    // The commit itself is genuine.
                    for number in 0..hosts {
                        let fault = (Some(number) == host(at)).then_some(fault);
                        self.publish_commit(account, index, key, fault, Some(number));
                    }
                }
            }
            Step::ForgeSignature { account, is_old_key, host: at } => {
                let account = account % accounts;
                let SimAccount { key, commits, .. } = self.accounts[account];
                if !is_old_key {
                    self.publish_commit(account, commits, FORGER, None, host(at));
                } else if let Some(index) = self.commit(account) {
                    // Signed before the rotation, sent after it.
                    self.publish_commit(account, index, key.saturating_sub(1), None, None);
                }
            }
            Step::Replay { account, back, host: at } => {
                let account = account % accounts;
                if let Some(index) = self.accounts[account].commits.checked_sub(1 + back) {
                    let key = self.accounts[account].key;
                    self.publish_commit(account, index, key, None, host(at));
                }
            }
            Step::RotateKey { account, is_announced } => {
                let account = account % accounts;
                self.accounts[account].key += 1;
                if is_announced {
                    self.publish_identity(account);
                }
            }
            Step::SetActive { account, is_active } => {
                let account = account % accounts;
                self.accounts[account].is_active = is_active;
                self.publish_status(account, is_active, None);
            }
            Step::ClaimActive { account, is_active, host: at } => {
                self.publish_status(account % accounts, is_active, host(at));
            }
            Step::Identity(account) => self.publish_identity(account % accounts),
            Step::Migrate(account) => {
                let is_hosted = &mut self.accounts[account % accounts].is_hosted;
                *is_hosted = !*is_hosted;
            }
            Step::Other { host, is_info } => self.publish_other(host % hosts, is_info),
            _ => {}
        }
    }
}

/// The public key with this number.
pub(super) fn public_key(account: usize, key: KeyNumber) -> PublicKey {
    static KEYS: Mutex<BTreeMap<(usize, KeyNumber), PublicKey>> = Mutex::new(BTreeMap::new());
    let mut keys = KEYS.lock().unwrap();
    let of = || secret_key(account, key).public_key();
    keys.entry((account, key)).or_insert_with(of).clone()
}

/// The same, compressed.
pub(super) fn compressed_key(account: usize, key: KeyNumber) -> CompressedKey {
    *public_key(account, key).as_compressed()
}

fn secret_key(account: usize, key: KeyNumber) -> SecretKey {
    let number = account as u8 * 40 + key % 40 + 1;
    SecretKey::from_bytes(Curve::K256, &[number; 32]).unwrap()
}

/// The CID of a commit object.
pub(super) fn commit_cid(account: usize, index: usize, signer: KeyNumber) -> Cid {
    signed_block(account, index, signer).0
}

/// The revision and the tree of a commit.
pub(super) fn rev_and_data(account: usize, index: usize) -> (Tid, Cid) {
    let commit = &HISTORIES[account].commits[index];
    (commit.rev, commit.data)
}

/// The repository at a commit, as an archive.
pub(super) fn archive(account: usize, index: usize, signer: KeyNumber) -> Vec<u8> {
    let commit = &HISTORIES[account].commits[index];
    let (root, block) = &*signed_block(account, index, signer);
    write_car(*root, &[(*root, block.clone())], &[&commit.nodes, &commit.records])
}

/// The prepared history of an account.
struct History {
    did: String,
    commits: Vec<PreparedCommit>,
}

struct PreparedCommit {
    rev: Tid,
    data: Cid,
    nodes: Blocks,
    /// All records of the tree.
    records: Blocks,
    ops: Vec<PreparedOp>,
}

type Blocks = Vec<(Cid, Vec<u8>)>;

struct PreparedOp {
    action: Action,
    path: String,
    cid: Option<Cid>,
    prev: Option<Cid>,
}

static HISTORIES: LazyLock<Vec<History>> =
    LazyLock::new(|| (0..MAX_ACCOUNTS).map(History::new).collect());

impl History {
    /// Creates, updates and deletes a few records in turn. Odd accounts have a host of their own.
    fn new(account: usize) -> Self {
        let letter = char::from(b'a' + account as u8);
        let did = match account % 2 {
            0 => format!("did:plc:{}{letter}", "a".repeat(23)),
            _ => format!("did:web:{letter}.test"),
        };
        let mut records = BTreeMap::<String, (Cid, Vec<u8>)>::new();
        let commits =
            (0..HISTORY_LEN).map(|index| PreparedCommit::new(account, index, &mut records));
        Self { did, commits: commits.collect() }
    }
}

impl PreparedCommit {
    fn new(account: usize, index: usize, records: &mut BTreeMap<String, (Cid, Vec<u8>)>) -> Self {
        let paths =
            [format!("app.test.item/{}", index % 5), format!("app.test.like/{}", index % 3)];
        let count = if index % 4 == 1 { 2 } else { 1 };
        let mut ops = Vec::new();
        for path in paths.into_iter().take(count) {
            let is_deletion = index % 6 == 5 && records.contains_key(&path);
            let block = [b"\xa1\x61n\x19", &(256 + index as u16).to_be_bytes()[..]].concat();
            let cid = Cid::of(Codec::DagCbor, &block);
            let prev = if is_deletion {
                records.remove(&path)
            } else {
                records.insert(path.clone(), (cid, block))
            };
            let prev = prev.map(|(cid, _)| cid);
            let action = match (is_deletion, prev) {
                (true, _) => Action::Delete,
                (false, Some(_)) => Action::Update,
                (false, None) => Action::Create,
            };
            ops.push(PreparedOp { action, path, cid: (!is_deletion).then_some(cid), prev });
        }
        let keyed: Vec<(&String, Cid)> =
            records.iter().map(|(path, (cid, _))| (path, *cid)).collect();
        let tree = reference::build(&keyed);
        let nodes = tree.nodes().iter().map(|(cid, block)| (*cid, block.clone())).collect();
        let rev = Tid::new(BEGAN_MICROS + index as u64 * 1_000_000, account as u16);
        Self { rev, data: tree.root(), nodes, records: records.values().cloned().collect(), ops }
    }
}

/// A signed commit object. Signatures are kept for all schedules.
fn signed_block(account: usize, index: usize, signer: KeyNumber) -> Arc<(Cid, Vec<u8>)> {
    type Signatures = BTreeMap<(usize, usize, KeyNumber), Arc<(Cid, Vec<u8>)>>;
    static SIGNED: Mutex<Signatures> = Mutex::new(BTreeMap::new());
    let mut signed = SIGNED.lock().unwrap();
    let sign = || {
        let History { did, commits } = &HISTORIES[account];
        let (rev, data) = (commits[index].rev.to_string(), commits[index].data);
        let unsigned = UnsignedCommit { did, rev: &rev, data, prev: None };
        let block =
            unsigned.with_signature(&secret_key(account, signer).sign(&unsigned.to_bytes()));
        Arc::new((Cid::of(Codec::DagCbor, &block), block))
    };
    signed.entry((account, index, signer)).or_insert_with(sign).clone()
}

fn signed(account: usize, index: usize, signer: KeyNumber, fault: Option<Fault>) -> Signed {
    let commits = &HISTORIES[account].commits;
    let before = index.checked_sub(1).map(|before| &commits[before]);
    let PreparedCommit { rev, data, .. } = commits[index];
    let (mut since, mut prev_data) = (before.map(|of| of.rev), before.map(|of| of.data));
    match fault {
        Some(Fault::Since) => since = Some(Tid::new(BEGAN_MICROS - 1, 0)),
        Some(Fault::PrevData) => prev_data = Some(Cid::of(Codec::DagCbor, b"another tree")),
        _ => {}
    }
    let commit = commit_cid(account, index, signer);
    Signed { rev, since, prev_data, data, commit, signer, fault }
}

fn commit_frame(
    account: usize,
    index: usize,
    signer: KeyNumber,
    fault: Option<Fault>,
    seq: i64,
) -> Vec<u8> {
    let Signed { rev, since, prev_data, .. } = signed(account, index, signer, fault);
    let of =
        if fault == Some(Fault::OtherAccount) { (account + 1) % MAX_ACCOUNTS } else { account };
    let commit = &HISTORIES[account].commits[index];
    let (root, block) = &*signed_block(of, index, signer);
    let mut blocks = vec![(*root, block.clone())];
    let cids: Vec<Cid> = commit.ops.iter().filter_map(|op| op.cid).collect();
    blocks.extend(commit.records.iter().filter(|(cid, _)| cids.contains(cid)).cloned());
    if fault == Some(Fault::Altered) {
        *blocks[0].1.last_mut().unwrap() ^= 1;
    }
    let car = write_car(*root, &blocks, &[&commit.nodes]);
    let (rev, since) = (rev.to_string(), since.map(|since| since.to_string()));
    let op = |op: &'static PreparedOp| RepoOp {
        action: op.action,
        path: &op.path,
        cid: op.cid.as_ref().map(Cid::as_cid_ref),
        prev: op.prev.as_ref().map(Cid::as_cid_ref),
        record: None,
    };
    let left_out = usize::from(fault == Some(Fault::MissingOp));
    let ops: Vec<RepoOp<'_>> =
        HISTORIES[account].commits[index].ops.iter().skip(left_out).map(op).collect();
    Event::Commit(event::Commit {
        seq,
        repo: &HISTORIES[account].did,
        commit: *root,
        rev: &rev,
        since: since.as_deref(),
        car: &car,
        root: None,
        blocks: &[],
        ops: &ops,
        prev_data,
        time: TIME,
        blobs: None,
        rebase: None,
        too_big: (fault == Some(Fault::TooBig)).then_some(true),
    })
    .to_frame()
}

fn sync_frame(account: usize, index: usize, signer: KeyNumber, seq: i64) -> Vec<u8> {
    let (root, block) = &*signed_block(account, index, signer);
    let car = write_car(*root, &[(*root, block.clone())], &[]);
    let (did, rev) = (&*HISTORIES[account].did, HISTORIES[account].commits[index].rev.to_string());
    let sync = event::Sync { seq, did, car: &car, root: None, blocks: &[], rev: &rev, time: TIME };
    Event::Sync(sync).to_frame()
}

fn write_car(root: Cid, first: &[(Cid, Vec<u8>)], others: &[&Blocks]) -> Vec<u8> {
    let mut writer = car::Writer::new(Vec::new(), &[root]).unwrap();
    for (cid, block) in first.iter().chain(others.iter().copied().flatten()) {
        writer.block(cid, block).unwrap();
    }
    writer.into_inner()
}

const TIME: &str = "2024-01-01T00:00:00Z";

/// 2024-01-01T00:00:00Z.
const BEGAN_MICROS: u64 = 1_704_067_200_000_000;
