//! Proves commits by their operations: a commit must have signed the tree that its operations make of the previous one.
//!
//! A chain begins at a repository in the table `records`, or at the empty one, and its commits continue the revision that
//! they name as `since`. The beginning of a chain needs no proof of its own: a signature covers the whole tree.

use atproto::event::{Action, Commit};
use atproto::mst::{Tree, TreeError};
use codec::cid::Codec;
use codec::{AnyCid, Cid};
use kernels::sha256;

use crate::op_rows::OpColumns;
use crate::table_rows::Row;

/// A commit and its changes.
#[derive(Clone, Debug)]
pub(crate) struct ChainCommit<'a> {
    pub(crate) did: &'a str,
    pub(crate) rev: &'a str,
    /// The revision before.
    pub(crate) since: Option<&'a str>,
    pub(crate) ops: Vec<ChainOp>,
}

/// An operation on a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChainOp {
    action: Action,
    /// The path of the record.
    key: String,
    /// The record after the operation.
    value: Option<Cid>,
}

/// Why operations give no tree.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum ChainFault {
    #[error("it continues revision {0}, which is not in the archive")]
    NoBase(String),
    #[error("it is not newer than {0}, which it continues")]
    Order(String),
    #[error("{0}: the record does not match its CID")]
    Record(String),
    #[error("{0}: the operation is neither create, update nor delete")]
    Action(String),
    #[error("{0}: the operation creates a record that exists, or changes one that does not")]
    Presence(String),
    #[error("{0}: {1}")]
    Tree(String, TreeError),
    #[error("the revision exists with other operations")]
    OtherOperations,
}

/// The chains of the accounts, one after the other in the order of the table `events`. One tree is held at a time.
#[derive(Default)]
pub(crate) struct Chains {
    chain: Option<Box<Chain>>,
    /// How to undo the last commit.
    undo: Undo,
}

/// The state after an account's last commit.
struct Chain {
    did: Box<str>,
    rev: Box<str>,
    data: Cid,
    tree: Tree,
    ops: Vec<ChainOp>,
}

/// How a commit relates to the chain.
enum Step {
    /// Another writer has stored the last commit too.
    Repeat,
    Continue,
    Begin,
}

#[derive(Default)]
enum Undo {
    #[default]
    Nothing,
    /// The commit began another chain.
    Chain(Option<Box<Chain>>),
    /// The commit continued its chain.
    Commit { rev: Box<str>, data: Cid, ops: Vec<ChainOp>, values: Vec<Option<AnyCid>> },
}

impl Chains {
    /// The revision of the tree from which a commit begins a chain; `None` if it begins none, or is the account's first commit.
    pub(crate) fn base_of<'c>(&self, commit: &ChainCommit<'c>) -> Option<&'c str> {
        commit.since.filter(|_| matches!(self.step(commit), Ok(Step::Begin)))
    }

    /// The root of the tree that a commit leaves, which is now the last one of its chain. After a fault the chain is as before.
    /// `base` is the tree of [`base_of`](Self::base_of), if there is one.
    pub(crate) fn apply(
        &mut self,
        commit: ChainCommit<'_>,
        base: Option<Tree>,
    ) -> Result<Cid, ChainFault> {
        self.undo = Undo::Nothing;
        let step = self.step(&commit)?;
        match (step, &mut self.chain) {
            (Step::Repeat, Some(chain)) if chain.ops == commit.ops => Ok(chain.data),
            (Step::Repeat, _) => Err(ChainFault::OtherOperations),
            (Step::Continue, Some(chain)) => {
                let (data, undo) = chain.apply(commit)?;
                self.undo = undo;
                Ok(data)
            }
            (Step::Continue | Step::Begin, _) => {
                let mut chain = Chain::begin(&commit, base)?;
                let (data, _) = chain.apply(commit)?;
                self.undo = Undo::Chain(self.chain.replace(chain));
                Ok(data)
            }
        }
    }

    fn step(&self, commit: &ChainCommit<'_>) -> Result<Step, ChainFault> {
        let order = |since: &str| ChainFault::Order(since.to_owned());
        if let Some(since) = commit.since.filter(|since| *since >= commit.rev) {
            return Err(order(since));
        }
        match self.chain.as_ref().filter(|chain| *chain.did == *commit.did) {
            Some(chain) if *chain.rev == *commit.rev => Ok(Step::Repeat),
            Some(chain) if Some(&*chain.rev) == commit.since => Ok(Step::Continue),
            Some(chain) if *commit.rev < *chain.rev => Err(order(&chain.rev)),
            _ => Ok(Step::Begin),
        }
    }

    /// The tree that the last commit leaves.
    pub(crate) fn tree(&mut self) -> Option<&mut Tree> {
        self.chain.as_mut().map(|chain| &mut chain.tree)
    }

    /// Undoes the last commit.
    pub(crate) fn undo(&mut self) {
        match std::mem::take(&mut self.undo) {
            Undo::Nothing => {}
            Undo::Chain(chain) => self.chain = chain,
            Undo::Commit { rev, data, ops, values } => {
                if let Some(chain) = &mut self.chain {
                    let applied = std::mem::replace(&mut chain.ops, ops);
                    chain.restore(&applied, values);
                    chain.rev = rev;
                    chain.data = data;
                }
            }
        }
    }
}

impl Chain {
    /// The chain before its first commit.
    fn begin(commit: &ChainCommit<'_>, base: Option<Tree>) -> Result<Box<Self>, ChainFault> {
        let mut tree = match commit.since {
            None => Tree::empty(),
            Some(since) => base.ok_or_else(|| ChainFault::NoBase(since.to_owned()))?,
        };
        Ok(Box::new(Self {
            did: commit.did.into(),
            rev: commit.since.unwrap_or_default().into(),
            data: tree.root(),
            tree,
            ops: Vec::new(),
        }))
    }

    fn apply(&mut self, commit: ChainCommit<'_>) -> Result<(Cid, Undo), ChainFault> {
        let mut values = Vec::with_capacity(commit.ops.len());
        for op in &commit.ops {
            match self.apply_op(op) {
                Ok(before) => values.push(before),
                Err(fault) => {
                    self.restore(&commit.ops, values);
                    return Err(fault);
                }
            }
        }
        let data = self.tree.root();
        let undo = Undo::Commit {
            rev: std::mem::replace(&mut self.rev, commit.rev.into()),
            data: std::mem::replace(&mut self.data, data),
            ops: std::mem::replace(&mut self.ops, commit.ops),
            values,
        };
        Ok((data, undo))
    }

    /// Applies an operation; returns the record before.
    fn apply_op(&mut self, op: &ChainOp) -> Result<Option<AnyCid>, ChainFault> {
        let before = self
            .put(&op.key, op.value.map(AnyCid::from))
            .map_err(|error| ChainFault::Tree(op.key.clone(), error))?;
        let is_new = op.action == Action::Create;
        if before.is_none() != is_new {
            self.restore(std::slice::from_ref(op), vec![before]);
            return Err(ChainFault::Presence(op.key.clone()));
        }
        Ok(before)
    }

    fn put(&mut self, key: &str, value: Option<AnyCid>) -> Result<Option<AnyCid>, TreeError> {
        match value {
            Some(value) => self.tree.insert(key.as_bytes(), value),
            None => self.tree.remove(key.as_bytes()),
        }
    }

    /// Undoes these operations, the last one first.
    fn restore(&mut self, ops: &[ChainOp], values: Vec<Option<AnyCid>>) {
        for (op, before) in ops.iter().zip(values).rev() {
            // The key was put or removed before, in a tree that is all in memory.
            let restored = self.put(&op.key, before);
            debug_assert!(restored.is_ok(), "{restored:?}");
        }
    }
}

/// The operations of a commit whose frame is stored; its records are hashed here.
pub(crate) fn ops_of_frame(commit: &Commit<'_>) -> Result<Vec<ChainOp>, ChainFault> {
    let blocks: Vec<&[u8]> =
        commit.ops.iter().map(|op| op.record.map_or(&[][..], |block| block.data)).collect();
    let ops = commit.ops.iter().zip(sha256::digest_many(&blocks));
    ops.map(|(op, digest)| {
        let wrong = || ChainFault::Record(op.path.to_owned());
        let value = match (op.cid, op.record) {
            (None, _) => None,
            (Some(cid), Some(_)) => {
                Some(record_cid(Some(cid.as_bytes()), &digest).ok_or_else(wrong)?)
            }
            (Some(cid), None) => Some(Cid::from_bytes(cid.as_bytes()).ok_or_else(wrong)?),
        };
        Ok(ChainOp { action: op.action, key: op.path.to_owned(), value })
    })
    .collect()
}

/// The operations of a commit of which these are the rows.
pub(crate) fn ops_of_rows(rows: &[Row<OpColumns>]) -> Result<Vec<ChainOp>, ChainFault> {
    let blocks: Vec<&[u8]> = rows.iter().map(|row| row.record().1.unwrap_or_default()).collect();
    let ops = rows.iter().zip(sha256::digest_many(&blocks));
    ops.map(|(row, digest)| {
        let (collection, rkey) = row.path();
        let key = format!("{collection}/{rkey}");
        let action = Action::parse(row.action()).ok_or_else(|| ChainFault::Action(key.clone()))?;
        let value = match (action, row.record()) {
            (Action::Delete, _) => None,
            (_, (Some(cid), None)) => Cid::from_bytes(cid),
            (_, (stored, Some(_))) => record_cid(stored, &digest),
            (_, (None, None)) => None,
        };
        if value.is_none() && action != Action::Delete {
            return Err(ChainFault::Record(key));
        }
        Ok(ChainOp { action, key, value })
    })
    .collect()
}

/// The CID of a record with this hash. One that is stored has another codec; `None` if it has another hash.
pub(crate) fn record_cid(stored: Option<&[u8]>, digest: &sha256::Digest) -> Option<Cid> {
    match stored {
        None => Some(Cid::from_digest(Codec::DagCbor, digest)),
        Some(stored) => Cid::from_bytes(stored).filter(|cid| cid.digest() == digest),
    }
}
