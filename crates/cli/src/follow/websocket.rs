//! The WebSocket server of a run: its address, and what its clients must know.

use std::net::SocketAddr;
use std::time::Duration;

use wireproof::delivery::{Outbox, WebSocketOptions, WebSocketServer};
use wireproof::net::firehose::StopSignal;
use wireproof::net::http_server::AccessToken;
use wireproof::net::identity::Resolver;

use super::args::FollowArgs;
use super::destination::Destination;
use super::status::Status;
use crate::failure::Failure;
use crate::files;

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
    options.token = token(args)?;
    if options.token.is_none() && !address.ip().is_loopback() {
        return Err(Failure::Usage(format!(
            "--to ws://{address}: others can connect to this address: add --ws-token-file"
        )));
    }
    options.origins = args.delivery.ws_origin.clone();
    options.ack_timeout = Duration::from_secs(args.delivery.ws_ack_seconds);
    options.stop_timeout = args.stream.stop_limit() / 10;
    Ok(options)
}

fn token(args: &FollowArgs) -> Result<Option<AccessToken>, Failure> {
    let path = args.delivery.ws_token_file.as_deref();
    path.map(|path| files::read_token(path, "--ws-token-file")).transpose()
}

/// Serves clients until a stop is requested. If the server fails, the run stops.
pub(super) async fn serve(
    server: WebSocketServer,
    stop: StopSignal,
    status: Status,
) -> Result<(), Failure> {
    let address = server.address();
    status.print(&format!("WebSockets at ws://{address}/lines and ws://{address}/channel"));
    if !address.ip().is_loopback() {
        status.print(&format!("ws://{address} is not encrypted: put a TLS proxy before it"));
    }
    let result = server.run(stop.clone()).await;
    stop.request();
    Ok(result?)
}
