//! Fetching only the part of a repository that proves some collections: the signed commit, the tree nodes that can have keys of the
//! collections, and their records.
//!
//! `getRecord` for a key at the start of the first collection brings the commit and the nodes on the way to this key; if a server refuses,
//! `getLatestCommit` and `getBlocks` bring the commit. An earlier commit comes from `getBlocks` too. Every layer of nodes names the nodes of the next layer, which `getBlocks` brings, many
//! in one request. The records come last.
//!
//! `getRepo` replaces the rest of these requests where it costs less, or where the server has no `getBlocks`: [`WholeReason`].
//!
//! The slice is a claim of the host. [`verify::collections`] proves it, or names the node or record that is missing or wrong.

mod part;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use atproto::commit::Commit;
use atproto::mst::canonical::{KeyRanges, RangeOutlook, RangeWalk};
use atproto::repo::Archive;
use atproto::syntax::{CollectionPatternBuf, Did, NsidBuf, RecordKey};
use bytes::Bytes;
use codec::car::{self, CarError};
use codec::{AnyCid, Cid};
use reqwest::Url;
use tokio::time::timeout;

pub(crate) use self::part::WrittenPart;
use super::client::Client;
use super::error::{ErrorName, NamedError, XrpcError, XrpcFault};
use crate::http::{HttpFault, Limits};

/// A fetched slice, which is not yet verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedSlice {
    /// A CAR whose root is the commit.
    pub archive: Vec<u8>,
    /// Number of requests.
    pub requests: u64,
    /// Number of received bytes.
    pub received: u64,
    /// Why the whole repository was fetched, if it was. The archive still has the blocks of the slice alone.
    pub whole: Option<WholeReason>,
}

/// Why the whole repository is fetched for a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WholeReason {
    /// The rest of the slice costs more. Its nodes so far say so: about `requests` more requests, for at least about `records` of
    /// `of` records. A request counts as much as 32 KiB.
    Cost {
        /// Number of requests.
        requests: u64,
        /// Number of records in the collections.
        records: u64,
        /// Number of records in the repository.
        of: u64,
    },
    /// The server has no `getBlocks`.
    NoBlocks(XrpcError),
}

impl fmt::Display for WholeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cost { requests, records, of } => write!(
                f,
                "about {requests} more requests for about {records} of {of} records cost more"
            ),
            Self::NoBlocks(error) => write!(f, "{error}"),
        }
    }
}

/// What is wanted of a repository.
#[derive(Clone, Copy, Debug)]
pub struct WantedPart<'w> {
    /// The collections.
    pub collections: &'w [CollectionPatternBuf],
    /// Their commit, which may be an earlier one that the server still has; `None` for the present commit.
    pub commit: Option<Cid>,
}

/// The part of a repository, or why the whole repository is to be fetched instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchedPart {
    /// The slice.
    Slice(FetchedSlice),
    /// Nothing.
    Whole(WholeReason),
}

/// Delays the requests for a slice: each but the first awaits it. The pace of the host is one.
pub trait RequestTurn: fmt::Debug + Send + Sync {
    /// Waits until the next request may be sent.
    fn wait(&self) -> TurnWait<'_>;
}

/// The wait for a turn; an error ends the fetch.
pub type TurnWait<'t> = Pin<Box<dyn Future<Output = Result<(), XrpcError>> + Send + 't>>;

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
    /// An archive has no commit.
    #[error("{0}: the answer has no commit")]
    NoCommit(&'static str),
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
            Self::NoCommit(_) => Some("commit/missing-block"),
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
        collections: &[CollectionPatternBuf],
        limits: &Limits,
    ) -> Result<FetchedSlice, SliceError> {
        let wanted = Wanted::new(WantedPart { collections, commit: None });
        let mut fetch = SliceFetch::new(self, host, did, limits, &NoTurn);
        let fetched = async {
            match fetch.of_latest_commits(&wanted).await? {
                FetchedPart::Slice(slice) => Ok(slice),
                FetchedPart::Whole(reason) => fetch.of_whole(&wanted, reason).await,
            }
        };
        let slice = timeout(limits.max_time, fetched).await;
        slice.unwrap_or(Err(SliceError::Time(limits.max_time)))
    }

    /// As [`fetch_collections`](Self::fetch_collections), but of the wanted commit, and never of the whole repository: the result says why
    /// it should be fetched. `turn` is awaited before each request but the first.
    ///
    /// # Errors
    /// As [`fetch_collections`](Self::fetch_collections), if the server does not have the commit any more, and if `turn` fails.
    pub async fn fetch_part(
        &self,
        host: &Url,
        did: Did<'_>,
        wanted: WantedPart<'_>,
        limits: &Limits,
        turn: &dyn RequestTurn,
    ) -> Result<FetchedPart, SliceError> {
        let wanted = Wanted::new(wanted);
        let mut fetch = SliceFetch::new(self, host, did, limits, turn);
        fetch.max_part_bytes = limits.max_bytes;
        let part = async {
            match wanted.commit {
                None => fetch.of_latest_commits(&wanted).await,
                Some(_) => fetch.run(&wanted).await.map_err(|(error, _)| error),
            }
        };
        let part = timeout(limits.max_time, part).await;
        part.unwrap_or(Err(SliceError::Time(limits.max_time)))
    }
}

/// The keys and the commit of a slice.
struct Wanted {
    ranges: KeyRanges,
    /// A collection at the start of them.
    first: Option<NsidBuf>,
    commit: Option<Cid>,
}

impl Wanted {
    fn new(WantedPart { collections, commit }: WantedPart<'_>) -> Self {
        let first = collections.iter().min().map(|pattern| pattern.as_pattern().first_collection());
        Self { ranges: KeyRanges::of_collections(collections), first, commit }
    }
}

/// Never waits.
#[derive(Debug)]
struct NoTurn;

impl RequestTurn for NoTurn {
    fn wait(&self) -> TurnWait<'_> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The requests for a slice.
struct SliceFetch<'f> {
    client: &'f Client,
    host: &'f Url,
    did: Did<'f>,
    limits: &'f Limits,
    turn: &'f dyn RequestTurn,
    /// Maximum bytes of a part, above which the whole repository is fetched.
    max_part_bytes: u64,
    /// The most blocks in a request, as far as the server takes it.
    blocks_per_request: usize,
    requests: u64,
    received: u64,
}

/// The blocks of a slice so far, the commit first.
struct SliceBlocks {
    root: Cid,
    blocks: Vec<(Cid, Vec<u8>)>,
}

/// Where the blocks of a slice are.
#[derive(Clone, Copy)]
enum Rest<'r, 'a> {
    /// In the first answer, and the others on the server.
    Requested(Option<&'r Archive<'a>>),
    /// In this archive alone.
    Of(&'r Archive<'a>),
}

/// An error, and the commit if it was known.
type Failed = (SliceError, Option<Cid>);

impl<'f> SliceFetch<'f> {
    fn new(
        client: &'f Client,
        host: &'f Url,
        did: Did<'f>,
        limits: &'f Limits,
        turn: &'f dyn RequestTurn,
    ) -> Self {
        Self {
            client,
            host,
            did,
            limits,
            turn,
            max_part_bytes: u64::MAX,
            blocks_per_request: BLOCKS_PER_REQUEST,
            requests: 0,
            received: 0,
        }
    }

    /// The slice of the first commit whose blocks are all served.
    async fn of_latest_commits(&mut self, wanted: &Wanted) -> Result<FetchedPart, SliceError> {
        for _ in 1..MAX_COMMITS {
            let (error, root) = match self.run(wanted).await {
                Ok(part) => return Ok(part),
                Err(failed) => failed,
            };
            let is_refused =
                matches!(&error, SliceError::Xrpc(XrpcError { fault: XrpcFault::Named(_), .. }));
            match root {
                Some(root) if is_refused && self.latest_commit().await? != root => {}
                _ => return Err(error),
            }
        }
        self.run(wanted).await.map_err(|(error, _)| error)
    }

    async fn run(&mut self, wanted: &Wanted) -> Result<FetchedPart, Failed> {
        let probe = self.probe(wanted).await.map_err(|error| (error, None))?;
        let first = match &probe {
            Some(bytes) => Some(read("getRecord", bytes).map_err(|error| (error, None))?),
            None => None,
        };
        let root = match (wanted.commit, &first) {
            (Some(commit), _) => commit,
            (None, Some(archive)) => {
                root_of("getRecord", archive).map_err(|error| (error, None))?
            }
            (None, None) => self.latest_commit().await.map_err(|error| (error, None))?,
        };
        let mut slice = SliceBlocks { root, blocks: Vec::new() };
        let rest = Rest::Requested(first.as_ref());
        match self.fill(&mut slice, rest, wanted).await {
            Ok(None) => Ok(FetchedPart::Slice(self.finish(&slice, None))),
            Ok(Some(reason)) => Ok(FetchedPart::Whole(reason)),
            Err(SliceError::Xrpc(error)) if is_without_method(&error) => {
                Ok(FetchedPart::Whole(WholeReason::NoBlocks(error)))
            }
            Err(error) => Err((error, Some(root))),
        }
    }

    /// The slice of the whole repository.
    async fn of_whole(
        &mut self,
        wanted: &Wanted,
        reason: WholeReason,
    ) -> Result<FetchedSlice, SliceError> {
        let bytes = self.repository().await?;
        let archive = read("getRepo", &bytes)?;
        let root = root_of("getRepo", &archive)?;
        let mut slice = SliceBlocks { root, blocks: Vec::new() };
        self.fill(&mut slice, Rest::Of(&archive), wanted).await?;
        Ok(self.finish(&slice, Some(reason)))
    }

    /// Waits until the next request may be sent, and counts it.
    async fn begin_request(&mut self) -> Result<(), XrpcError> {
        if self.requests > 0 {
            self.turn.wait().await?;
        }
        self.requests += 1;
        Ok(())
    }

    async fn repository(&mut self) -> Result<Bytes, SliceError> {
        self.begin_request().await?;
        let max_bytes = self.limits.max_bytes.saturating_sub(self.received);
        let limits = Limits { max_bytes, ..*self.limits };
        let mut stream = self.client.get_repo(self.host, self.did, None, &limits).await?;
        let bytes = stream.read_to_end().await;
        self.received += stream.wire_bytes();
        bytes.map_err(|error| match error.fault {
            XrpcFault::Http(HttpFault::TooLarge(_)) => SliceError::Size(self.limits.max_bytes),
            _ => error.into(),
        })
    }

    /// The commit and the nodes on the way to the first key of the first collection, if the server proves its absence.
    async fn probe(&mut self, wanted: &Wanted) -> Result<Option<Bytes>, SliceError> {
        let Some(first) = &wanted.first else { return Ok(None) };
        let rkey = RecordKey::parse(FIRST_KEY).expect("a record key");
        self.begin_request().await?;
        match self.client.get_record(self.host, self.did, first.as_nsid(), rkey).await {
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
        if self.received > self.limits.max_bytes {
            return Err(SliceError::Size(self.limits.max_bytes));
        }
        Ok(())
    }

    async fn latest_commit(&mut self) -> Result<Cid, SliceError> {
        self.begin_request().await?;
        Ok(self.client.get_latest_commit(self.host, self.did).await?.cid)
    }

    /// Adds all blocks from the commit on, until one is missing or wrong. Returns a reason to fetch the whole repository instead.
    async fn fill(
        &mut self,
        slice: &mut SliceBlocks,
        rest: Rest<'_, '_>,
        wanted: &Wanted,
    ) -> Result<Option<WholeReason>, SliceError> {
        if !self.add(slice, rest, &[slice.root], |_, _| true).await? {
            return Ok(None);
        }
        let Ok(Commit { data, .. }) = Commit::parse(&slice.blocks[0].1) else { return Ok(None) };
        let max_nodes = self.limits.max_bytes / MIN_NODE_BYTES;
        let mut walk = RangeWalk::new(data, wanted.ranges.clone(), max_nodes);
        loop {
            if let (Rest::Requested(_), Some(reason)) = (rest, self.reason_for_whole(&walk)) {
                return Ok(Some(reason));
            }
            let needed: Vec<Cid> = walk.needed().collect();
            if needed.is_empty() {
                break;
            }
            let supply = |cid: &Cid, block: &[u8]| walk.supply(cid, block).is_ok();
            if !self.add(slice, rest, &needed, supply).await? {
                return Ok(None);
            }
        }
        let Ok(records) = walk.finish() else { return Ok(None) };
        let cids: BTreeSet<Cid> = records.values().filter_map(AnyCid::to_cid).collect();
        let cids: Vec<Cid> = cids.into_iter().collect();
        self.add(slice, rest, &cids, |_, _| true).await?;
        Ok(None)
    }

    /// The reason to fetch the whole repository, if it costs less than the rest of the walk, or the part is too large. The blocks received
    /// so far are then received twice, so the repository must have at least [`MIN_WHOLE`] times their bytes, by the lower of two estimates
    /// and with small records.
    fn reason_for_whole(&self, walk: &RangeWalk) -> Option<WholeReason> {
        let RangeOutlook { keys, keys_by_width, keys_in_ranges, layers, .. } = walk.outlook();
        let whole_bytes = keys.saturating_mul(RECORD_BYTES);
        let part_bytes = keys_in_ranges.saturating_mul(RECORD_BYTES);
        // Four records have a node.
        let blocks = keys_in_ranges.saturating_mul(5) / 4;
        let requests = layers + blocks.div_ceil(self.blocks_per_request as u64);
        let part_cost = part_bytes.saturating_add(requests.saturating_mul(REQUEST_BYTES));
        let is_cheaper = part_cost > whole_bytes.saturating_add(REQUEST_BYTES);
        let is_too_large = part_bytes > self.max_part_bytes;
        let least_bytes = keys.min(keys_by_width).saturating_mul(SMALL_RECORD_BYTES);
        let is_early = least_bytes / MIN_WHOLE >= self.received;
        let (records, of) = (keys_in_ranges, keys);
        let reason = WholeReason::Cost { requests, records, of };
        ((is_cheaper || is_too_large) && is_early).then_some(reason)
    }

    /// Adds blocks: those at hand, and the others by `getBlocks`. Returns whether all are there and `check` accepts them.
    async fn add(
        &mut self,
        slice: &mut SliceBlocks,
        rest: Rest<'_, '_>,
        cids: &[Cid],
        mut check: impl FnMut(&Cid, &[u8]) -> bool,
    ) -> Result<bool, SliceError> {
        let mut missing = Vec::new();
        for cid in cids {
            match rest.archive().and_then(|archive| archive.block(cid)) {
                Some(block) if !slice.push(*cid, block, &mut check) => return Ok(false),
                Some(_) => {}
                None => missing.push(*cid),
            }
        }
        if matches!(rest, Rest::Of(_)) {
            return Ok(missing.is_empty());
        }
        let mut missing = &missing[..];
        while !missing.is_empty() {
            let (requested, others) = missing.split_at(missing.len().min(self.blocks_per_request));
            let bytes = match self.blocks(requested).await {
                Ok(bytes) => bytes,
                Err(error) if requested.len() > 1 && is_too_large(&error) => {
                    self.blocks_per_request = requested.len() / 2;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
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
            missing = others;
        }
        Ok(true)
    }

    async fn blocks(&mut self, cids: &[Cid]) -> Result<Bytes, XrpcError> {
        self.begin_request().await?;
        self.client.get_blocks(self.host, self.did, cids).await
    }

    fn finish(&self, slice: &SliceBlocks, whole: Option<WholeReason>) -> FetchedSlice {
        let mut writer = car::Writer::new(Vec::new(), &[slice.root]).expect("memory takes all");
        for (cid, block) in &slice.blocks {
            writer.block(cid, block).expect("memory takes all");
        }
        let Self { requests, received, .. } = *self;
        FetchedSlice { archive: writer.into_inner(), requests, received, whole }
    }
}

impl<'r, 'a> Rest<'r, 'a> {
    /// The blocks at hand.
    fn archive(self) -> Option<&'r Archive<'a>> {
        match self {
            Self::Requested(first) => first,
            Self::Of(whole) => Some(whole),
        }
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

fn root_of(method: &'static str, archive: &Archive<'_>) -> Result<Cid, SliceError> {
    let root = archive.roots().first().and_then(|root| root.to_cid());
    root.ok_or(SliceError::NoCommit(method))
}

/// Whether a server has no such method.
fn is_without_method(error: &XrpcError) -> bool {
    match &error.fault {
        XrpcFault::Named(NamedError { name, .. }) => {
            matches!(name, ErrorName::MethodNotImplemented) || name.as_str() == "XRPCNotSupported"
        }
        XrpcFault::Status(status) => matches!(status, 404 | 405 | 501),
        _ => false,
    }
}

/// Whether fewer blocks in a request may help: the URL or the answer is too long.
fn is_too_large(error: &XrpcError) -> bool {
    match &error.fault {
        XrpcFault::Named(NamedError { status, .. }) | XrpcFault::Status(status) => {
            matches!(status, 413 | 414 | 431)
        }
        XrpcFault::Http(HttpFault::TooLarge(_)) => true,
        _ => false,
    }
}

/// The first of all record keys.
const FIRST_KEY: &str = "-";
/// Number of CIDs in a request: about 6 KiB of URL, and servers take 8 KiB at least.
const BLOCKS_PER_REQUEST: usize = 90;
/// The cost of a request, in bytes received.
const REQUEST_BYTES: u64 = 32 << 10;
/// The mean bytes of a record in an archive, with its part of the tree.
const RECORD_BYTES: u64 = 420;
/// The same for a small record, such as a follow.
const SMALL_RECORD_BYTES: u64 = 270;
/// The least size of a whole repository, as a multiple of the bytes received before. If the estimate is six times the true size, at most a
/// tenth of the repository is received twice.
const MIN_WHOLE: u64 = 64;
/// A node with one entry has more bytes.
const MIN_NODE_BYTES: u64 = 32;
/// Number of commits for which a slice is begun.
const MAX_COMMITS: u32 = 3;
