//! The requests to a server: which of them are upgraded, and the answers to the others.

use std::sync::atomic::Ordering::Relaxed;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, ORIGIN, RETRY_AFTER};
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode};
use net::client_places::ClientPlace;
use net::http_server;
use net::server_places::PeerAddress;
use net::websocket_server::{switching, upgrade_key};

use super::shared::Shared;

/// A request that is to be upgraded.
pub(super) struct Accepted {
    pub(super) cursor: Option<i64>,
    pub(super) upgrade: OnUpgrade,
    pub(super) client: ClientPlace,
}

/// Why a request is not upgraded.
struct RejectedHandshake {
    status: StatusCode,
    /// The name of the error in XRPC.
    error: &'static str,
    message: &'static str,
}

/// Answers a request. The answer to an upgrade comes with the next step.
pub(super) fn respond(
    shared: &Shared,
    mut request: Request<Incoming>,
    address: PeerAddress,
) -> (Response<Full<Bytes>>, Option<Accepted>) {
    match accept(shared, &request, address) {
        Ok((cursor, key, client)) => {
            let upgrade = hyper::upgrade::on(&mut request);
            (switching(&key), Some(Accepted { cursor, upgrade, client }))
        }
        Err(RejectedHandshake { status, error, message }) => {
            shared.metrics.refused.fetch_add(1, Relaxed);
            let body = serde_json::json!({ "error": error, "message": message });
            let mut response = http_server::response(status, "application/json", body.to_string());
            if status == StatusCode::SERVICE_UNAVAILABLE {
                let seconds = shared.options.min_idle.as_secs().max(1);
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
            }
            (response, None)
        }
    }
}

/// The cursor and the key of a request, and the place of its client.
fn accept(
    shared: &Shared,
    request: &Request<Incoming>,
    address: PeerAddress,
) -> Result<(Option<i64>, Vec<u8>, ClientPlace), RejectedHandshake> {
    // Every browser sends an origin, and lets any page connect to a loopback address.
    if let Some(origin) = request.headers().get(ORIGIN)
        && !shared.options.origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes())
    {
        let message = "web pages of this origin may not connect";
        return Err(refuse(StatusCode::FORBIDDEN, "Forbidden", message));
    }
    let (path, message) = match &shared.lines {
        Some(_) => (LINES_PATH, "the lines are at /lines"),
        None => (FRAMES_PATH, "this server has com.atproto.sync.subscribeRepos alone"),
    };
    if request.uri().path() != path {
        return Err(refuse(StatusCode::NOT_FOUND, "MethodNotImplemented", message));
    }
    let query = request.uri().query().unwrap_or_default();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let cursor = pairs.find(|(key, _)| key == "cursor").map(|(_, cursor)| cursor.parse::<i64>());
    let cursor = cursor.transpose().map_err(|_| {
        refuse(StatusCode::BAD_REQUEST, "InvalidRequest", "Error: cursor must be an integer")
    })?;
    let key = upgrade_key(request).ok_or_else(|| {
        let message = "expected a WebSocket handshake of version 13";
        refuse(StatusCode::UPGRADE_REQUIRED, "InvalidRequest", message)
    })?;
    let client = shared.clients.take(address).ok_or_else(|| {
        let message = "all places of this server are in use (--clients)";
        refuse(StatusCode::SERVICE_UNAVAILABLE, "NotEnoughResources", message)
    })?;
    Ok((cursor, key, client))
}

fn refuse(status: StatusCode, error: &'static str, message: &'static str) -> RejectedHandshake {
    RejectedHandshake { status, error, message }
}

/// The path of the stream of frames.
pub(super) const FRAMES_PATH: &str = "/xrpc/com.atproto.sync.subscribeRepos";

/// The path of the stream of lines.
pub(super) const LINES_PATH: &str = "/lines";
