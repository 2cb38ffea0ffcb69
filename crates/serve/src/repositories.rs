//! Whole repositories, records and blocks: from the archive, and from the events that are not sealed into it yet.
//!
//! ```text
//! archive ── snapshot, events ──┐
//! window  ── unsealed events ───┴── NewestRepository ──┬── getRepo, in parts as the client takes them
//!                                   (some in memory)   ├── getRecord
//!                                                      └── getBlocks
//! ```

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use archive::{ArchiveError, LaterEvent, NewestRepository, RepositoryBlocks};
use atproto::syntax::{Nsid, RecordKey};
use bytes::Bytes;
use codec::Cid;
use futures_util::stream::{self, Stream};
use http_body_util::{Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use net::client_places::{ClientPlace, ClientPlaces};
use net::http_server::MoreTime;
use net::server_places::PeerAddress;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::log::EventLog;
use crate::shared::Shared;
use crate::xrpc::{Query, XrpcError, check_active};

/// The repositories that were asked for last, and places for the clients that ask.
#[derive(Debug)]
pub(crate) struct Repositories {
    places: Arc<ClientPlaces>,
    /// The last one is the one that was asked for last.
    known: Mutex<Vec<Known>>,
}

#[derive(Clone, Debug)]
struct Known {
    did: String,
    repository: Arc<NewestRepository>,
}

/// What a client asks for of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    Record(String),
    Blocks(HashSet<Cid>),
}

/// A CAR, in memory or in parts.
pub(crate) type CarBody = http_body_util::Either<Full<Bytes>, StreamBody<CarParts>>;

type CarParts = std::pin::Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, BrokenOff>> + Send>>;

/// What is sent of a CAR.
#[derive(Debug)]
enum Sent {
    Part(Bytes),
    End,
}

/// The CAR cannot be read to its end.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the repository cannot be read to its end")]
pub(crate) struct BrokenOff;

impl Default for Repositories {
    fn default() -> Self {
        let places = ClientPlaces::with_address_limit(MAX_CLIENTS, MAX_PER_ADDRESS, MIN_IDLE);
        Self { places, known: Mutex::default() }
    }
}

/// Answers a query by the name of its method; `None` for another method, or without an archive.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    method: &str,
    query: Query<'_>,
    address: PeerAddress,
) -> Option<Result<Response<CarBody>, XrpcError>> {
    shared.log.history.as_ref()?;
    let part = match method {
        "com.atproto.sync.getRepo" => Ok(Part::Whole),
        "com.atproto.sync.getRecord" => record(query),
        "com.atproto.sync.getBlocks" => blocks(query),
        _ => return None,
    };
    Some(match (query.did(), part) {
        (Ok(did), Ok(part)) => find(shared, did, part, address).await,
        (Err(refused), _) | (_, Err(refused)) => Err(refused),
    })
}

fn record(query: Query<'_>) -> Result<Part, XrpcError> {
    let (collection, rkey) = (query.required("collection")?, query.required("rkey")?);
    if Nsid::parse(&collection).is_err() {
        return Err(XrpcError::invalid("collection is no NSID"));
    }
    if RecordKey::parse(&rkey).is_err() {
        return Err(XrpcError::invalid("rkey is no record key"));
    }
    Ok(Part::Record(format!("{collection}/{rkey}")))
}

fn blocks(query: Query<'_>) -> Result<Part, XrpcError> {
    let cids = query.all("cids").map(|cid| cid.parse().ok()).collect::<Option<HashSet<Cid>>>();
    match cids {
        Some(cids) if !cids.is_empty() => Ok(Part::Blocks(cids)),
        Some(_) => Err(XrpcError::invalid("cids is missing")),
        None => Err(XrpcError::invalid("cids are CIDs of the protocol")),
    }
}

/// Finds a repository on a thread, as it takes processor time, and answers with the part of it.
async fn find(
    shared: &Arc<Shared>,
    did: String,
    part: Part,
    address: PeerAddress,
) -> Result<Response<CarBody>, XrpcError> {
    let place = shared.repositories.places.take(address).ok_or_else(busy)?;
    let (shared, runtime) = (shared.clone(), Handle::current());
    let found = spawn_blocking(move || {
        runtime.block_on(async {
            let repository = shared.repositories.get(&shared, &did).await?;
            match part {
                Part::Whole => Ok(in_parts(repository, place)),
                Part::Record(path) => Ok(in_memory(repository.prove_record(&path).await?)),
                Part::Blocks(cids) => {
                    let selected = repository.blocks().await?.select(&cids).await?;
                    selected.map(in_memory).ok_or_else(no_block)
                }
            }
        })
    });
    // The thread ends early only with the process.
    found.await.unwrap_or_else(|_| Err(failed()))
}

impl Repositories {
    /// The repository of an account that is not inactive, as new as the directory knows it.
    async fn get(&self, shared: &Shared, did: &str) -> Result<Arc<NewestRepository>, XrpcError> {
        // What was erased or hidden since can still be in memory.
        let history = shared.log.history.as_ref().ok_or_else(failed)?;
        let hidden = history.archive().hide_list().await?;
        if hidden.has_account(did) || hidden.has_records_of(did) {
            return Err(not_whole());
        }
        // An account that no event named can be in the archive.
        let account = shared.directory.account(did)?;
        account.as_ref().map_or(Ok(()), check_active)?;
        let head = account.and_then(|account| account.head);
        let rev = head.map(|(rev, _)| rev).unwrap_or_default();
        if let Some(known) = self.known(did, &rev) {
            return Ok(known);
        }
        let later = unsealed(&shared.log, did)?;
        let found = history.archive().newest_repository(did, later).await?;
        let found = found.filter(|found| *found.rev() >= *rev).ok_or_else(not_whole)?;
        let known = Known { did: did.to_owned(), repository: Arc::new(found) };
        self.keep(known.clone());
        Ok(known.repository)
    }

    fn known(&self, did: &str, rev: &str) -> Option<Arc<NewestRepository>> {
        let mut known = self.lock();
        let at = known.iter().position(|of| of.did == did)?;
        let found = known.remove(at);
        if found.repository.rev() < rev {
            return None;
        }
        known.push(found.clone());
        Some(found.repository)
    }

    fn keep(&self, new: Known) {
        let mut known = self.lock();
        known.retain(|of| of.did != new.did);
        known.push(new);
        let memory = |known: &[Known]| known.iter().map(|of| of.repository.memory()).sum::<usize>();
        while memory(&known) > MAX_MEMORY || known.len() > MAX_KNOWN {
            known.remove(0);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The events of an account that are not sealed yet.
fn unsealed(log: &EventLog, did: &str) -> Result<Vec<LaterEvent>, XrpcError> {
    let mut reader = log.wal.reader(log.wal.sealed_until()?);
    let (mut events, mut bytes) = (Vec::new(), 0);
    while let Some(group) = reader.next_group()? {
        for event in group.events().iter().filter(|event| event.did == Some(did)) {
            let frame = group.frame(event);
            bytes += frame.len();
            events.push(LaterEvent { frame, key: event.key.map(str::to_owned) });
        }
        if bytes > MAX_UNSEALED {
            return Err(busy());
        }
    }
    Ok(events)
}

fn in_memory(car: Vec<u8>) -> Response<CarBody> {
    car_response(CarBody::Left(Full::new(car.into())))
}

/// An answer whose parts are read while the client takes them.
fn in_parts(repository: Arc<NewestRepository>, place: ClientPlace) -> Response<CarBody> {
    let (parts, receiver) = mpsc::channel(PARTS_AHEAD);
    let runtime = Handle::current();
    spawn_blocking(move || runtime.block_on(send_parts(repository, place, parts)));
    let mut response = car_response(CarBody::Right(StreamBody::new(stream_of(receiver))));
    response.extensions_mut().insert(MoreTime(MAX_TIME));
    response
}

/// The parts as a stream, which ends with an error if the last part does not come.
fn stream_of(receiver: Receiver<Sent>) -> CarParts {
    let next = async |receiver: Option<Receiver<Sent>>| {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Sent::Part(part)) => Some((Ok(Frame::data(part)), Some(receiver))),
            Some(Sent::End) => None,
            None => Some((Err(BrokenOff), None)),
        }
    };
    Box::pin(stream::unfold(Some(receiver), next))
}

/// Sends the parts of a repository, until the client is gone, reads too slowly or gives way to another one.
async fn send_parts(repository: Arc<NewestRepository>, place: ClientPlace, parts: Sender<Sent>) {
    let sent = match repository.blocks().await {
        Ok(mut blocks) => send_blocks(&mut blocks, &place, &parts).await,
        Err(error) => Err(error),
    };
    if let Err(error) = sent {
        tracing::warn!(target: "wireproof::serve", "a repository cannot be read to its end: {error}");
    }
}

async fn send_blocks(
    blocks: &mut RepositoryBlocks<'_>,
    place: &ClientPlace,
    parts: &Sender<Sent>,
) -> Result<(), ArchiveError> {
    let gives_way = place.gives_way();
    loop {
        let part = blocks.next_part().await?;
        let (part, is_last) = match part {
            Some(part) => (Sent::Part(part.into()), false),
            None => (Sent::End, true),
        };
        let is_sent = tokio::select! {
            sent = timeout(MAX_STALL, parts.send(part)) => sent.is_ok_and(|sent| sent.is_ok()),
            () = gives_way.requested() => false,
        };
        if is_last || !is_sent {
            return Ok(());
        }
        place.note_taken();
    }
}

fn car_response(body: CarBody) -> Response<CarBody> {
    let mut response = Response::new(body);
    let content_type = HeaderValue::from_static("application/vnd.ipld.car");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

fn busy() -> XrpcError {
    let message = "all places for clients of repositories are in use";
    XrpcError::new(StatusCode::SERVICE_UNAVAILABLE, "NotEnoughResources", message)
}

fn failed() -> XrpcError {
    XrpcError::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", "")
}

fn not_whole() -> XrpcError {
    let message = "this server does not have the whole repository of this account";
    XrpcError::new(StatusCode::NOT_FOUND, "RepoNotFound", message)
}

fn no_block() -> XrpcError {
    let message = "the newest revision of the repository lacks one of these blocks";
    XrpcError::new(StatusCode::NOT_FOUND, "BlockNotFound", message)
}

impl From<ArchiveError> for XrpcError {
    fn from(error: ArchiveError) -> Self {
        tracing::warn!(target: "wireproof::serve", "a repository cannot be read: {error}");
        let message = "the repository cannot be read";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", message)
    }
}

/// Clients of repositories at the same time, as every one of them takes processor time and memory.
const MAX_CLIENTS: usize = 8;
const MAX_PER_ADDRESS: usize = 4;

/// Time without a part taken after which a client gives way to another one.
const MIN_IDLE: Duration = Duration::from_secs(2);

/// Time in which a client takes a part.
const MAX_STALL: Duration = Duration::from_secs(30);

/// Time in which a client takes a whole repository.
const MAX_TIME: Duration = Duration::from_secs(3_600);

/// Parts that are read ahead of the client.
const PARTS_AHEAD: usize = 4;

/// Repositories in memory without their stored records, and their size in bytes.
const MAX_KNOWN: usize = 16;
const MAX_MEMORY: usize = 64 << 20;

/// The most bytes of an account's frames that are not sealed yet.
const MAX_UNSEALED: usize = 64 << 20;
