//! The bytes that a stored commit has signed, from the columns of its row.

use atproto::commit::{Commit, UnsignedCommit};
use codec::Cid;

use crate::rule::{BrokenRule, Rule};

/// The columns of a commit whose block is not stored as it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredCommit<'a> {
    pub(crate) did: &'a str,
    pub(crate) rev: &'a str,
    /// Of 64 bytes, or of another length in a row that was not written here.
    pub(crate) sig: &'a [u8],
    /// The block, if the fields do not give it.
    pub(crate) block: Option<&'a [u8]>,
}

impl StoredCommit<'_> {
    /// The bytes that were signed, if this is the root of the tree; or the rule that the columns break.
    pub(crate) fn signing_bytes(&self, data: Cid) -> Result<Vec<u8>, BrokenRule> {
        let Self { did, rev, sig, block } = *self;
        let refused = |message: &str| Err((Rule::Value.code(), message.to_owned()));
        let Ok(sig): Result<&[u8; 64], _> = sig.try_into() else {
            return refused("sig has other than 64 bytes");
        };
        let Some(block) = block else {
            return Ok(UnsignedCommit { did, rev, data, prev: None }.to_bytes());
        };
        match Commit::parse(block) {
            Ok(commit) if (commit.did, commit.rev, commit.sig) != (did, rev, sig) => {
                refused("commit_block is not the commit of its row")
            }
            Ok(commit) if commit.data != data => Err((
                Rule::Records.code(),
                format!("the records give the tree {data}, the commit has {}", commit.data),
            )),
            Ok(commit) => Ok(commit.signing_bytes().to_vec()),
            Err(_) => refused("commit_block is not the commit of its row"),
        }
    }

    /// The block of the commit with this root of the tree; `None` if the columns are not from a commit.
    pub(crate) fn to_block(self, data: Cid) -> Option<Vec<u8>> {
        let Self { did, rev, sig, block } = self;
        let fields = UnsignedCommit { did, rev, data, prev: None };
        match block {
            Some(block) => Some(block.to_vec()),
            None => Some(fields.with_signature(sig.try_into().ok()?)),
        }
    }
}

/// The block of a commit, if its fields do not give it.
pub(crate) fn unusual_block<'a>(commit: &Commit<'_>, block: &'a [u8]) -> Option<&'a [u8]> {
    let fields = UnsignedCommit { did: commit.did, rev: commit.rev, data: commit.data, prev: None };
    (fields.with_signature(commit.sig) != block).then_some(block)
}
