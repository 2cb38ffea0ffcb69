//! The Jetstream servers of a build without them: they answer nothing.

use std::sync::Arc;

use hyper::http::request::Parts;

use super::http::{self, HttpRequest, HttpResponse, XrpcError};
use super::network::NetworkState;
use super::spec::Server;
use super::streamer::StreamSetup;

#[derive(Debug, Default)]
pub(super) struct JetstreamState {}

pub(super) fn stream(
    _network: &Arc<NetworkState>,
    _server: Server,
    _request: &HttpRequest,
) -> Option<Result<StreamSetup, XrpcError>> {
    None
}

pub(super) fn protocol(_request: &HttpRequest) -> Option<&'static str> {
    None
}

pub(super) fn response(
    _network: &NetworkState,
    _server: Server,
    _request: &HttpRequest,
) -> HttpResponse {
    http::text(404, "Not Found")
}

pub(super) fn posted(
    _network: &NetworkState,
    _server: Server,
    _head: &Parts,
    _body: &[u8],
) -> Option<HttpResponse> {
    None
}
