//! The requests to a server: streams, which are upgraded, and queries.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use delivery::{AcceptedConsumer, WebSocketConsumers};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, HeaderMap, HeaderValue, ORIGIN, RETRY_AFTER,
    SEC_WEBSOCKET_PROTOCOL,
};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use net::client_places::ClientPlace;
use net::http_server::response;
use net::server_places::PeerAddress;
use net::websocket_server::{switching, upgrade_key};
use serde::Deserialize;
use tokio::task::spawn_blocking;

use crate::client::Start;
use crate::crawl::banned;
use crate::event::Wire;
use crate::form::{Form, JetstreamForm};
use crate::jetstream::request::{Cursor, StreamRequest};
use crate::jetstream::text;
use crate::page;
use crate::repositories::{self, CarBody};
use crate::seq::arrival_of;
use crate::shared::Shared;
use crate::xrpc::{self, Query, XrpcError};

/// A request that is to be upgraded.
pub(crate) enum Accepted {
    /// Of a stream.
    Stream(AcceptedStream),
    /// Of a consumer, which acknowledges events.
    Consumer(AcceptedConsumer),
}

/// The stream of a request.
pub(crate) struct AcceptedStream {
    pub(crate) upgrade: OnUpgrade,
    pub(crate) place: ClientPlace,
    pub(crate) form: Form,
    pub(crate) start: Start,
}

/// A stream that a client asks for.
struct Stream {
    form: Form,
    start: Start,
    /// The subprotocol of WebSocket that the client offers and the stream has.
    protocol: Option<&'static str>,
}

/// Answers a request. The answer to an upgrade comes with the next step.
pub(crate) async fn respond(
    shared: Arc<Shared>,
    mut request: Request<Incoming>,
    address: PeerAddress,
) -> (Response<CarBody>, Option<Accepted>) {
    let answered = match allowed_origin(&shared, request.headers()) {
        Ok(origin) => answer(&shared, &mut request, address).await.map(|answer| (answer, origin)),
        Err(refused) => Err(refused),
    };
    match answered {
        Ok(((mut response, accepted), origin)) => {
            if let Some(origin) = origin {
                response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            }
            if accepted.is_none() {
                shared.metrics.requests.fetch_add(1, Relaxed);
            }
            (response, accepted)
        }
        Err(refused) => {
            shared.metrics.refused.fetch_add(1, Relaxed);
            let mut response = refused.response().map(CarBody::Left);
            if refused.status == StatusCode::SERVICE_UNAVAILABLE {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("10"));
            }
            (response, None)
        }
    }
}

/// The origin of a web page that may connect; `None` if the request is not of one.
fn allowed_origin(shared: &Shared, headers: &HeaderMap) -> Result<Option<HeaderValue>, XrpcError> {
    // Every browser sends an origin, and lets any page connect to a loopback address.
    let Some(origin) = headers.get(ORIGIN) else { return Ok(None) };
    let mut allowed = shared.options.origins.iter();
    if allowed.any(|of| of == "*" || of.as_bytes() == origin.as_bytes()) {
        return Ok(Some(origin.clone()));
    }
    let message = "web pages of this origin may not connect";
    Err(XrpcError::new(StatusCode::FORBIDDEN, "Forbidden", message))
}

async fn answer(
    shared: &Arc<Shared>,
    request: &mut Request<Incoming>,
    address: PeerAddress,
) -> Result<(Response<CarBody>, Option<Accepted>), XrpcError> {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    if request.method() == Method::POST && path == REQUEST_CRAWL {
        let response = request_crawl(shared, request).await?.map(CarBody::Left);
        return Ok((response, None));
    }
    if path == "/" {
        let response = page::respond(shared.options.page.as_ref(), request);
        return Ok((response.map(CarBody::Left), None));
    }
    if request.method() != Method::GET {
        return Err(XrpcError::new(StatusCode::METHOD_NOT_ALLOWED, "InvalidRequest", "use GET"));
    }
    if let Some(consumers) =
        shared.consumers.as_ref().filter(|_| WebSocketConsumers::has_path(&path))
    {
        let (response, accepted) = consumers.clients.respond(request).await;
        return Ok((response.map(CarBody::Left), accepted.map(Accepted::Consumer)));
    }
    let stream = match &*path {
        SUBSCRIBE_REPOS => frames(shared, request.headers(), &query)?,
        SUBSCRIBE => jetstream(shared, Wire::V1, request.headers(), &query)?,
        _ if path.strip_prefix("/xrpc/") == Some(text::METHOD) => {
            jetstream(shared, Wire::V2, request.headers(), &query)?
        }
        _ => {
            let method = path.strip_prefix("/xrpc/").unwrap_or_default();
            let repository = repositories::answer(shared, method, Query(&query), address).await;
            if let Some(answered) = repository {
                return answered.map(|response| (response, None));
            }
            let shared = shared.clone();
            let answered = spawn_blocking(move || xrpc_answer(&shared, &path, &query)).await;
            let failed =
                |_| XrpcError::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", "");
            let response = answered.map_err(failed)??.map(CarBody::Left);
            return Ok((response, None));
        }
    };
    let key = upgrade_key(request).ok_or_else(|| {
        let message = "expected a WebSocket handshake of version 13";
        XrpcError::new(StatusCode::UPGRADE_REQUIRED, "InvalidRequest", message)
    })?;
    let place = shared.clients.take(address).ok_or_else(|| {
        let message = "all places for clients are in use";
        XrpcError::new(StatusCode::SERVICE_UNAVAILABLE, "NotEnoughResources", message)
    })?;
    let mut response = switching(&key).map(CarBody::Left);
    if let Some(protocol) = stream.protocol {
        let value = HeaderValue::from_static(protocol);
        response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, value);
    }
    let (upgrade, Stream { form, start, .. }) = (hyper::upgrade::on(request), stream);
    let accepted = AcceptedStream { upgrade, place, form, start };
    Ok((response, Some(Accepted::Stream(accepted))))
}

fn xrpc_answer(
    shared: &Arc<Shared>,
    path: &str,
    query: &str,
) -> Result<Response<Full<Bytes>>, XrpcError> {
    let method = path.strip_prefix("/xrpc/");
    let answered = method.and_then(|method| xrpc::answer(shared, method, query));
    answered.unwrap_or_else(|| {
        let message = "this server does not have this method";
        Err(XrpcError::new(StatusCode::NOT_FOUND, "MethodNotImplemented", message))
    })
}

/// Follows the host that the request names, if the operator accepts it.
async fn request_crawl(
    shared: &Shared,
    request: &mut Request<Incoming>,
) -> Result<Response<Full<Bytes>>, XrpcError> {
    let Some(crawl) = &shared.options.crawl else {
        return Err(banned("this server reads the hosts that its operator names"));
    };
    let body = Limited::new(request.body_mut(), MAX_BODY).collect().await;
    let body = body.map_err(|_| XrpcError::invalid("the body is too long or incomplete"))?;
    let named: CrawlRequest = serde_json::from_slice(&body.to_bytes())
        .map_err(|_| XrpcError::invalid("the body has no hostname"))?;
    crawl.request(&named.hostname)?;
    Ok(response(StatusCode::OK, "application/json", "{}".to_owned()))
}

/// The body of `requestCrawl`.
#[derive(Deserialize)]
struct CrawlRequest {
    hostname: String,
}

fn frames(shared: &Shared, headers: &HeaderMap, query: &str) -> Result<Stream, XrpcError> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let cursor = pairs.find(|(key, _)| key == "cursor").map(|(_, cursor)| cursor.parse::<i64>());
    let cursor = cursor.transpose();
    let cursor = cursor.map_err(|_| XrpcError::invalid("Error: cursor must be an integer"))?;
    let (floor, last) = bounds(shared);
    let start = match cursor {
        None => Start::From(last + 1),
        Some(0) => Start::From(floor + 1),
        Some(cursor) if arrival_of(cursor) > last => Start::Future,
        Some(cursor) if arrival_of(cursor) < floor => {
            Start::Outdated { from: floor + 1, by_time: false }
        }
        Some(cursor) => Start::From(arrival_of(cursor) + 1),
    };
    let protocol = offered(headers, "xrpc.v0.cbor");
    Ok(Stream { form: Form::Frames, start, protocol })
}

fn jetstream(
    shared: &Shared,
    wire: Wire,
    headers: &HeaderMap,
    query: &str,
) -> Result<Stream, XrpcError> {
    let has = |name: &str, value: &str| {
        let values = headers.get_all(name);
        values.iter().filter_map(|of| of.to_str().ok()).any(|of| of.contains(value))
    };
    let request = StreamRequest::parse(wire, query, has("socket-encoding", "zstd"));
    let request = request.map_err(|refused| {
        XrpcError::new(StatusCode::BAD_REQUEST, refused.name, refused.message)
    })?;
    let start = jetstream_start(shared, wire, request.cursor)?;
    let protocol = match wire {
        Wire::V1 => None,
        Wire::V2 => offered(headers, "xrpc.v1.json"),
    };
    let form = Form::Jetstream(JetstreamForm {
        wire,
        filter: request.filter,
        is_compressed: request.is_compressed,
        awaits_options: request.requires_hello,
    });
    Ok(Stream { form, start, protocol })
}

/// Where a client of a Jetstream begins: with the event at its cursor. A cursor in the future is none.
fn jetstream_start(
    shared: &Shared,
    wire: Wire,
    cursor: Option<Cursor>,
) -> Result<Start, XrpcError> {
    let (floor, last) = bounds(shared);
    match cursor {
        Some(Cursor::Number(number)) if wire == Wire::V2 && number < floor => {
            Err(xrpc::cursor_too_old(floor))
        }
        Some(cursor) if cursor.arrival() <= floor => Ok(match cursor {
            Cursor::Time(_) if floor > 0 => Start::Outdated { from: floor + 1, by_time: true },
            _ => Start::From(floor + 1),
        }),
        Some(cursor) if cursor.arrival() <= last => Ok(Start::From(cursor.arrival())),
        _ => Ok(Start::From(last + 1)),
    }
}

/// The arrival after which every event is stored, and the last one that an event takes.
fn bounds(shared: &Shared) -> (i64, i64) {
    (shared.log.floor(), *shared.log.stored().borrow())
}

/// A subprotocol of WebSocket, if the client offers it.
fn offered(headers: &HeaderMap, protocol: &'static str) -> Option<&'static str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL);
    let mut offers = values.iter().filter_map(|value| value.to_str().ok());
    offers.any(|offer| offer.split(',').any(|of| of.trim() == protocol)).then_some(protocol)
}

const REQUEST_CRAWL: &str = "/xrpc/com.atproto.sync.requestCrawl";

/// Maximum size of a body in bytes.
const MAX_BODY: usize = 8 << 10;

const SUBSCRIBE_REPOS: &str = "/xrpc/com.atproto.sync.subscribeRepos";

/// The path of version 1 of the Jetstream protocol.
const SUBSCRIBE: &str = "/subscribe";
