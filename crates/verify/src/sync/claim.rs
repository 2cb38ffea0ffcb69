//! What can be told of a `#commit` or `#sync` without its account's state or key.

use atproto::commit::Commit as CommitObject;
use atproto::event::{Action, Block, Commit, Event, RepoOp, Sync};
use atproto::syntax::{Datetime, Did, RepoPath, Tid};
use codec::car::HashProof;
use codec::{Cid, CidRef};

use super::policy::Policy;
use super::rejection::{OpFault, SyncRejection};

/// A message that a commit object proves.
#[derive(Clone, Copy, Debug)]
pub(super) enum Message<'a> {
    Commit(&'a Commit<'a>),
    Sync(&'a Sync<'a>),
}

impl<'a> Message<'a> {
    /// The message in `event`, if it is one.
    pub(super) fn of(event: &'a Event<'a>) -> Option<Self> {
        match event {
            Event::Commit(commit) => Some(Self::Commit(commit)),
            Event::Sync(sync) => Some(Self::Sync(sync)),
            _ => None,
        }
    }

    fn did(self) -> &'a str {
        match self {
            Self::Commit(commit) => commit.repo,
            Self::Sync(sync) => sync.did,
        }
    }

    fn rev(self) -> &'a str {
        match self {
            Self::Commit(commit) => commit.rev,
            Self::Sync(sync) => sync.rev,
        }
    }

    fn since(self) -> Option<&'a str> {
        match self {
            Self::Commit(commit) => commit.since,
            Self::Sync(_) => None,
        }
    }

    fn time(self) -> &'a str {
        match self {
            Self::Commit(commit) => commit.time,
            Self::Sync(sync) => sync.time,
        }
    }

    fn root(self) -> Option<CidRef<'a>> {
        match self {
            Self::Commit(commit) => commit.root,
            Self::Sync(sync) => sync.root,
        }
    }

    fn blocks(self) -> &'a [Block<'a>] {
        match self {
            Self::Commit(commit) => commit.blocks,
            Self::Sync(sync) => sync.blocks,
        }
    }
}

/// A message whose own fields are sound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim<'a> {
    pub(super) message: Message<'a>,
    /// The account's DID, in its normal form.
    pub(super) did: &'a str,
    pub(super) rev: Tid,
    pub(super) since: Option<Tid>,
}

impl<'a> Claim<'a> {
    /// Rows 2, 3, 6 (syntax) and 18.
    pub(super) fn read(message: Message<'a>, policy: &Policy) -> Result<Self, SyncRejection<'a>> {
        let did = normal_did(message.did())?;
        if let Message::Sync(sync) = message {
            check_sync_len(sync, policy.max_sync_blocks_bytes)?;
        }
        let rev = read_rev("rev", message.rev())?;
        let since = message.since().map(|since| read_rev("since", since)).transpose()?;
        if !policy.accept_any_time && Datetime::parse(message.time()).is_err() {
            return Err(SyncRejection::Time(message.time()));
        }
        Ok(Self { message, did, rev, since })
    }

    /// Rows 8, 9, 10 and 12, and what row 16 asks of the operations themselves.
    pub(super) fn open(&self, policy: &Policy) -> Result<Opened<'a>, SyncRejection<'a>> {
        let root = self.message.root().filter(|root| root.is_dag_cbor());
        let root = root.and_then(CidRef::to_cid).ok_or(SyncRejection::Root)?;
        let block = self.message.blocks().iter().find(|block| block.cid == root.as_cid_ref());
        let block = block.ok_or(SyncRejection::CommitMissing(root))?;
        if let Message::Commit(Commit { commit, .. }) = self.message
            && *commit != root
        {
            return Err(SyncRejection::CommitCid { claimed: *commit, root });
        }
        let object = CommitObject::parse(block.data).map_err(SyncRejection::Commit)?;
        if object.did != self.did {
            return Err(SyncRejection::DidMismatch(object.did));
        }
        if object.rev != self.message.rev() {
            return Err(SyncRejection::RevMismatch(object.rev));
        }
        if let Message::Commit(commit) = self.message {
            check_flags(commit, policy)?;
            check_ops(commit, policy)?;
        }
        Ok(Opened { root, object })
    }
}

/// A claim whose commit object was found and says the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened<'a> {
    /// The CID of the commit object.
    pub(super) root: Cid,
    pub(super) object: CommitObject<'a>,
}

/// A DID. One of the method `plc` has one spelling, and no other may pass for another account.
fn normal_did(text: &str) -> Result<&str, SyncRejection<'_>> {
    match Did::parse(text) {
        Ok(did) if did.is_plc() || did.method() != "plc" => Ok(text),
        _ => Err(SyncRejection::Did(text)),
    }
}

fn check_sync_len<'a>(sync: &Sync<'a>, limit: usize) -> Result<(), SyncRejection<'a>> {
    match sync.car.len() {
        len if len > limit => Err(SyncRejection::SyncLimit { len, limit }),
        _ => Ok(()),
    }
}

fn read_rev<'a>(field: &'static str, text: &'a str) -> Result<Tid, SyncRejection<'a>> {
    Tid::parse(text).map_err(|error| SyncRejection::RevSyntax { field, error })
}

fn check_flags<'a>(commit: &Commit<'a>, policy: &Policy) -> Result<(), SyncRejection<'a>> {
    if commit.too_big == Some(true) && !policy.accept_too_big {
        return Err(SyncRejection::TooBig);
    }
    if commit.rebase == Some(true) && !policy.accept_rebase {
        return Err(SyncRejection::Rebase);
    }
    Ok(())
}

fn check_ops<'a>(commit: &Commit<'a>, policy: &Policy) -> Result<(), SyncRejection<'a>> {
    let may_lack_prev = policy.accept_ops_without_prev
        || (policy.accept_missing_prev_data && commit.prev_data.is_none());
    for op in commit.ops {
        RepoPath::parse(op.path).map_err(|error| SyncRejection::Path { path: op.path, error })?;
        check_cids(op, may_lack_prev)
            .map_err(|fault| SyncRejection::Op { path: op.path, fault })?;
        check_record(op)?;
    }
    match repeated_path(commit.ops) {
        Some(path) => Err(SyncRejection::DuplicatePath(path)),
        None => Ok(()),
    }
}

fn check_cids(op: &RepoOp<'_>, may_lack_prev: bool) -> Result<(), OpFault> {
    match (op.action, op.cid, op.prev) {
        (Action::Create | Action::Update, None, _) => Err(OpFault::CidMissing),
        (Action::Delete, Some(_), _) => Err(OpFault::CidForbidden),
        (Action::Create, _, Some(_)) => Err(OpFault::PrevForbidden),
        (Action::Update | Action::Delete, _, None) if !may_lack_prev => Err(OpFault::PrevMissing),
        _ => Ok(()),
    }
}

/// The record that was written is there, and is what its CID names.
fn check_record<'a>(op: &RepoOp<'a>) -> Result<(), SyncRejection<'a>> {
    let Some(cid) = op.cid else { return Ok(()) };
    if !cid.is_dag_cbor() {
        return Err(SyncRejection::RecordCid(op.path));
    }
    match op.record {
        Some(Block { proof: HashProof::Checked, .. }) => Ok(()),
        _ => Err(SyncRejection::RecordMissing(op.path)),
    }
}

/// A path that occurs twice.
fn repeated_path<'a>(ops: &[RepoOp<'a>]) -> Option<&'a str> {
    if ops.len() <= UNSORTED_OPS {
        let repeats = |(at, op): (usize, &RepoOp<'a>)| ops[..at].iter().any(|o| o.path == op.path);
        return (0..).zip(ops).find(|pair| repeats(*pair)).map(|(_, op)| op.path);
    }
    let mut paths: Vec<&str> = ops.iter().map(|op| op.path).collect();
    paths.sort_unstable();
    paths.array_windows().find(|[a, b]| a == b).map(|[path, _]| *path)
}

/// Up to so many operations, comparing all with all costs less than sorting.
const UNSORTED_OPS: usize = 8;
