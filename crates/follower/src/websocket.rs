//! The WebSocket server of a run: its address and its token.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use delivery::{Outbox, WebSocketOptions, WebSocketServer};
use net::firehose::StopSignal;
use net::http_server::AccessToken;
use net::identity::Resolver;
use tracing::Level;
use uuid::Uuid;

use super::args::FollowArgs;
use super::destination::Destination;
use super::state;
use super::status::Status;
use crate::failure::Failure;
use crate::files;
use crate::messages;

/// Binds the server of `--to ws://…`, if there is one.
pub(super) fn bind(
    args: &FollowArgs,
    outbox: &Outbox,
    resolver: &Resolver,
) -> Result<Option<WebSocketServer>, Failure> {
    let address = args.delivery.to.iter().find_map(|destination| match destination {
        Destination::WebSocket(address) => Some(*address),
        _ => None,
    });
    let Some(address) = address else { return Ok(None) };
    let options = options(args, address)?;
    let consumers = &args.delivery.ws_consumer;
    let server = WebSocketServer::bind(outbox.clone(), address, consumers, options);
    let server = server.map(|server| Some(server.with_resolver(resolver.clone())));
    server.map_err(|error| Failure::Local(format!("--to ws://{address}: {error}")))
}

fn options(args: &FollowArgs, address: SocketAddr) -> Result<WebSocketOptions, Failure> {
    let mut options = WebSocketOptions::default();
    options.token = token(args, address)?;
    options.origins = args.delivery.ws_origin.clone();
    options.ack_timeout = Duration::from_secs(args.delivery.ws_ack_seconds);
    options.stop_timeout = args.stream.stop_limit() / 10;
    Ok(options)
}

/// The token that clients must know, as they acknowledge events: the token of `--ws-token-file`, or else one in the
/// state folder.
fn token(args: &FollowArgs, address: SocketAddr) -> Result<Option<AccessToken>, Failure> {
    let is_loopback = address.ip().to_canonical().is_loopback();
    match &args.delivery.ws_token_file {
        Some(path) => files::read_token(path, "--ws-token-file").map(Some),
        None if !is_loopback => Err(Failure::Usage(format!(
            "--to ws://{address}: others can connect to this address: add --ws-token-file"
        ))),
        None if args.delivery.ws_without_token => {
            warn("--ws-without-token: every program of this machine can acknowledge events");
            Ok(None)
        }
        None => made_token(&state::folder(args)?.join(TOKEN_FILE)).map(Some),
    }
}

/// The token in a file of the state folder, which is made if it is missing.
fn made_token(path: &Path) -> Result<AccessToken, Failure> {
    files::create_secret(path, || {
        format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
    })?;
    messages::print(Level::INFO, &format!("clients of ws:// need the token in {}", path.display()));
    files::read_token(path, &path.display().to_string())
}

fn warn(text: &str) {
    messages::print(Level::WARN, text);
}

/// Serves clients until a stop is requested. If the server fails, the run stops.
pub(super) async fn serve(
    server: WebSocketServer,
    stop: StopSignal,
    status: Status,
) -> Result<(), Failure> {
    let address = server.address();
    status.print(&format!("WebSockets at ws://{address}/lines and ws://{address}/channel"));
    if !address.ip().to_canonical().is_loopback() {
        status.print(&format!("ws://{address} is not encrypted: put a TLS proxy in front of it"));
    }
    let result = server.run(stop.clone()).await;
    stop.request();
    Ok(result?)
}

/// The file of the state folder with the token of WebSocket clients.
const TOKEN_FILE: &str = "websocket.token";
