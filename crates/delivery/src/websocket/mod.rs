//! A WebSocket server: clients receive the events of consumers, and acknowledge them.
//!
//! ```text
//! Outbox ── Consumer ── Schedule ── Socket ──> client      one connection per consumer
//!    ▲                                 │
//!    └────────── acknowledged ─────────┘
//! ```
//!
//! | path | a message | acknowledged with |
//! |---|---|---|
//! | `/lines?consumer=NAME` | the payload of an event | its id; several are lines of one message |
//! | `/channel?consumer=NAME` | an event of tap | `{"type":"ack","id":NUMBER}` |
//!
//! An event of an account is sent when the one before it is acknowledged, and other accounts continue meanwhile. Unacknowledged
//! events are sent again after a timeout, and to the next connection, which replaces a client that acknowledges nothing.

mod channel;
mod connection;
mod handles;
mod handshake;
mod messages;
mod options;
mod schedule;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::StopSignal;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use net::http_server::ConnectionLimits;
use net::identity::Resolver;
use net::server_places::{Connections, Place, accept_tcp};
use net::websocket_server::Socket;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::error::OutboxError;
use crate::outbox::Outbox;
use connection::Connection;
use handles::HandleLookups;
use handshake::{Accepted, Seat, Shared};
use messages::Protocol;

pub use options::{WebSocketMetrics, WebSocketOptions};

/// The consumers of an outbox, for WebSocket clients of a server that has other paths too.
#[derive(Debug)]
pub struct WebSocketConsumers {
    shared: Shared,
    resolver: Option<Resolver>,
}

/// The next step for a connection whose request was accepted.
#[derive(Debug)]
pub struct AcceptedConsumer(Accepted);

impl WebSocketConsumers {
    /// These registered consumers.
    pub fn new<N: AsRef<str>>(
        outbox: Outbox,
        consumers: impl IntoIterator<Item = N>,
        options: WebSocketOptions,
    ) -> Self {
        let seats = consumers.into_iter().map(|name| (name.as_ref().into(), Seat::default()));
        let (consumers, options) = (seats.collect(), Arc::new(options));
        let shared = Shared { outbox, consumers, options, metrics: Arc::default() };
        Self { shared, resolver: None }
    }

    /// Looks up the handles of accounts for the clients of `/channel`, in both directions. Default: every handle is
    /// `handle.invalid`.
    #[must_use]
    pub fn with_resolver(self, resolver: Resolver) -> Self {
        Self { resolver: Some(resolver), ..self }
    }

    /// Whether clients connect at this path.
    pub fn has_path(path: &str) -> bool {
        Protocol::at(path).is_some()
    }

    /// The counters.
    pub fn metrics(&self) -> Arc<WebSocketMetrics> {
        self.shared.metrics.clone()
    }

    /// The longest time for which a request waits for the end of an earlier connection of its consumer.
    pub fn takeover_timeout(&self) -> Duration {
        self.shared.options.takeover_timeout
    }

    /// Answers the request of a client. After the answer, an accepted connection is [served](Self::serve).
    pub async fn respond(
        &self,
        request: &mut Request<Incoming>,
    ) -> (Response<Full<Bytes>>, Option<AcceptedConsumer>) {
        let (response, accepted) = self.shared.respond(request).await;
        (response, accepted.map(AcceptedConsumer))
    }

    /// Serves a connection once it is upgraded, until the client leaves or a stop is requested.
    ///
    /// # Errors
    /// If the outbox fails.
    pub async fn serve(
        &self,
        accepted: AcceptedConsumer,
        stop: &StopSignal,
    ) -> Result<(), OutboxError> {
        let Accepted { protocol, upgrade, consumer, client, lock } = accepted.0;
        let Ok(upgraded) = upgrade.await else { return Ok(()) };
        let (options, metrics) = (self.shared.options.clone(), self.metrics());
        metrics.connections.fetch_add(1, Relaxed);
        let socket = Socket::new(upgraded, options.max_message_bytes).await;
        let handles = HandleLookups::new(self.resolver.clone());
        let parts = (protocol, consumer, client);
        let connection = Connection::new(socket, parts, handles, options, metrics);
        let ended = connection.run(stop).await;
        drop(lock);
        ended
    }
}

/// Serves the events of consumers to WebSocket clients, at an address of its own.
#[derive(Debug)]
pub struct WebSocketServer {
    listener: TcpListener,
    address: SocketAddr,
    consumers: WebSocketConsumers,
}

impl WebSocketServer {
    /// Binds an address, and no other. Call it in a Tokio runtime.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn bind(consumers: WebSocketConsumers, address: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = TcpListener::from_std(listener)?;
        Ok(Self { listener, address, consumers })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The counters.
    pub fn metrics(&self) -> Arc<WebSocketMetrics> {
        self.consumers.metrics()
    }

    /// Serves clients until a stop is requested. Then connected clients have a moment to acknowledge the events that they have
    /// received.
    ///
    /// # Errors
    /// If the outbox fails.
    pub async fn run(self, stop: StopSignal) -> Result<(), OutboxError> {
        let consumers = Arc::new(self.consumers);
        let handshakes = Connections::new(consumers.shared.options.max_handshakes);
        let accept = || accept_tcp(&self.listener);
        let (mut connections, mut result) = (JoinSet::new(), Ok(()));
        while result.is_ok() {
            tokio::select! {
                () = stop.requested() => break,
                Some(ended) = connections.join_next() => result = ended.unwrap_or(Ok(())),
                (stream, place) = handshakes.accept(accept) => {
                    connections.spawn(serve(consumers.clone(), stream, place, stop.clone()));
                }
            }
        }
        drop(self.listener);
        stop.request();
        while let Some(ended) = connections.join_next().await {
            result = result.and(ended.unwrap_or(Ok(())));
        }
        result
    }
}

/// Serves a connection: its request, and its WebSocket if it is upgraded.
async fn serve(
    consumers: Arc<WebSocketConsumers>,
    stream: TcpStream,
    place: Place,
    stop: StopSignal,
) -> Result<(), OutboxError> {
    // It only delays small messages.
    let _ = stream.set_nodelay(true);
    let accepted = tokio::select! {
        () = stop.requested() => None,
        accepted = shake_hands(&consumers, stream, &place) => accepted,
    };
    drop(place);
    match accepted {
        Some(accepted) => consumers.serve(accepted, &stop).await,
        None => Ok(()),
    }
}

/// Answers one request; returns the next step for its connection if it is to be upgraded.
async fn shake_hands(
    consumers: &WebSocketConsumers,
    stream: TcpStream,
    place: &Place,
) -> Option<AcceptedConsumer> {
    let accepted = Mutex::new(None);
    let respond = async |mut request| {
        let (response, upgrade) = consumers.respond(&mut request).await;
        *accepted.lock().unwrap_or_else(PoisonError::into_inner) = upgrade;
        response
    };
    let (mut limits, options) = (ConnectionLimits::default(), &consumers.shared.options);
    limits.header_timeout = options.handshake_timeout;
    limits.max_time = options.handshake_timeout + options.takeover_timeout;
    place.serve(stream, &limits, respond).await;
    accepted.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
