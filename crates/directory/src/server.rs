//! The server: its address, its connections, and the limits of both.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::{StopSignal, now_micros};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, CONTENT_TYPE, ETAG,
    HeaderValue, IF_NONE_MATCH, LOCATION, RETRY_AFTER,
};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use net::client_places::{ClientPlace, ClientPlaces};
use net::http_server::{ConnectionLimits, MoreTime};
use net::server_places::{Connections, PeerAddress, Place, accept_tcp};
use net::websocket_server::{switching, upgrade_key};
use store::StoreError;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, spawn_blocking};

use crate::answer::{Answer, HOME, answer, numbered_page};
use crate::body::AnswerBody;
use crate::kept_answers::{KeptAnswers, SentAnswer};
use crate::readers::Readers;
use crate::route::{After, Export, Route};
use crate::stream::{self, Start, Tail};

/// The mirror that is served, and the limits of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The file of the mirror.
    pub mirror: PathBuf,
    /// The address.
    pub listen: SocketAddr,
    /// Maximum number of open connections that are no streams. Default: 1,024.
    pub max_connections: usize,
    /// Maximum number of streams. Default: 1,000.
    pub max_streams: usize,
    /// Maximum number of streams of one address. Default: 100.
    pub max_streams_per_address: usize,
    /// Maximum number of answers of more than 256 KiB that clients take at a time. Default: 64.
    pub max_large_answers: usize,
    /// Age of the oldest operation that a stream begins with, as at the reference server. Default: 7 days.
    pub stream_window: Duration,
}

impl Options {
    /// The options for a mirror and an address, with the default limits.
    pub fn new(mirror: PathBuf, listen: SocketAddr) -> Self {
        Self {
            mirror,
            listen,
            max_connections: 1024,
            max_streams: 1_000,
            max_streams_per_address: 100,
            max_large_answers: 64,
            stream_window: Duration::from_secs(7 * 86_400),
        }
    }
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address cannot be bound.
    #[error("{0}: {1}")]
    Address(SocketAddr, #[source] std::io::Error),
    /// The mirror cannot be read.
    #[error(transparent)]
    Mirror(#[from] StoreError),
}

/// Serves a mirror as a directory.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: Options,
    /// The directory that takes new operations.
    directory: String,
    readers: Arc<Readers>,
    answers: Arc<KeptAnswers>,
    tail: Tail,
    streams: Arc<ClientPlaces>,
    large_answers: Arc<ClientPlaces>,
    /// Pages that are read at a time: a page takes a thread and a reader of the mirror.
    pages: Semaphore,
}

impl Server {
    /// Opens the mirror, and binds the address.
    ///
    /// # Errors
    /// If the mirror cannot be read or the address cannot be bound.
    pub async fn bind(options: Options) -> Result<Self, ServerError> {
        let readers = Arc::new(Readers::open(&options.mirror)?);
        let directory = readers.with(|mirror| mirror.totals())?.directory;
        let answers = Arc::new(KeptAnswers::new(MAX_KEPT_BYTES));
        let tail = Tail::open(readers.clone(), answers.clone())?;
        let failed = |error| ServerError::Address(options.listen, error);
        let listener = TcpListener::bind(options.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (max, of_address) = (options.max_streams, options.max_streams_per_address);
        let streams = ClientPlaces::with_address_limit(max, of_address, MIN_IDLE);
        let max = options.max_large_answers;
        let large_answers = ClientPlaces::with_address_limit(max, max.div_ceil(8), RESPONSE_LIMIT);
        let pages = Semaphore::new(MAX_PAGES);
        let shared = Arc::new(Shared {
            options,
            directory,
            readers,
            answers,
            tail,
            streams,
            large_answers,
            pages,
        });
        Ok(Self { listener, address, shared })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves clients until a stop is requested.
    pub async fn run(&self, stop: &StopSignal) {
        let connections = Connections::new(self.shared.options.max_connections);
        let mut clients = JoinSet::new();
        let tail = self.shared.tail.run();
        tokio::pin!(tail);
        loop {
            tokio::select! {
                () = stop.requested() => break,
                never = &mut tail => match never {},
                Some(_) = clients.join_next() => {}
                (stream, place) = connections.accept(|| accept_tcp(&self.listener)) => {
                    clients.spawn(serve(self.shared.clone(), stream, place, stop.clone()));
                }
            }
        }
        while clients.join_next().await.is_some() {}
    }
}

/// A stream that a request opens.
struct Opened {
    upgrade: OnUpgrade,
    place: ClientPlace,
    start: Start,
}

/// Serves the requests of a connection, and its stream if it is upgraded.
async fn serve(shared: Arc<Shared>, stream: TcpStream, place: Place, stop: StopSignal) {
    // It only delays small messages.
    let _ = stream.set_nodelay(true);
    let opened = Mutex::new(None);
    let respond = async |request| {
        let (response, stream) = respond(&shared, request, place.address()).await;
        *opened.lock().unwrap_or_else(PoisonError::into_inner) = stream;
        response
    };
    let mut limits = ConnectionLimits::default();
    limits.header_timeout = IDLE_LIMIT;
    limits.max_header_bytes = MAX_HEADER_BYTES;
    tokio::select! {
        () = stop.requested() => return,
        () = place.serve(stream, &limits, respond) => {}
    }
    let opened = opened.into_inner().unwrap_or_else(PoisonError::into_inner);
    let Some(Opened { upgrade, place: client, start }) = opened else { return };
    let Ok(upgraded) = upgrade.await else { return };
    drop(place);
    stream::serve(&shared.tail, upgraded, &client, start, &stop).await;
}

async fn respond(
    shared: &Arc<Shared>,
    mut request: Request<Incoming>,
    address: PeerAddress,
) -> (Response<AnswerBody>, Option<Opened>) {
    let route = Route::of(request.uri().path(), request.uri().query());
    if let Some(refused) = refused_method(shared, request.method()) {
        return (refused, None);
    }
    if let (Route::Stream(Ok(cursor)), Some(key)) = (&route, upgrade_key(&request)) {
        let opened = open_stream(shared, *cursor, address);
        return match opened {
            Ok((place, start)) => {
                let upgrade = hyper::upgrade::on(&mut request);
                let switching = switching(&key).map(|_| AnswerBody::default());
                (switching, Some(Opened { upgrade, place, start }))
            }
            Err(answer) => (response(answer, None, None), None),
        };
    }
    let answered = match &route {
        Route::Export(_) => page(shared, route).await,
        Route::Account { did, view } => match shared.answers.get(did, *view) {
            Ok(kept) => kept,
            Err(since) => {
                let made = read(shared, &route);
                shared.answers.keep(since, did, *view, &made);
                made
            }
        },
        _ => read(shared, &route),
    };
    let place = match answered.body.len() {
        LARGE_BYTES.. => shared.large_answers.take(address).map(Some),
        _ => Some(None),
    };
    let condition = request.headers().get(IF_NONE_MATCH);
    let response = match place {
        Some(place) => response(answered, condition, place),
        None => {
            response(Answer::message(503, "all places for large answers are in use"), None, None)
        }
    };
    (response, None)
}

/// A page of the export, which is a thousand rows, so it gets a thread.
async fn page(shared: &Arc<Shared>, route: Route) -> SentAnswer {
    // The semaphore is never closed.
    let _permit = shared.pages.acquire().await;
    let shared = shared.clone();
    let read = spawn_blocking(move || read(&shared, &route)).await;
    read.unwrap_or_else(|_| Answer::failed().into())
}

/// The answer from the mirror.
fn read(shared: &Shared, route: &Route) -> SentAnswer {
    let read = shared.readers.with(|mirror| match *route {
        Route::Export(Ok(Export { count, after: After::Number(after) })) => {
            let (answer, identity) = numbered_page(mirror, after, count)?;
            Ok(SentAnswer::with_identity(answer, &identity))
        }
        _ => answer(mirror, route).map(SentAnswer::from),
    });
    read.unwrap_or_else(|error| {
        tracing::warn!(target: "wireproof::directory", "a request fails: {error}");
        match route {
            Route::Health => Answer::unhealthy().into(),
            _ => Answer::failed().into(),
        }
    })
}

fn open_stream(
    shared: &Shared,
    cursor: Option<u64>,
    address: PeerAddress,
) -> Result<(ClientPlace, Start), Answer> {
    let full = || Answer::message(503, "all places for streams are in use");
    let place = shared.streams.take(address).ok_or_else(full)?;
    let window = shared.options.stream_window;
    let start = shared.tail.start(cursor, now_micros().cast_signed(), window);
    Ok((place, start.map_err(|_| Answer::failed())?))
}

/// The response to a request that reads nothing, by its method.
fn refused_method(shared: &Shared, method: &Method) -> Option<Response<AnswerBody>> {
    match *method {
        Method::GET | Method::HEAD => None,
        Method::OPTIONS => {
            let mut response = response(Answer::json(204, String::new()), None, None);
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET,HEAD"));
            Some(response)
        }
        _ => {
            let message = format!(
                "this is a mirror, which takes no operations: send them to {}",
                shared.directory
            );
            let mut response = response(Answer::message(405, &message), None, None);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
            Some(response)
        }
    }
}

fn response(
    answer: impl Into<SentAnswer>,
    condition: Option<&HeaderValue>,
    place: Option<ClientPlace>,
) -> Response<AnswerBody> {
    let SentAnswer { status, content_type, body, tag } = answer.into();
    let is_known = status == 200 && condition.is_some_and(|condition| matches(condition, &tag));
    let bytes = if is_known { Bytes::new() } else { body };
    let mut response = Response::new(AnswerBody::new(bytes, place));
    let status = if is_known { 304 } else { status };
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    match status {
        204 | 304 => {}
        _ => drop(headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type))),
    }
    match status {
        200 | 304 => drop(headers.insert(ETAG, tag)),
        302 => drop(headers.insert(LOCATION, HeaderValue::from_static(HOME))),
        503 => drop(headers.insert(RETRY_AFTER, HeaderValue::from_static("10"))),
        _ => {}
    }
    response.extensions_mut().insert(MoreTime(RESPONSE_LIMIT));
    response
}

/// Whether a condition names the tag.
fn matches(condition: &HeaderValue, tag: &HeaderValue) -> bool {
    let condition = condition.to_str().unwrap_or_default();
    let tag = tag.to_str().unwrap_or_default();
    let mut named = condition.split(',').map(str::trim);
    named.any(|named| named == "*" || named.trim_start_matches("W/") == tag)
}

/// Maximum time between two requests of a connection.
const IDLE_LIMIT: Duration = Duration::from_secs(15);

/// Maximum time from an answer to the end of the next one.
const RESPONSE_LIMIT: Duration = Duration::from_secs(60);

/// Size in bytes from which an answer is large.
const LARGE_BYTES: usize = 256 << 10;

/// Maximum size in bytes of the answers that are kept.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// Maximum number of pages that are read at a time.
const MAX_PAGES: usize = 16;

/// Maximum size of the headers of a request in bytes.
const MAX_HEADER_BYTES: usize = 16 << 10;

/// Time after which a stream that takes nothing gives way to another.
const MIN_IDLE: Duration = Duration::from_secs(5);
