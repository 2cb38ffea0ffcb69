//! Which records does a repository hold, and what do they say?

use bumpalo::Bump;
use codec::cbor::{self, DecodeError, Value};
use codec::json::{self, JsonError};
use codec::{Cid, CidRef};

use super::error::{RepoError, RepoFault, fail};
use super::{Archive, Repository, SequentialBlocks};
use crate::mst::TreeLimits;
use crate::mst::canonical::{Step, Walk};

/// A record of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its path: collection and record key, if it is a legal one.
    pub path: String,
    /// Its name.
    pub cid: Cid,
    /// Its bytes.
    pub block: &'a [u8],
}

/// Why a record has no JSON.
#[derive(Debug, thiserror::Error)]
pub enum RecordJsonError {
    /// It is not canonical DAG-CBOR.
    #[error(transparent)]
    Cbor(#[from] DecodeError),
    /// It holds what JSON cannot tell.
    #[error(transparent)]
    Json(#[from] JsonError),
}

impl<'a> Record<'a> {
    /// What the record says.
    ///
    /// # Errors
    /// If its bytes are not canonical DAG-CBOR.
    pub fn value(&self, arena: &'a Bump) -> Result<Value<'a>, DecodeError> {
        cbor::decode(self.block, arena)
    }

    /// The record as the JSON of the AT Protocol's data model, on one line.
    ///
    /// # Errors
    /// If its bytes are not canonical DAG-CBOR, or have no JSON form.
    pub fn to_json(&self) -> Result<String, RecordJsonError> {
        let arena = Bump::new();
        Ok(json::encode(&cbor::decode(self.block, &arena)?)?)
    }
}

/// The records of a repository in the order of their paths.
///
/// Each was found by a strict walk over the tree, which is proved sound only when the last was
/// handed over. After an error the iterator goes on with what stands beside it.
#[derive(Clone, Debug)]
pub struct Records<'r, 'a> {
    archive: &'r Archive<'a>,
    walk: Walk<'a, SequentialBlocks<'r, 'a>>,
}

impl<'a> Repository<'a> {
    /// The records in the order of their paths.
    pub fn records(&self) -> Records<'_, 'a> {
        Records { archive: &self.archive, walk: self.walk(&TreeLimits::default()) }
    }
}

impl<'a> Iterator for Records<'_, 'a> {
    type Item = Result<Record<'a>, RepoError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.walk.next()? {
                Ok(Step::Node { .. }) => {}
                Ok(Step::Record { key, value }) => return Some(record(self.archive, key, value)),
                Err(error) => return Some(Err(RepoError::in_tree(error, self.archive))),
            }
        }
    }
}

fn record<'a>(
    archive: &Archive<'a>,
    key: &[u8],
    value: CidRef<'_>,
) -> Result<Record<'a>, RepoError> {
    let (cid, block) = record_block(archive, value)?;
    match String::from_utf8(key.to_vec()) {
        Ok(path) => Ok(Record { path, cid, block }),
        Err(_) => fail(Some(cid), RepoFault::Key),
    }
}

/// The block of a record that the tree names.
#[inline]
pub(super) fn record_block<'a>(
    archive: &Archive<'a>,
    value: CidRef<'_>,
) -> Result<(Cid, &'a [u8]), RepoError> {
    let Some(cid) = value.to_cid().filter(|_| value.is_dag_cbor()) else {
        return fail(value.to_cid(), RepoFault::RecordLink);
    };
    match archive.block(&cid) {
        Some(block) => Ok((cid, block)),
        None => fail(Some(cid), RepoFault::MissingRecord),
    }
}
