//! Writing a repository: records are staged, committed together, and exported.
//!
//! ```text
//! create, update, put, delete ──> staged ── prepare(rev) ──> PreparedCommit ── sign ──> finish ──> WrittenCommit
//!                                   └─ discard                                                      │
//!                                                         #commit frame, #sync frame, CAR slice <───┘
//! ```
//!
//! The private key stays with the caller, who signs bytes, here or in a key management service; the
//! clock too: the revision is an argument.
//!
//! Sources: the repository specification, version 3, and the sync specification, version 1.1.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;

use codec::car;
use codec::cid::Codec;
use codec::{AnyCid, Cid};

use super::{ExportError, Options, RepoError, Repository};
use crate::commit::UnsignedCommit;
use crate::data_model::{self, DataError};
use crate::event::{self, Action, Commit, Event, RepoOp, Sync};
use crate::mst::{Tree, TreeError};
use crate::syntax::{Did, DidBuf, RepoPath, SyntaxError, Tid};

/// The repository of one account, held in memory: its tree, its records, and the changes since the last
/// commit.
///
/// ```
/// use wireproof::atproto::event::{Decoder, Event};
/// use wireproof::atproto::repo::RepositoryWriter;
/// use wireproof::atproto::syntax::{Did, Tid};
///
/// let mut repository = RepositoryWriter::new(Did::parse("did:plc:wq4aajammjtxdomz3e23667t")?);
/// let path = "app.test.note/3jzfcijpj2z2a";
/// repository.create(path, b"\xa1\x65$type\x6dapp.test.note")?;
///
/// let rev = Tid::new(1_700_000_000_000_000, 1);
/// let commit = repository.commit(rev, |_message| [1; 64])?; // sign with the account's key here
/// let frame = commit.to_frame(1, "2023-11-14T22:13:20Z")?;
/// let mut decoder = Decoder::new(Default::default());
/// assert!(matches!(decoder.decode(&frame)?, Event::Commit(commit) if commit.ops[0].path == path));
///
/// let export: Vec<u8> = repository.export(Vec::new())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RepositoryWriter {
    did: DidBuf,
    tree: Tree,
    records: RecordStore,
    /// Paths changed since the last commit, with their records there at that time.
    staged: BTreeMap<Box<str>, Option<AnyCid>>,
    head: Option<Head>,
}

/// The last commit.
#[derive(Clone, Debug)]
struct Head {
    cid: Cid,
    rev: Tid,
    data: Cid,
    block: Vec<u8>,
}

impl RepositoryWriter {
    /// A repository without records and without a commit.
    pub fn new(did: Did<'_>) -> Self {
        Self {
            did: did.into(),
            tree: Tree::empty(),
            records: RecordStore::default(),
            staged: BTreeMap::new(),
            head: None,
        }
    }

    /// The repository of an export, to continue it. Copies every record; verify the export first, for
    /// example with `verify::repository`: signatures are not checked here.
    ///
    /// # Errors
    /// If the tree is not canonical, a record or node is missing, or the DID or revision of the commit
    /// is malformed.
    pub fn from_repository(repository: &Repository<'_>) -> Result<Self, WriteError> {
        let commit = repository.commit();
        let did = Did::parse(commit.did)?;
        let rev = Tid::parse(commit.rev)?;
        let (mut entries, mut records) = (Vec::new(), RecordStore::default());
        for record in repository.records() {
            let record = record?;
            records.add(record.cid.into(), record.block);
            entries.push((record.path, record.cid));
        }
        let mut tree = Tree::from_sorted(entries)?;
        tree.collect_blocks();
        let head = Head {
            cid: repository.root(),
            rev,
            data: commit.data,
            block: repository.commit_block().to_vec(),
        };
        Ok(Self { did: did.into(), tree, records, staged: BTreeMap::new(), head: Some(head) })
    }

    /// The account's DID.
    pub fn did(&self) -> Did<'_> {
        self.did.as_did()
    }

    /// The revision of the last commit.
    pub fn rev(&self) -> Option<Tid> {
        self.head.as_ref().map(|head| head.rev)
    }

    /// The CID of the last commit.
    pub fn head(&self) -> Option<Cid> {
        self.head.as_ref().map(|head| head.cid)
    }

    /// The record at `path` in DAG-CBOR, staged changes included.
    pub fn get(&mut self, path: &str) -> Option<&[u8]> {
        let cid = self.current(path).ok()??;
        self.records.get(&cid)
    }

    /// Stages a new record in DAG-CBOR; returns its CID.
    ///
    /// # Errors
    /// If the path has a record, or as for [`put`](Self::put).
    pub fn create(&mut self, path: &str, record: &[u8]) -> Result<Cid, WriteError> {
        match self.current(path)? {
            Some(_) => Err(WriteError::Exists),
            None => self.put(path, record),
        }
    }

    /// Stages another record in DAG-CBOR for a path that has one; returns its CID.
    ///
    /// # Errors
    /// If the path has no record, or as for [`put`](Self::put).
    pub fn update(&mut self, path: &str, record: &[u8]) -> Result<Cid, WriteError> {
        match self.current(path)? {
            Some(_) => self.put(path, record),
            None => Err(WriteError::Absent),
        }
    }

    /// Stages a record in DAG-CBOR, created or updated; returns its CID.
    ///
    /// # Errors
    /// If `path` is not a collection and a record key, the record has more than
    /// [`MAX_RECORD_BYTES`] or breaks the data model, or its `$type` is not the collection. Nothing is
    /// staged then.
    pub fn put(&mut self, path: &str, record: &[u8]) -> Result<Cid, WriteError> {
        let parsed = RepoPath::parse(path)?;
        if record.len() > MAX_RECORD_BYTES {
            return Err(WriteError::RecordTooLarge);
        }
        data_model::check_block(record, parsed.collection().as_str())?;
        let cid = Cid::of(Codec::DagCbor, record);
        let before = self.tree.insert(path.as_bytes(), cid)?;
        self.records.add(cid.into(), record);
        self.stage(path, before);
        Ok(cid)
    }

    /// Stages the deletion of a record.
    ///
    /// # Errors
    /// If the path has none.
    pub fn delete(&mut self, path: &str) -> Result<(), WriteError> {
        let before = self.tree.remove(path.as_bytes())?.ok_or(WriteError::Absent)?;
        self.stage(path, Some(before));
        Ok(())
    }

    /// Drops all staged changes.
    pub fn discard(&mut self) {
        for (path, before) in std::mem::take(&mut self.staged) {
            let staged = match before {
                Some(cid) => self.tree.insert(path.as_bytes(), cid),
                None => self.tree.remove(path.as_bytes()),
            };
            let staged = staged.expect("a tree in memory that has held this path");
            staged.iter().for_each(|cid| self.records.release(cid));
        }
    }

    /// Commits the staged changes with the signature that `sign` makes of the message it is given: ECDSA
    /// over its SHA-256, `r‖s`, low S. `crypto::SecretKey::sign` makes such signatures.
    ///
    /// # Errors
    /// If `rev` is not greater than the last revision. The changes stay staged then.
    pub fn commit(
        &mut self,
        rev: Tid,
        sign: impl FnOnce(&[u8]) -> [u8; 64],
    ) -> Result<WrittenCommit, WriteError> {
        let prepared = self.prepare(rev)?;
        let signature = sign(&prepared.message);
        self.finish(prepared, &signature)
    }

    /// The commit of the staged changes, to be signed: the first half of [`commit`](Self::commit), for
    /// signatures that are made elsewhere.
    ///
    /// # Errors
    /// If `rev` is not greater than the last revision.
    pub fn prepare(&mut self, rev: Tid) -> Result<PreparedCommit, WriteError> {
        if self.rev().is_some_and(|last| rev <= last) {
            return Err(WriteError::RevNotNewer);
        }
        let data = self.tree.root();
        let message = self.unsigned(&rev.to_string(), data).to_bytes();
        Ok(PreparedCommit { rev, data, message })
    }

    /// Commits with the signature of [`PreparedCommit::message`].
    ///
    /// # Errors
    /// If records were staged or committed since `prepared` was made.
    pub fn finish(
        &mut self,
        prepared: PreparedCommit,
        signature: &[u8; 64],
    ) -> Result<WrittenCommit, WriteError> {
        let PreparedCommit { rev, data, .. } = prepared;
        if self.rev().is_some_and(|last| rev <= last) || self.tree.root() != data {
            return Err(WriteError::Outdated);
        }
        let ops = self.operations()?;
        let rev_text = rev.to_string();
        let block = self.unsigned(&rev_text, data).with_signature(signature);
        let cid = Cid::of(Codec::DagCbor, &block);
        let car = self.slice(cid, &block, &ops)?;
        let staged = std::mem::take(&mut self.staged);
        staged.values().flatten().for_each(|before| self.records.release(before));
        let head = Head { cid, rev, data, block: block.clone() };
        let last = self.head.replace(head);
        Ok(WrittenCommit {
            did: self.did.clone(),
            cid,
            rev,
            since: last.as_ref().map(|last| last.rev),
            data,
            prev_data: last.map(|last| last.data),
            ops,
            block,
            car,
        })
    }

    /// Writes the last commit and everything below it as a CAR in streamable order.
    ///
    /// # Errors
    /// If there is no commit, changes are staged, or `out` fails.
    pub fn export<W: Write>(&mut self, out: W) -> Result<W, WriteError> {
        let head = self.head.as_ref().ok_or(WriteError::NoCommit)?;
        if !self.staged.is_empty() {
            return Err(WriteError::Staged);
        }
        let entries: Result<Vec<_>, _> = self.tree.iter().collect();
        let mut whole = Tree::from_sorted(entries?)?;
        let mut unordered = car::Writer::new(Vec::new(), &[head.cid]).map_err(ExportError::Io)?;
        let nodes = whole.collect_blocks();
        let nodes = nodes.iter().map(|(cid, block)| (cid, block.as_slice()));
        let records = self.records.blocks();
        for (cid, block) in [(&head.cid, head.block.as_slice())].into_iter().chain(nodes) {
            unordered.block(cid, block).map_err(ExportError::Io)?;
        }
        for (cid, block) in records {
            unordered.block(&cid, block).map_err(ExportError::Io)?;
        }
        let unordered = unordered.into_inner();
        let mut options = Options::default();
        options.trust_hashes = true;
        Ok(Repository::read(&unordered, &options)?.export(out)?)
    }

    /// The CID of the record at `path`, staged changes included.
    fn current(&mut self, path: &str) -> Result<Option<AnyCid>, WriteError> {
        RepoPath::parse(path)?;
        Ok(self.tree.get(path.as_bytes())?.map(AnyCid::from))
    }

    /// Notes the record that a path had before it was changed.
    fn stage(&mut self, path: &str, before: Option<AnyCid>) {
        if !self.staged.contains_key(path) {
            self.staged.insert(path.into(), before);
        } else if let Some(intermediate) = before {
            self.records.release(&intermediate);
        }
    }

    fn unsigned<'c>(&'c self, rev: &'c str, data: Cid) -> UnsignedCommit<'c> {
        UnsignedCommit { did: self.did.as_str(), rev, data, prev: None }
    }

    /// One operation per path whose record changed since the last commit.
    fn operations(&mut self) -> Result<Vec<WrittenOp>, WriteError> {
        let mut ops = Vec::with_capacity(self.staged.len());
        for (path, prev) in &self.staged {
            let cid = self.tree.get(path.as_bytes())?.map(AnyCid::from);
            let action = match (&cid, prev) {
                (cid, prev) if cid == prev => continue,
                (Some(_), None) => Action::Create,
                (Some(_), Some(_)) => Action::Update,
                (None, _) => Action::Delete,
            };
            ops.push(WrittenOp { action, path: path.clone(), cid, prev: prev.clone() });
        }
        Ok(ops)
    }

    /// The CAR slice of a commit: its block, the nodes that prove its operations, the new records.
    fn slice(
        &mut self,
        root: Cid,
        commit: &[u8],
        ops: &[WrittenOp],
    ) -> Result<Vec<u8>, WriteError> {
        let keys = ops.iter().map(|op| op.path.as_bytes());
        let mut nodes = self.tree.covering_blocks(keys)?;
        nodes.extend(self.tree.collect_blocks());
        let mut slice = car::Writer::new(Vec::new(), &[root]).map_err(ExportError::Io)?;
        slice.block(&root, commit).map_err(ExportError::Io)?;
        for (cid, block) in &nodes {
            slice.block(cid, block).map_err(ExportError::Io)?;
        }
        let records: BTreeSet<Cid> =
            ops.iter().filter_map(|op| op.cid.as_ref()?.to_cid()).collect();
        for cid in records {
            let block = self.records.get(&cid.into()).expect("a staged record is stored");
            slice.block(&cid, block).map_err(ExportError::Io)?;
        }
        Ok(slice.into_inner())
    }
}

/// A commit that waits for its signature.
#[derive(Clone, Debug)]
pub struct PreparedCommit {
    rev: Tid,
    data: Cid,
    message: Vec<u8>,
}

impl PreparedCommit {
    /// The bytes to sign.
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// The root of the tree.
    pub fn data(&self) -> Cid {
        self.data
    }
}

/// A signed commit, with the fields of its event.
#[derive(Clone, Debug)]
pub struct WrittenCommit {
    did: DidBuf,
    cid: Cid,
    rev: Tid,
    since: Option<Tid>,
    data: Cid,
    prev_data: Option<Cid>,
    ops: Vec<WrittenOp>,
    block: Vec<u8>,
    car: Vec<u8>,
}

/// The operation of a commit on one record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenOp {
    /// The kind of change.
    pub action: Action,
    /// The record's path, `collection/rkey`.
    pub path: Box<str>,
    /// The record after; `None` after a delete.
    pub cid: Option<AnyCid>,
    /// The record before; `None` before a create.
    pub prev: Option<AnyCid>,
}

impl WrittenCommit {
    /// The CID of the commit.
    pub fn cid(&self) -> Cid {
        self.cid
    }

    /// The revision.
    pub fn rev(&self) -> Tid {
        self.rev
    }

    /// The root of the tree after the commit.
    pub fn data(&self) -> Cid {
        self.data
    }

    /// The operations, one per changed path, in the order of paths.
    pub fn ops(&self) -> &[WrittenOp] {
        &self.ops
    }

    /// The commit object in DAG-CBOR.
    pub fn block(&self) -> &[u8] {
        &self.block
    }

    /// The CAR slice: the commit, the covering proof of its operations, and the records it wrote.
    pub fn car(&self) -> &[u8] {
        &self.car
    }

    /// The `#commit` frame of `com.atproto.sync.subscribeRepos`. `seq` is the event's number in the
    /// stream, `time` a datetime of the protocol.
    ///
    /// # Errors
    /// If the operations or the CAR slice exceed the limits of an event: 200 operations and 2,000,000
    /// bytes. Send [`to_sync_frame`](Self::to_sync_frame) then; consumers fetch the repository.
    pub fn to_frame(&self, seq: i64, time: &str) -> Result<Vec<u8>, WriteError> {
        let limits = event::Options::default();
        if self.ops.len() > limits.max_ops || self.car.len() > limits.max_blocks_bytes {
            return Err(WriteError::EventTooLarge);
        }
        let (rev, since) = (self.rev.to_string(), self.since.map(|rev| rev.to_string()));
        let ops: Vec<RepoOp<'_>> = self.ops.iter().map(WrittenOp::as_repo_op).collect();
        let commit = Commit {
            seq,
            repo: self.did.as_str(),
            commit: self.cid,
            rev: &rev,
            since: since.as_deref(),
            car: &self.car,
            root: None,
            blocks: &[],
            ops: &ops,
            prev_data: self.prev_data,
            time,
            blobs: Some(&[]),
            rebase: Some(false),
            too_big: Some(false),
        };
        Ok(Event::Commit(commit).to_frame())
    }

    /// The `#sync` frame that announces this commit without its operations. `seq` is the event's number
    /// in the stream, `time` a datetime of the protocol.
    pub fn to_sync_frame(&self, seq: i64, time: &str) -> Vec<u8> {
        let mut car = car::Writer::new(Vec::new(), &[self.cid]).expect("memory takes every write");
        car.block(&self.cid, &self.block).expect("memory takes every write");
        let (rev, car) = (self.rev.to_string(), car.into_inner());
        let did = self.did.as_str();
        let sync = Sync { seq, did, car: &car, root: None, blocks: &[], rev: &rev, time };
        Event::Sync(sync).to_frame()
    }
}

impl WrittenOp {
    fn as_repo_op(&self) -> RepoOp<'_> {
        RepoOp {
            action: self.action,
            path: &self.path,
            cid: self.cid.as_ref().map(AnyCid::as_cid_ref),
            prev: self.prev.as_ref().map(AnyCid::as_cid_ref),
            record: None,
        }
    }
}

/// Records by CID, kept while a path or a staged change needs them.
#[derive(Clone, Debug, Default)]
struct RecordStore(HashMap<AnyCid, StoredRecord>);

#[derive(Clone, Debug)]
struct StoredRecord {
    block: Box<[u8]>,
    /// Paths that have the record, now or at the last commit.
    uses: usize,
}

impl RecordStore {
    fn add(&mut self, cid: AnyCid, block: &[u8]) {
        let stored = || StoredRecord { block: block.into(), uses: 0 };
        self.0.entry(cid).or_insert_with(stored).uses += 1;
    }

    fn release(&mut self, cid: &AnyCid) {
        let Some(record) = self.0.get_mut(cid) else { return };
        record.uses -= 1;
        if record.uses == 0 {
            self.0.remove(cid);
        }
    }

    fn get(&self, cid: &AnyCid) -> Option<&[u8]> {
        self.0.get(cid).map(|record| &*record.block)
    }

    fn blocks(&self) -> impl Iterator<Item = (Cid, &[u8])> {
        self.0.iter().filter_map(|(cid, record)| Some((cid.to_cid()?, &*record.block)))
    }
}

/// Why a repository was not written to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A path, DID or revision is malformed.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The record breaks the data model.
    #[error("record: {0}")]
    Data(#[from] DataError),
    /// The record has more than [`MAX_RECORD_BYTES`].
    #[error("record of more than {MAX_RECORD_BYTES} bytes")]
    RecordTooLarge,
    /// A create of a path that has a record.
    #[error("the path has a record: update it")]
    Exists,
    /// An update or delete of a path without a record.
    #[error("the path has no record")]
    Absent,
    /// The revision is not greater than the last one.
    #[error("the revision is not greater than the last one")]
    RevNotNewer,
    /// The repository changed after the commit was prepared.
    #[error("the repository changed after this commit was prepared: prepare it again")]
    Outdated,
    /// Nothing was committed yet.
    #[error("the repository has no commit")]
    NoCommit,
    /// Changes are staged.
    #[error("changes are staged: commit or discard them")]
    Staged,
    /// The commit does not fit an event.
    #[error("more operations or bytes than a #commit event may carry: send a #sync event")]
    EventTooLarge,
    /// The repository to be continued is malformed or incomplete.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// The tree is malformed or reached a limit.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The export failed.
    #[error(transparent)]
    Export(#[from] ExportError),
}

/// The most bytes of a record.
pub const MAX_RECORD_BYTES: usize = 1_000_000;

#[cfg(test)]
mod tests;
