//! Fetching only the part of a repository that proves some collections: the signed commit, the tree nodes that can have keys of the
//! collections, and their records.
//!
//! `getRecord` for a key at the start of the first collection brings the commit and the nodes on the way to this key; if a server refuses,
//! `getLatestCommit` and `getBlocks` bring the commit. Every layer of nodes names the nodes of the next layer, which `getBlocks` brings, many
//! in one request. The records come last.
//!
//! The slice is a claim of the host. [`verify::collections`] proves it, or names the node or record that is missing or wrong.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use atproto::commit::Commit;
use atproto::mst::canonical::{KeyRanges, RangeWalk};
use atproto::repo::Archive;
use atproto::syntax::{Did, Nsid, RecordKey};
use bytes::Bytes;
use codec::car::{self, CarError};
use codec::{AnyCid, Cid};
use reqwest::Url;
use tokio::time::timeout;

use super::client::Client;
use super::error::{XrpcError, XrpcFault};
use crate::http::Limits;

/// A fetched slice, which is not yet verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedSlice {
    /// A CAR whose root is the commit.
    pub archive: Vec<u8>,
    /// Number of requests.
    pub requests: u64,
    /// Number of received bytes.
    pub received: u64,
}

/// Why there is no slice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SliceError {
    /// A request failed.
    #[error(transparent)]
    Xrpc(#[from] XrpcError),
    /// An answer is not an archive, or a hash in it is wrong.
    #[error("{method}: {error}")]
    Archive {
        /// The method without the prefix `com.atproto.sync.`.
        method: &'static str,
        /// The broken rule.
        error: CarError,
    },
    /// `getRecord` brought an archive without the commit.
    #[error("getRecord: the answer has no commit")]
    NoCommit,
    /// `getBlocks` brought more blocks than requested.
    #[error("getBlocks: {received} blocks instead of {requested}")]
    Unrequested {
        /// Number of requested blocks.
        requested: usize,
        /// Number of received blocks.
        received: u64,
    },
    /// The answers have more bytes than allowed.
    #[error("more than {0} bytes")]
    Size(u64),
    /// All requests together take longer than allowed.
    #[error("no slice within {0:?}")]
    Time(Duration),
}

impl SliceError {
    /// The stable code of the broken rule; `None` if a request failed, or a limit of the caller was exceeded.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Xrpc(_) | Self::Size(_) | Self::Time(_) => None,
            Self::Archive { error, .. } => Some(error.fault.code()),
            Self::NoCommit => Some("commit/missing-block"),
            Self::Unrequested { .. } => Some("car/extra"),
        }
    }
}

impl Client {
    /// The slice that proves all records of `collections`. If the repository changes meanwhile and the server drops its former blocks,
    /// the slice is fetched anew, at most three times. Of the limits, `max_bytes` and `max_time` hold for all requests together.
    ///
    /// # Errors
    /// If a request fails, an answer is not an archive of the requested blocks, or the answers are too large or take too long. A slice
    /// with missing or wrong blocks is no error: its verification names them.
    pub async fn fetch_collections(
        &self,
        host: &Url,
        did: Did<'_>,
        collections: &[Nsid<'_>],
        limits: &Limits,
    ) -> Result<FetchedSlice, SliceError> {
        let fetch = SliceFetch {
            client: self,
            host,
            did,
            max_bytes: limits.max_bytes,
            requests: 0,
            received: 0,
        };
        let slice = timeout(limits.max_time, fetch.of_latest_commits(collections)).await;
        slice.unwrap_or(Err(SliceError::Time(limits.max_time)))
    }
}

/// The requests for a slice.
struct SliceFetch<'f> {
    client: &'f Client,
    host: &'f Url,
    did: Did<'f>,
    max_bytes: u64,
    requests: u64,
    received: u64,
}

/// The blocks of a slice so far, the commit first.
struct SliceBlocks {
    root: Cid,
    blocks: Vec<(Cid, Vec<u8>)>,
}

/// An error, and the commit if it was known.
type Failed = (SliceError, Option<Cid>);

impl SliceFetch<'_> {
    /// The slice of the first commit whose blocks are all served.
    async fn of_latest_commits(
        mut self,
        collections: &[Nsid<'_>],
    ) -> Result<FetchedSlice, SliceError> {
        for _ in 1..MAX_COMMITS {
            let (error, root) = match self.run(collections).await {
                Ok(slice) => return Ok(slice),
                Err(failed) => failed,
            };
            let is_refused =
                matches!(&error, SliceError::Xrpc(XrpcError { fault: XrpcFault::Named(_), .. }));
            match root {
                Some(root) if is_refused && self.latest_commit().await? != root => {}
                _ => return Err(error),
            }
        }
        self.run(collections).await.map_err(|(error, _)| error)
    }

    async fn run(&mut self, collections: &[Nsid<'_>]) -> Result<FetchedSlice, Failed> {
        let probe = self.probe(collections).await.map_err(|error| (error, None))?;
        let first = match &probe {
            Some(bytes) => Some(read("getRecord", bytes).map_err(|error| (error, None))?),
            None => None,
        };
        let root = match &first {
            Some(archive) => archive.roots().first().and_then(|root| root.to_cid()),
            None => Some(self.latest_commit().await.map_err(|error| (error, None))?),
        };
        let root = root.ok_or((SliceError::NoCommit, None))?;
        let mut slice = SliceBlocks { root, blocks: Vec::new() };
        match self.fill(&mut slice, first.as_ref(), collections).await {
            Ok(()) => Ok(self.finish(&slice)),
            Err(error) => Err((error, Some(root))),
        }
    }

    /// The commit and the nodes on the way to the first key of the first collection, if the server proves its absence.
    async fn probe(&mut self, collections: &[Nsid<'_>]) -> Result<Option<Bytes>, SliceError> {
        let Some(first) = collections.iter().min() else { return Ok(None) };
        let rkey = RecordKey::parse(FIRST_KEY).expect("a record key");
        self.requests += 1;
        match self.client.get_record(self.host, self.did, *first, rkey).await {
            Ok(bytes) => {
                self.count(&bytes)?;
                Ok(Some(bytes))
            }
            // Some servers refuse to prove that a record is absent.
            Err(XrpcError { fault: XrpcFault::Named(_) | XrpcFault::Status(_), .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Counts the bytes of an answer.
    fn count(&mut self, answer: &Bytes) -> Result<(), SliceError> {
        self.received += answer.len() as u64;
        if self.received > self.max_bytes {
            return Err(SliceError::Size(self.max_bytes));
        }
        Ok(())
    }

    async fn latest_commit(&mut self) -> Result<Cid, SliceError> {
        self.requests += 1;
        Ok(self.client.get_latest_commit(self.host, self.did).await?.cid)
    }

    /// Fetches all blocks from the commit on, until one is missing or wrong.
    async fn fill(
        &mut self,
        slice: &mut SliceBlocks,
        first: Option<&Archive<'_>>,
        collections: &[Nsid<'_>],
    ) -> Result<(), SliceError> {
        if !self.add(slice, first, &[slice.root], |_, _| true).await? {
            return Ok(());
        }
        let Ok(Commit { data, .. }) = Commit::parse(&slice.blocks[0].1) else { return Ok(()) };
        let prefixes = collections.iter().map(|collection| format!("{collection}/").into_bytes());
        let ranges = KeyRanges::of_prefixes(prefixes);
        let mut walk = RangeWalk::new(data, ranges, self.max_bytes / MIN_NODE_BYTES);
        loop {
            let needed: Vec<Cid> = walk.needed().collect();
            if needed.is_empty() {
                break;
            }
            let supply = |cid: &Cid, block: &[u8]| walk.supply(cid, block).is_ok();
            if !self.add(slice, first, &needed, supply).await? {
                return Ok(());
            }
        }
        let Ok(records) = walk.finish() else { return Ok(()) };
        let cids: BTreeSet<Cid> = records.values().filter_map(AnyCid::to_cid).collect();
        let cids: Vec<Cid> = cids.into_iter().collect();
        self.add(slice, first, &cids, |_, _| true).await.map(drop)
    }

    /// Adds blocks: those in `first`, and the others by `getBlocks`. Returns whether all are there and `check` accepts them.
    async fn add(
        &mut self,
        slice: &mut SliceBlocks,
        first: Option<&Archive<'_>>,
        cids: &[Cid],
        mut check: impl FnMut(&Cid, &[u8]) -> bool,
    ) -> Result<bool, SliceError> {
        let mut missing = Vec::new();
        for cid in cids {
            match first.and_then(|archive| archive.block(cid)) {
                Some(block) if !slice.push(*cid, block, &mut check) => return Ok(false),
                Some(_) => {}
                None => missing.push(*cid),
            }
        }
        for requested in missing.chunks(BLOCKS_PER_REQUEST) {
            self.requests += 1;
            let bytes = self.client.get_blocks(self.host, self.did, requested).await?;
            self.count(&bytes)?;
            let archive = read("getBlocks", &bytes)?;
            let received = archive.distinct().blocks;
            if received > requested.len() as u64 {
                return Err(SliceError::Unrequested { requested: requested.len(), received });
            }
            for cid in requested {
                let block = archive.block(cid);
                if !block.is_some_and(|block| slice.push(*cid, block, &mut check)) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn finish(&self, slice: &SliceBlocks) -> FetchedSlice {
        let mut writer = car::Writer::new(Vec::new(), &[slice.root]).expect("memory takes all");
        for (cid, block) in &slice.blocks {
            writer.block(cid, block).expect("memory takes all");
        }
        let Self { requests, received, .. } = *self;
        FetchedSlice { archive: writer.into_inner(), requests, received }
    }
}

impl SliceBlocks {
    /// Adds a block, and returns whether `check` accepts it.
    fn push(
        &mut self,
        cid: Cid,
        block: &[u8],
        check: &mut impl FnMut(&Cid, &[u8]) -> bool,
    ) -> bool {
        self.blocks.push((cid, block.to_vec()));
        check(&cid, block)
    }
}

/// Reads an answer, with the hashes of all blocks.
fn read<'a>(method: &'static str, bytes: &'a Bytes) -> Result<Archive<'a>, SliceError> {
    let options = car::Options::default();
    Archive::read(bytes, &options).map_err(|error| SliceError::Archive { method, error })
}

/// The first of all record keys.
const FIRST_KEY: &str = "-";
/// Number of CIDs in a request: about 6 KiB of URL, and servers take 8 KiB at least.
const BLOCKS_PER_REQUEST: usize = 90;
/// A node with one entry has more bytes.
const MIN_NODE_BYTES: u64 = 32;
/// Number of commits for which a slice is begun.
const MAX_COMMITS: u32 = 3;
