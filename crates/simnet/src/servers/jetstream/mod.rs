//! The Jetstream servers: `/subscribe`, `network.bsky.jetstream.subscribeEvents`, and the hosted archive.

mod archive;
mod messages;
mod sealed;
mod v1;
mod v2;
mod zstandard;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use hyper::header::SEC_WEBSOCKET_PROTOCOL;
use hyper::http::request::Parts;
use serde_json::json;

use super::http::{self, HttpRequest, HttpResponse, QueryParams, XrpcError, into_response};
use super::network::NetworkState;
use super::spec::Server;
use super::streamer::StreamSetup;
use archive::ArchiveRequest;
use messages::{dictionaries, unknown_dictionary};
pub(super) use sealed::SealedArchive;
use zstandard::Dictionaries;
pub use zstandard::{V1_DICTIONARY_ID, V2_DICTIONARY_ID};

/// The dictionaries and hosted archives of a network's Jetstreams.
#[derive(Debug, Default)]
pub(super) struct JetstreamState {
    /// The dictionaries, once they are trained.
    dictionaries: OnceLock<Dictionaries>,
    /// The hosted archives, as they were sealed.
    archives: Mutex<BTreeMap<Server, Arc<SealedArchive>>>,
}

/// The response to a request with a body; `None` if there is none.
pub(super) fn posted(
    network: &NetworkState,
    server: Server,
    head: &Parts,
    body: &[u8],
) -> Option<HttpResponse> {
    let (path, query) = (head.uri.path(), QueryParams::of_query(head.uri.query()));
    let request = ArchiveRequest { path, query, headers: &head.headers, body };
    archive::response(network, server, &request)
}

/// The stream at the path of a request; `None` if there is none.
pub(super) fn stream(
    network: &Arc<NetworkState>,
    server: Server,
    request: &HttpRequest,
) -> Option<Result<StreamSetup, XrpcError>> {
    match request.uri().path() {
        "/subscribe" => Some(v1::stream(network, server, request)),
        V2_PATH => Some(v2::stream(network, server, &QueryParams::of(request))),
        _ => None,
    }
}

/// The negotiated subprotocol, if the request offers a supported one.
pub(super) fn protocol(request: &HttpRequest) -> Option<&'static str> {
    let offered = request.headers().get_all(SEC_WEBSOCKET_PROTOCOL).into_iter();
    let mut offered =
        offered.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','));
    let is_v2 = request.uri().path() == V2_PATH;
    (is_v2 && offered.any(|name| name.trim() == V2_PROTOCOL)).then_some(V2_PROTOCOL)
}

/// The response to a request that is not for a stream.
pub(super) fn response(
    network: &NetworkState,
    server: Server,
    request: &HttpRequest,
) -> HttpResponse {
    let (path, query) = (request.uri().path(), QueryParams::of(request));
    let from_archive = ArchiveRequest { path, query, headers: request.headers(), body: &[] };
    if let Some(response) = archive::response(network, server, &from_archive) {
        return response;
    }
    match request.uri().path().strip_prefix("/xrpc/") {
        Some("_health") => http::json(200, &json!({ "version": "simnet" })),
        Some("network.bsky.jetstream.getZstdDictionary") => {
            into_response(dictionary(network, &QueryParams::of(request)))
        }
        _ => http::text(404, "Not Found"),
    }
}

/// The dictionary of the requested number, or the current one of version 2.
fn dictionary(network: &NetworkState, query: &QueryParams) -> Result<HttpResponse, XrpcError> {
    let dictionaries = dictionaries(network);
    let found = match query.get("id") {
        None => Some(&dictionaries.v2),
        Some(text) => text.parse().ok().and_then(|id| dictionaries.get(id)),
    };
    let found = found.ok_or_else(|| unknown_dictionary(network))?;
    Ok(http::bytes(200, "application/octet-stream", found.bytes.clone()))
}

const V2_PATH: &str = "/xrpc/network.bsky.jetstream.subscribeEvents";
const V2_PROTOCOL: &str = "xrpc.v1.json";
