//! The WebSocket server of a run: its address and its token.

use std::net::SocketAddr;

use delivery::{Outbox, WebSocketConsumers, WebSocketOptions, WebSocketServer};
use net::firehose::StopSignal;
use net::identity::Resolver;

use super::args::FollowArgs;
use super::destination::Destination;
use super::state;
use super::status::Status;
use crate::failure::Failure;

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
    let consumers = WebSocketConsumers::new(outbox.clone(), consumers, options);
    let server = WebSocketServer::bind(consumers.with_resolver(resolver.clone()), address);
    server.map(Some).map_err(|error| Failure::Local(format!("--to ws://{address}: {error}")))
}

fn options(args: &FollowArgs, address: SocketAddr) -> Result<WebSocketOptions, Failure> {
    let mut options = args.delivery.consumers.options(address, &state::folder(args)?)?;
    options.origins = args.delivery.ws_origin.clone();
    options.stop_timeout = args.stream.stop_limit() / 10;
    Ok(options)
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
