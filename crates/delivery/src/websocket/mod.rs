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

use base::StopSignal;
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

pub use options::{WebSocketMetrics, WebSocketOptions};

/// Serves the events of consumers to WebSocket clients.
#[derive(Debug)]
pub struct WebSocketServer {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    resolver: Option<Resolver>,
}

impl WebSocketServer {
    /// Binds an address, and no other, for clients of these registered consumers. Call it in a Tokio runtime.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn bind<N: AsRef<str>>(
        outbox: Outbox,
        address: SocketAddr,
        consumers: impl IntoIterator<Item = N>,
        options: WebSocketOptions,
    ) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = TcpListener::from_std(listener)?;
        let seats = consumers.into_iter().map(|name| (name.as_ref().into(), Seat::default()));
        let (consumers, options) = (seats.collect(), Arc::new(options));
        let shared = Arc::new(Shared { outbox, consumers, options, metrics: Arc::default() });
        Ok(Self { listener, address, shared, resolver: None })
    }

    /// Looks up the handles of accounts for the clients of `/channel`, in both directions. Default: every handle is
    /// `handle.invalid`.
    #[must_use]
    pub fn with_resolver(self, resolver: Resolver) -> Self {
        Self { resolver: Some(resolver), ..self }
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The counters.
    pub fn metrics(&self) -> Arc<WebSocketMetrics> {
        self.shared.metrics.clone()
    }

    /// Serves clients until a stop is requested. Then connected clients have a moment to acknowledge the events that they have
    /// received.
    ///
    /// # Errors
    /// If the outbox fails.
    pub async fn run(self, stop: StopSignal) -> Result<(), OutboxError> {
        let handshakes = Connections::new(self.shared.options.max_handshakes);
        let accept = || accept_tcp(&self.listener);
        let (mut connections, mut result) = (JoinSet::new(), Ok(()));
        while result.is_ok() {
            tokio::select! {
                () = stop.requested() => break,
                Some(ended) = connections.join_next() => result = ended.unwrap_or(Ok(())),
                (stream, place) = handshakes.accept(accept) => {
                    let handles = HandleLookups::new(self.resolver.clone());
                    let shared = self.shared.clone();
                    connections.spawn(serve(shared, handles, stream, place, stop.clone()));
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
    shared: Arc<Shared>,
    handles: HandleLookups,
    stream: TcpStream,
    place: Place,
    stop: StopSignal,
) -> Result<(), OutboxError> {
    // It only delays small messages.
    let _ = stream.set_nodelay(true);
    let shaking = shake_hands(&shared, stream, &place);
    let accepted = tokio::select! {
        () = stop.requested() => None,
        accepted = shaking => accepted,
    };
    let Some(Accepted { protocol, upgrade, consumer, client, lock }) = accepted else {
        return Ok(());
    };
    let Ok(upgraded) = upgrade.await else { return Ok(()) };
    drop(place);
    let (options, metrics) = (shared.options.clone(), shared.metrics.clone());
    metrics.connections.fetch_add(1, Relaxed);
    let socket = Socket::new(upgraded, options.max_message_bytes).await;
    let parts = (protocol, consumer, client);
    let connection = Connection::new(socket, parts, handles, options, metrics);
    let ended = connection.run(&stop).await;
    drop(lock);
    ended
}

/// Answers one request; returns the next step for its connection if it has to be upgraded.
async fn shake_hands(shared: &Arc<Shared>, stream: TcpStream, place: &Place) -> Option<Accepted> {
    let accepted = Mutex::new(None);
    let respond = async |request| {
        let (response, upgrade) = shared.respond(request).await;
        *accepted.lock().unwrap_or_else(PoisonError::into_inner) = upgrade;
        response
    };
    let (mut limits, options) = (ConnectionLimits::default(), &shared.options);
    limits.header_timeout = options.handshake_timeout;
    limits.max_time = options.handshake_timeout + options.takeover_timeout;
    place.serve(stream, &limits, respond).await;
    accepted.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
