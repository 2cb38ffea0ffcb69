//! The signed side of the comparison: the commit of an account from its own host, and the nodes of its tree.

use std::collections::BTreeMap;

use atproto::commit::Commit;
use atproto::mst::TreeError;
use atproto::mst::canonical::{KeyRanges, RangeWalk};
use atproto::repo::Archive;
use atproto::syntax::{Did, Tid};
use codec::car::{self, CarError};
use codec::{AnyCid, Cid};
use crypto::PublicKey;
use net::http::Url;
use net::xrpc::{ErrorName, PacedClient, XrpcError};
use verify::record::{self, Slice};
use verify::repository::RepositoryRejection;

/// A commit whose signature is verified.
#[derive(Clone, Debug)]
pub(crate) struct SignedCommit {
    pub(crate) cid: Cid,
    pub(crate) block: Vec<u8>,
    pub(crate) rev: Tid,
    /// The root of the tree.
    pub(crate) data: Cid,
}

/// Why the signed side is not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignedError {
    #[error(transparent)]
    Request(#[from] XrpcError),
    #[error("{0}: the archive of the answer: {1}")]
    Archive(&'static str, CarError),
    #[error("the commit: {0}")]
    Commit(#[from] RepositoryRejection),
    #[error("the signed tree: {0}")]
    Tree(#[from] TreeError),
}

impl SignedError {
    /// The stable code of the broken rule; `None` if a request failed.
    pub(crate) fn code(&self) -> Option<&'static str> {
        match self {
            Self::Request(_) => None,
            Self::Archive(_, error) => Some(error.fault.code()),
            Self::Commit(rejection) => Some(rejection.code()),
            Self::Tree(error) => Some(error.fault.code()),
        }
    }
}

/// The host of an account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccountHost<'h> {
    pub(crate) client: &'h PacedClient,
    pub(crate) url: &'h Url,
    pub(crate) did: Did<'h>,
}

impl AccountHost<'_> {
    /// The newest commit, signed by `key`.
    pub(crate) async fn commit(&self, key: &PublicKey) -> Result<SignedCommit, SignedError> {
        let (url, did) = (self.url, self.did);
        for attempt in 1.. {
            let latest = self.client.request(url, "getLatestCommit", async |client| {
                client.get_latest_commit(url, did).await
            });
            let cid = latest.await?.cid;
            match self.blocks(&[cid]).await {
                // The account has written meanwhile.
                Err(SignedError::Request(error))
                    if attempt < MAX_COMMITS && error.name() == Some(&ErrorName::BlockNotFound) => {
                }
                blocks => return self.verified(cid, blocks?.remove(&cid), key),
            }
        }
        unreachable!("the last attempt returns")
    }

    fn verified(
        &self,
        cid: Cid,
        block: Option<Vec<u8>>,
        key: &PublicKey,
    ) -> Result<SignedCommit, SignedError> {
        let block = block.unwrap_or_default();
        // An empty block is refused, as a missing one.
        let archive =
            archive_of(cid, [(cid, block.as_slice())].into_iter().filter(|of| !of.1.is_empty()));
        let slice =
            Slice::read(&archive, Some(self.did.as_str()), key, &record::Options::default())?;
        let Commit { rev, data, .. } = *slice.commit();
        let rev = Tid::parse(rev).expect("a commit with another rev is rejected");
        Ok(SignedCommit { cid, rev, data, block })
    }

    /// The records of the tree in the ranges, by path. Nodes come from `known`, and the others from the host; they are added to `known`
    /// and counted.
    pub(crate) async fn records(
        &self,
        root: Cid,
        ranges: KeyRanges,
        known: &mut BTreeMap<Cid, Vec<u8>>,
    ) -> Result<SignedRecords, SignedError> {
        let mut walk = RangeWalk::new(root, ranges, MAX_NODES);
        let (mut nodes, mut fetched) = (Vec::new(), 0);
        loop {
            let needed: Vec<Cid> = walk.needed().collect();
            if needed.is_empty() {
                break;
            }
            let unknown: Vec<Cid> =
                needed.iter().filter(|cid| !known.contains_key(cid)).copied().collect();
            for cids in unknown.chunks(BLOCKS_PER_REQUEST) {
                let blocks = self.blocks(cids).await?;
                fetched += blocks.len() as u64;
                known.extend(blocks);
            }
            for cid in needed {
                // A node that the host withholds stays needed: the walk names it at its end.
                let Some(block) = known.get(&cid) else { return Err(missing(cid)) };
                walk.supply(&cid, block)?;
                nodes.push(cid);
            }
        }
        Ok(SignedRecords { records: walk.finish()?, nodes, fetched })
    }

    /// Blocks, with the hashes in their CIDs; the host may leave some out, and send no others.
    async fn blocks(&self, cids: &[Cid]) -> Result<BTreeMap<Cid, Vec<u8>>, SignedError> {
        let (url, did, method) = (self.url, self.did, "getBlocks");
        let bytes = self
            .client
            .request(url, method, async |client| client.get_blocks(url, did, cids).await);
        let bytes = bytes.await?;
        let archive = Archive::read(&bytes, &car::Options::default())
            .map_err(|error| SignedError::Archive(method, error))?;
        let block = |cid: &Cid| Some((*cid, archive.block(cid)?.to_vec()));
        Ok(cids.iter().filter_map(block).collect())
    }
}

/// The records of a signed tree in some ranges.
#[derive(Debug)]
pub(crate) struct SignedRecords {
    pub(crate) records: BTreeMap<Vec<u8>, AnyCid>,
    /// The nodes that prove them.
    pub(crate) nodes: Vec<Cid>,
    /// Number of nodes that came from the host.
    pub(crate) fetched: u64,
}

/// An archive with this root.
pub(crate) fn archive_of<'b>(
    root: Cid,
    blocks: impl IntoIterator<Item = (Cid, &'b [u8])>,
) -> Vec<u8> {
    let mut writer = car::Writer::new(Vec::new(), &[root]).expect("memory takes all");
    for (cid, block) in blocks {
        writer.block(&cid, block).expect("memory takes all");
    }
    writer.into_inner()
}

fn missing(cid: Cid) -> SignedError {
    TreeError { cid: Some(cid), offset: 0, fault: atproto::mst::TreeFault::Missing }.into()
}

/// Attempts to get the block of the newest commit while the account writes.
const MAX_COMMITS: u32 = 4;

/// Blocks that are requested at a time: their CIDs are a part of the URL.
const BLOCKS_PER_REQUEST: usize = 90;

/// Maximum number of nodes of a walk.
const MAX_NODES: u64 = 10_000_000;
