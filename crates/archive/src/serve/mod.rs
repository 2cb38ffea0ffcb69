//! Serves the events of an archive as a stream with cursors: `com.atproto.sync.subscribeRepos`.
//!
//! ```text
//! Archive ── ReplayView, at each poll ──┬── feed ── Replay ── 16 events ── Connection ── Socket ──> client
//!                                       └── …
//! ```
//!
//! The sequence number of a frame is the [number](crate::ReplayedEvent::number) of its event, which a cursor names. A
//! client that does not read holds 16 references to events and the buffers of its socket, and is dropped after a time,
//! or when another client needs its place.

mod connection;
mod feed;
mod handshake;
mod options;
mod rate;
mod shared;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use base::StopSignal;
use net::client_places::ClientPlaces;
use net::http_server::ConnectionLimits;
use net::server_places::{Connections, Place, accept_tcp};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::replay::{ReplayView, ReplayedEvent};
use connection::Connection;
use handshake::{Accepted, FRAMES_PATH, LINES_PATH};
use shared::{Shared, Warn, delay_micros};

pub use options::{ServeMetrics, ServeOptions};
pub use rate::EventRate;

/// Serves the events of an archive to WebSocket clients.
pub struct ArchiveServer {
    listener: TcpListener,
    address: SocketAddr,
    shared: Shared,
}

impl std::fmt::Debug for ArchiveServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArchiveServer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl ArchiveServer {
    /// Binds an address, and no other.
    ///
    /// # Errors
    /// If the address cannot be bound, or the archive cannot be read.
    pub async fn bind(
        archive: Archive,
        address: SocketAddr,
        options: ServeOptions,
    ) -> Result<Self, ArchiveError> {
        let failed = ArchiveError::at::<io::Error>(archive.storage().address());
        let bound = TcpListener::bind(address).await;
        let bound = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = bound.map_err(failed)?;
        let view = watch::Sender::new(archive.replay_view(None).await?);
        let clients = ClientPlaces::new(options.max_connections, options.min_idle);
        let warn: Warn = Box::new(|_| ());
        let shared =
            Shared { archive, options, view, clients, metrics: Arc::default(), lines: None, warn };
        Ok(Self { listener, address, shared })
    }

    /// Serves lines at `/lines` instead of frames: one text message per event that has a line.
    #[must_use]
    pub fn with_lines(
        mut self,
        write: impl Fn(&ReplayedEvent) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.shared.lines = Some(Box::new(write));
        self
    }

    /// Passes warnings to the operator.
    #[must_use]
    pub fn with_warnings(mut self, warn: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.shared.warn = Box::new(warn);
        self
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        let path = if self.shared.lines.is_some() { LINES_PATH } else { FRAMES_PATH };
        format!("ws://{}{path}", self.address)
    }

    /// The counters.
    pub fn metrics(&self) -> Arc<ServeMetrics> {
        self.shared.metrics.clone()
    }

    /// Serves clients until a stop is requested, or, unless later events are [followed](ServeOptions::follows), until a client
    /// has received all events and none is connected.
    ///
    /// # Errors
    /// If the archive could not be read for a minute: events that are hidden meanwhile would be shown.
    pub async fn run(self, stop: StopSignal) -> Result<(), ArchiveError> {
        let listener = self.listener;
        let shared = Arc::new(self.shared);
        let handshakes = Connections::new(MAX_HANDSHAKES);
        let accept = || accept_tcp(&listener);
        let mut connections = JoinSet::new();
        let polled = poll(&shared);
        tokio::pin!(polled);
        let result = loop {
            tokio::select! {
                () = stop.requested() => break Ok(()),
                failed = &mut polled => break Err(failed),
                Some(_) = connections.join_next() => {
                    let is_done = shared.metrics.completed.load(Relaxed) > 0;
                    if is_done && connections.is_empty() {
                        break Ok(());
                    }
                }
                (stream, place) = handshakes.accept(accept) => {
                    connections.spawn(serve(shared.clone(), stream, place, stop.clone()));
                }
            }
        };
        drop(listener);
        stop.request();
        while connections.join_next().await.is_some() {}
        result
    }
}

/// Polls for sealed and hidden events, until that fails for too long.
async fn poll(shared: &Shared) -> ArchiveError {
    let mut readable = Instant::now();
    loop {
        sleep(shared.options.poll_interval).await;
        let before = shared.view.borrow().clone();
        match shared.archive.replay_view(Some(&before)).await {
            Ok(view) => {
                readable = Instant::now();
                if !Arc::ptr_eq(&view, &before) {
                    warn_of_late(shared, &before, &view);
                    shared.view.send_replace(view);
                }
            }
            Err(error) if readable.elapsed() >= MAX_UNREADABLE => return error,
            Err(error) => {
                shared.metrics.failed_polls.fetch_add(1, Relaxed);
                (shared.warn)(&format!("the archive cannot be read, and is tried again: {error}"));
            }
        }
    }
}

/// Warns of events that were sealed after later ones.
fn warn_of_late(shared: &Shared, before: &ReplayView, view: &ReplayView) {
    let Some((_, last)) = before.bounds() else { return };
    let is_in = |view: &ReplayView, path: &str| view.files.iter().any(|file| file.path == path);
    // An erasure writes files anew.
    let has_replaced = before.files.iter().any(|file| !is_in(view, &file.path));
    let is_late = view.files.iter().any(|file| {
        let is_new = !is_in(before, &file.path);
        is_new && file.arrivals.start().saturating_add(delay_micros(shared)) <= last
    });
    if is_late && !has_replaced {
        (shared.warn)(
            "another writer has sealed events that arrived before the last ones: clients that have passed them do not get \
             them; serve with a delay that is longer than the time until every writer seals",
        );
    }
}

/// Serves a connection: its request, and its WebSocket if it is upgraded.
async fn serve(shared: Arc<Shared>, stream: TcpStream, place: Place, stop: StopSignal) {
    // It only delays small messages.
    let _ = stream.set_nodelay(true);
    let accepted = tokio::select! {
        () = stop.requested() => None,
        accepted = shake_hands(&shared, stream, &place) => accepted,
    };
    let Some(Accepted { cursor, upgrade, client }) = accepted else { return };
    let Ok(upgraded) = upgrade.await else { return };
    drop(place);
    let metrics = shared.metrics.clone();
    metrics.opened.fetch_add(1, Relaxed);
    metrics.open.fetch_add(1, Relaxed);
    Connection::new(shared, upgraded, client, cursor).await.run(&stop).await;
    metrics.open.fetch_sub(1, Relaxed);
}

/// Answers one request; returns the next step for its connection if it is to be upgraded.
async fn shake_hands(shared: &Shared, stream: TcpStream, place: &Place) -> Option<Accepted> {
    let accepted = Mutex::new(None);
    let respond = |request| {
        let (response, upgrade) = handshake::respond(shared, request, place.address());
        *accepted.lock().unwrap_or_else(PoisonError::into_inner) = upgrade;
        std::future::ready(response)
    };
    let mut limits = ConnectionLimits::default();
    limits.header_timeout = shared.options.handshake_timeout;
    limits.max_time = shared.options.handshake_timeout;
    place.serve(stream, &limits, respond).await;
    accepted.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Maximum number of connections that are not upgraded yet.
const MAX_HANDSHAKES: usize = 64;

/// Maximum time for which the archive cannot be read.
const MAX_UNREADABLE: std::time::Duration = std::time::Duration::from_secs(60);
