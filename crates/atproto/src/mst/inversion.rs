//! Does undoing what a commit says it did lead back to the tree before?
//!
//! A commit carries the nodes that its operations touched, its covering proof. In the tree of these
//! nodes each operation is checked (what was created or updated is there, what was deleted is not)
//! and undone, in any order, and the root of what is left is the tree that the commit started from:
//! the caller compares it with the one it knows. If what is left is one subtree that did not come with
//! the commit, its name is the answer; whether it is a root, only that comparison tells.
//!
//! Many commits go through together. Their trees stand in one arena, so that what has to be hashed
//! (keys of the nodes that were read, changed nodes of a layer) fills the lanes, and its memory
//! serves the next batch.
//!
//! Source: the sync specification, version 1.1, "inductive firehose".

use std::ops::Range;

use codec::{Cid, CidRef};

use super::arena::{Arena, NodeId, Path, Place};
use super::tree::check_key;
use super::{BlockSource, TreeError, key_heights, node};
use crate::event::{Action, RepoOp};

/// What a commit says it did to one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordOp<'a> {
    /// What was done.
    pub action: Action,
    /// The record's path.
    pub key: &'a [u8],
    /// The record now; `None` after a delete.
    pub cid: Option<CidRef<'a>>,
    /// The record before; `None` before a create.
    pub prev: Option<CidRef<'a>>,
}

impl<'a> From<&RepoOp<'a>> for RecordOp<'a> {
    fn from(op: &RepoOp<'a>) -> Self {
        Self { action: op.action, key: op.path.as_bytes(), cid: op.cid, prev: op.prev }
    }
}

/// A commit to be inverted.
#[derive(Clone, Copy, Debug)]
pub struct Inversion<'o, 'a, S> {
    /// The root of the tree after the commit.
    pub root: Cid,
    /// The nodes that came with the commit.
    pub source: S,
    /// What it did, in any order.
    pub ops: &'o [RecordOp<'a>],
}

/// Why a commit cannot be inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InversionError {
    /// The index of the operation, where the fault is met with one.
    pub op: Option<usize>,
    /// What is wrong.
    pub fault: InversionFault,
}

/// What is wrong with a commit that cannot be inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InversionFault {
    /// Two operations have the same path.
    #[error("two operations on the same path")]
    DuplicatePath,
    /// A create or update without a record, or a delete with one.
    #[error("a create or update names its record, and a delete names none")]
    Record,
    /// An update or delete that does not tell the record before, or a create that does.
    #[error("an update or delete names the record before, and a create names none")]
    Previous,
    /// What was created or updated is not in the tree.
    #[error("the path is not in the tree")]
    Absent,
    /// What was created or updated has another record in the tree.
    #[error("the path has another record in the tree")]
    OtherRecord,
    /// What was deleted is in the tree.
    #[error("the deleted path is in the tree")]
    Present,
    /// A node breaks a rule, or is missing and would have to be read.
    #[error("{0}")]
    Tree(TreeError),
}

impl std::error::Error for InversionError {}

impl std::fmt::Display for InversionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.op {
            Some(op) => write!(f, "operation {op}: {}", self.fault),
            None => self.fault.fmt(f),
        }
    }
}

/// The root of the tree before a commit, by undoing it in the tree after.
///
/// # Errors
/// See [`InversionFault`].
pub fn invert<'a, S: BlockSource<'a>>(
    root: Cid,
    source: S,
    ops: &[RecordOp<'_>],
) -> Result<Cid, InversionError> {
    let commit = Inversion { root, source, ops };
    Inverter::new().invert_batch(&[commit]).pop().expect("an answer for each commit")
}

/// Inverts commits, many at once, in memory that it keeps between calls.
#[derive(Clone, Debug)]
pub struct Inverter {
    arena: Arena,
    path: Path,
}

/// How far a commit has come.
struct Progress {
    root: NodeId,
    /// Where the heights of its keys start: that of the root's first key, then of each deleted one.
    heights_at: usize,
    /// Its nodes among those that were loaded.
    loads: Range<usize>,
    /// What is known to be wrong.
    verdict: Result<(), InversionError>,
}

impl Inverter {
    /// Starts with no memory.
    pub fn new() -> Self {
        Self { arena: Arena::proving_later(), path: Path::default() }
    }

    /// The roots of the trees before these commits, in order, each by undoing what it did.
    pub fn invert_batch<'a, S: BlockSource<'a>>(
        &mut self,
        commits: &[Inversion<'_, '_, S>],
    ) -> Vec<Result<Cid, InversionError>> {
        let mut answers = Vec::with_capacity(commits.len());
        while let Some(rest) = commits.get(answers.len()..).filter(|rest| !rest.is_empty()) {
            self.invert_some(&rest[..rest.len().min(MAX_TOGETHER)], &mut answers);
        }
        answers
    }

    /// Answers for at least the first of these commits, and for as many as fit the memory.
    fn invert_some<'a, S: BlockSource<'a>>(
        &mut self,
        commits: &[Inversion<'_, '_, S>],
        answers: &mut Vec<Result<Cid, InversionError>>,
    ) {
        self.arena.clear();
        let (mut progress, heights) = self.begin(commits);
        let mut done = 0;
        while done < commits.len() && self.arena.bytes_len() < ENOUGH_BYTES {
            let progress = &mut progress[done];
            let loads_before = self.arena.claims().len();
            if progress.verdict.is_ok() {
                let heights = &heights[progress.heights_at..];
                progress.verdict = self.undo(&commits[done], progress, heights);
            }
            progress.loads = loads_before..self.arena.claims().len();
            done += 1;
        }
        let progress = &mut progress[..done];
        self.refute(progress);
        let sound = progress.iter().filter(|commit| commit.verdict.is_ok());
        self.arena.seal(sound.map(|commit| commit.root));
        let answer = |commit: &Progress| commit.verdict.map(|()| self.arena.cid(commit.root));
        answers.extend(progress.iter().map(answer));
    }

    /// Checks what needs no tree, and hashes the keys whose heights are needed first, all together.
    fn begin<'a, S: BlockSource<'a>>(
        &mut self,
        commits: &[Inversion<'_, '_, S>],
    ) -> (Vec<Progress>, Vec<u8>) {
        let mut keys = Vec::new();
        let mut progress = Vec::with_capacity(commits.len());
        for commit in commits {
            let root = self.arena.stub(commit.root, 0);
            let verdict = check_ops(commit.ops);
            progress.push(Progress { root, heights_at: keys.len(), loads: 0..0, verdict });
            let root_key = commit.source.block(&commit.root).and_then(node::first_key);
            keys.push(root_key.unwrap_or(&[]));
            keys.extend(commit.ops.iter().filter(|op| op.is_delete()).map(|op| op.key));
        }
        (progress, key_heights(&keys))
    }

    /// Checks the operations in the tree after them, then undoes them.
    fn undo<'a, S: BlockSource<'a>>(
        &mut self,
        commit: &Inversion<'_, '_, S>,
        progress: &mut Progress,
        heights: &[u8],
    ) -> Result<(), InversionError> {
        if commit.ops.is_empty() {
            return Ok(());
        }
        let Self { arena, path } = self;
        let Inversion { source, ops, .. } = commit;
        let root = &mut progress.root;
        arena.load_root_at(*root, heights[0], source).map_err(|error| met(None, error))?;
        for (index, op) in ops.iter().enumerate() {
            let met = |error| met(Some(index), error);
            let place = arena.descend(*root, op.key, 0, source, path).map_err(met)?;
            check_op(arena, path, place, op).map_err(|fault| at(index, fault))?;
        }
        let mut heights = heights[1..].iter().copied();
        let mut left = Vec::new();
        let mut first_error = None;
        // What was deleted comes back first: that needs fewer nodes than the other way round.
        let deletes = ops.iter().enumerate().filter(|(_, op)| op.is_delete());
        let others = ops.iter().enumerate().filter(|(_, op)| !op.is_delete());
        for (index, op) in deletes.chain(others) {
            let height = heights.next().unwrap_or(0);
            if let Err(error) = undo_op(arena, path, root, op, height, source) {
                left.push((index, height));
                first_error.get_or_insert(met(Some(index), error));
            }
        }
        match first_error {
            Some(error) => self.undo_in_another_order(commit, root, left, error),
            None => Ok(()),
        }
    }

    /// Tries again what could not be undone for want of a node. With a covering proof any order will
    /// do; with fewer nodes one order may do where another does not, because what is undone first may
    /// leave a subtree alone that need not be read then. This way all of the 1,024 smallest proofs in
    /// the published pairs of trees suffice; in the order of keys alone, 16 of them do not.
    #[cold]
    fn undo_in_another_order<'a, S: BlockSource<'a>>(
        &mut self,
        Inversion { source, ops, .. }: &Inversion<'_, '_, S>,
        root: &mut NodeId,
        mut left: Vec<(usize, u8)>,
        error: InversionError,
    ) -> Result<(), InversionError> {
        let Self { arena, path } = self;
        for _ in 0..MAX_ROUNDS {
            let before = left.len();
            left.retain(|(index, height)| {
                undo_op(arena, path, root, &ops[*index], *height, source).is_err()
            });
            if left.is_empty() {
                return Ok(());
            }
            if left.len() == before {
                break;
            }
        }
        Err(error)
    }

    /// Refuses the commits of which a node has keys that belong to another layer.
    fn refute(&mut self, progress: &mut [Progress]) {
        let heights = self.arena.claimed_heights();
        let mut commits = progress.iter_mut().peekable();
        for (load, error) in self.arena.claims().refuted(&heights) {
            while commits.next_if(|commit| commit.loads.end <= load).is_some() {}
            let commit = commits.peek_mut().expect("each load belongs to a commit");
            // Such a node comes before whatever was concluded from it.
            commit.verdict = Err(met(None, error));
        }
    }
}

impl Default for Inverter {
    fn default() -> Self {
        Self::new()
    }
}

impl RecordOp<'_> {
    fn is_delete(&self) -> bool {
        self.action == Action::Delete
    }
}

/// Undoes an operation that the tree agrees with.
#[inline]
fn undo_op<'a>(
    arena: &mut Arena,
    path: &mut Path,
    root: &mut NodeId,
    op: &RecordOp<'_>,
    height: u8,
    source: &impl BlockSource<'a>,
) -> Result<(), TreeError> {
    match (op.action, op.prev) {
        (Action::Update, Some(prev)) => arena.replace(*root, op.key, prev, source, path).map(drop),
        (Action::Delete, Some(prev)) => {
            arena.insert(root, (op.key, height), prev, source, path).map(drop)
        }
        _ => arena.remove(root, op.key, source, path).map(drop),
    }
}

/// Checks what the operations say without a tree.
fn check_ops(ops: &[RecordOp<'_>]) -> Result<(), InversionError> {
    for (index, op) in ops.iter().enumerate() {
        check_key(op.key).map_err(|error| met(Some(index), error))?;
        if op.cid.is_none() != (op.action == Action::Delete) {
            return Err(at(index, InversionFault::Record));
        }
        if op.prev.is_none() != (op.action == Action::Create) {
            return Err(at(index, InversionFault::Previous));
        }
    }
    match first_duplicate(ops) {
        Some(index) => Err(at(index, InversionFault::DuplicatePath)),
        None => Ok(()),
    }
}

/// The least index of an operation whose path an earlier one has.
fn first_duplicate(ops: &[RecordOp<'_>]) -> Option<usize> {
    if ops.len() < 2 {
        return None;
    }
    let mut order: Vec<usize> = (0..ops.len()).collect();
    order.sort_by_key(|index| (ops[*index].key, *index));
    let twins = order.windows(2).filter(|pair| ops[pair[0]].key == ops[pair[1]].key);
    twins.map(|pair| pair[1]).min()
}

/// Whether the tree after the commit agrees with the operation.
fn check_op(
    arena: &Arena,
    path: &Path,
    place: Place,
    op: &RecordOp<'_>,
) -> Result<(), InversionFault> {
    match (place, op.cid) {
        (Ok(index), Some(cid)) => {
            let (id, _) = path.end();
            let is_same = arena.value(id, index) == Some(cid);
            if is_same { Ok(()) } else { Err(InversionFault::OtherRecord) }
        }
        (Ok(_), None) => Err(InversionFault::Present),
        (Err(_), Some(_)) => Err(InversionFault::Absent),
        (Err(_), None) => Ok(()),
    }
}

#[cold]
fn at(op: usize, fault: InversionFault) -> InversionError {
    InversionError { op: Some(op), fault }
}

#[cold]
fn met(op: Option<usize>, error: TreeError) -> InversionError {
    InversionError { op, fault: InversionFault::Tree(error) }
}

/// How often the operations of a commit are gone through.
const MAX_ROUNDS: usize = 8;

/// How many commits go through together: enough to fill the lanes, few enough for the cache.
const MAX_TOGETHER: usize = 256;

/// With so many bytes of keys in memory, what was read is finished before more is read: written out,
/// the keys of a hostile node can be twenty times as long as its block.
const ENOUGH_BYTES: usize = 16 << 20;
