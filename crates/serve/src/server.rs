//! The server: its address, its clients, and the upkeep of its files.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::StopSignal;
use delivery::AcceptedConsumer;
use follower::MoreSeries;
use net::client_places::ClientPlaces;
use net::http_server::ConnectionLimits;
use net::server_places::{Connections, Place, accept_tcp};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;

use crate::beat::Beat;
use crate::client::Client;
use crate::consumers::{ConsumersError, ServedConsumers};
use crate::directory::{self, Directory};
use crate::handshake::{self, Accepted, AcceptedStream};
use crate::hosts::SourceHosts;
use crate::intake::Intake;
use crate::log::{EventLog, LogError};
use crate::metrics::{Metrics, ServeSeries};
use crate::options::Options;
use crate::repositories::Repositories;
use crate::shared::Shared;

/// Serves the events of a follower to the clients of relays and Jetstreams.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address cannot be bound.
    #[error("{0}: {1}")]
    Address(SocketAddr, #[source] std::io::Error),
    /// The folder cannot be created.
    #[error("{}: {}", .0.display(), .1)]
    Folder(PathBuf, #[source] std::io::Error),
    /// The window cannot be opened.
    #[error(transparent)]
    Window(#[from] LogError),
    /// The outbox of consumers cannot be opened.
    #[error(transparent)]
    Consumers(#[from] ConsumersError),
    /// The directory cannot be opened.
    #[error("the directory in {}: {}: delete directory.sqlite, and it is made anew from the window", .0.display(), .1)]
    Directory(PathBuf, #[source] rusqlite::Error),
}

impl Server {
    /// Opens the folder, and binds the address.
    ///
    /// # Errors
    /// If the folder cannot be opened, another process has it, or the address cannot be bound.
    pub async fn bind(options: Options) -> Result<Self, ServerError> {
        let folder = options.folder.clone();
        std::fs::create_dir_all(&folder)
            .map_err(|error| ServerError::Folder(folder.clone(), error))?;
        let log = EventLog::open(&folder, options.window, options.archive.clone()).await?;
        let log = Arc::new(log);
        let opened = Directory::open(&folder);
        let directory = opened.map_err(|error| ServerError::Directory(folder, error))?;
        let consumers = match options.consumers.clone() {
            Some(consumers) => {
                let opened = ServedConsumers::open(&options.folder, consumers, &log)?;
                Some(Arc::new(opened))
            }
            None => None,
        };
        let failed = |error| ServerError::Address(options.listen, error);
        let listener = TcpListener::bind(options.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (max, of_address) = (options.max_clients, options.max_clients_per_address);
        let clients = ClientPlaces::with_address_limit(max, of_address, options.min_idle);
        let (hosts, metrics) = (SourceHosts::default(), Metrics::default());
        let repositories = Repositories::default();
        let beat = Beat::new(*log.stored().borrow());
        let shared = Shared {
            options,
            log,
            beat,
            directory,
            repositories,
            consumers,
            hosts,
            clients,
            metrics,
        };
        Ok(Self { listener, address, shared: Arc::new(shared) })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// The recipient of a follower's events, which stores them for the clients.
    pub fn intake(&self, stop: StopSignal) -> Intake {
        Intake::new(self.shared.clone(), stop)
    }

    /// The series of the server, for the metrics of the follower.
    pub fn series(&self) -> Arc<dyn MoreSeries> {
        Arc::new(ServeSeries(self.shared.clone()))
    }

    /// Serves clients until a stop is requested.
    pub async fn run(&self, stop: StopSignal) {
        let Self { listener, shared, .. } = self;
        let handshakes = Connections::new(MAX_HANDSHAKES);
        let accept = || accept_tcp(listener);
        let mut connections = JoinSet::new();
        let folder = shared.options.folder.clone();
        let (maintained, listed) = (maintain(shared), keep_directory(shared, &folder, &stop));
        let (sealed, fed) = (seal(shared, &stop), feed_consumers(shared, &stop));
        let (clients, events) = (|| shared.metrics.open_clients(), || shared.log.tail.count());
        let beaten = shared.beat.run(shared.log.stored(), clients, events);
        tokio::pin!(maintained, listed, sealed, fed, beaten);
        let (mut is_listed, mut is_sealed, mut is_fed) = (false, false, false);
        loop {
            tokio::select! {
                () = stop.requested() => break self.shared.log.wal.give_up(),
                never = &mut maintained => match never {},
                never = &mut beaten => match never {},
                () = &mut listed, if !is_listed => is_listed = true,
                () = &mut sealed, if !is_sealed => is_sealed = true,
                () = &mut fed, if !is_fed => is_fed = true,
                Some(_) = connections.join_next() => {}
                (stream, place) = handshakes.accept(accept) => {
                    connections.spawn(serve(shared.clone(), stream, place, stop.clone()));
                }
            }
        }
        while connections.join_next().await.is_some() {}
        if !is_listed {
            listed.await;
        }
        if !is_sealed {
            sealed.await;
        }
        if !is_fed {
            fed.await;
        }
    }
}

/// Keeps the files of the window within their limits.
async fn maintain(shared: &Shared) -> std::convert::Infallible {
    loop {
        if let Err(error) = shared.log.maintain() {
            tracing::warn!(target: "wireproof::serve", "the window cannot be cleaned up: {error}");
        }
        if let Some(error) = shared.log.wal.obstacle() {
            tracing::warn!(target: "wireproof::serve", "events wait, as they cannot be stored: {error}");
        }
        sleep(MAINTENANCE_INTERVAL).await;
    }
}

/// Seals closed segments into the archive, if there is one, and ends after a segment: on a thread, as it takes processor
/// time.
async fn seal(shared: &Shared, stop: &StopSignal) {
    if shared.log.history.is_none() {
        return;
    }
    loop {
        let (log, runtime, stop_sealing) = (shared.log.clone(), Handle::current(), stop.clone());
        let sealed = spawn_blocking(move || {
            let history = log.history.as_ref().expect("it was there before");
            runtime.block_on(history.seal(&log.wal, &stop_sealing))
        });
        // The thread ends early only with the process.
        if let Ok(Err(error)) = sealed.await {
            tracing::warn!(target: "wireproof::serve", "events cannot be sealed, and stay in the window: {error}");
        }
        tokio::select! {
            () = stop.requested() => return,
            () = shared.log.wal.segment_closed() => {}
            () = sleep(SEAL_INTERVAL) => {}
        }
    }
}

/// Keeps the directory up to date, again after a failure.
async fn keep_directory(shared: &Arc<Shared>, folder: &Path, stop: &StopSignal) {
    while let Err(error) = directory::keep_up(shared.clone(), folder, stop).await {
        tracing::warn!(target: "wireproof::serve", "the directory is not up to date: {error}");
        tokio::select! {
            () = stop.requested() => return,
            () = sleep(RETRY_INTERVAL) => {}
        }
    }
}

/// Gives consumers the events, again after a failure.
async fn feed_consumers(shared: &Arc<Shared>, stop: &StopSignal) {
    let Some(consumers) = &shared.consumers else { return };
    while let Err(error) = consumers.feed(shared.log.clone(), stop).await {
        tracing::warn!(target: "wireproof::serve", "consumers get no events: {error}");
        tokio::select! {
            () = stop.requested() => return,
            () = sleep(RETRY_INTERVAL) => {}
        }
    }
}

/// Serves a connection: its request, and its stream if it is upgraded.
async fn serve(shared: Arc<Shared>, stream: TcpStream, place: Place, stop: StopSignal) {
    // It only delays small messages.
    let _ = stream.set_nodelay(true);
    let accepted = tokio::select! {
        () = stop.requested() => None,
        accepted = shake_hands(&shared, stream, &place) => accepted,
    };
    let AcceptedStream { upgrade, place: client, form, start } = match accepted {
        None => return,
        Some(Accepted::Stream(stream)) => stream,
        Some(Accepted::Consumer(consumer)) => {
            drop(place);
            return serve_consumer(&shared, consumer, &stop).await;
        }
    };
    let Ok(upgraded) = upgrade.await else { return };
    drop(place);
    let index = form.index();
    shared.metrics.form(index).opened.fetch_add(1, Relaxed);
    shared.metrics.form(index).open.fetch_add(1, Relaxed);
    Client::new(shared.clone(), upgraded, client, form, start).await.run(&stop).await;
    shared.metrics.form(index).open.fetch_sub(1, Relaxed);
}

async fn serve_consumer(shared: &Shared, consumer: AcceptedConsumer, stop: &StopSignal) {
    let Some(consumers) = &shared.consumers else { return };
    if let Err(error) = consumers.clients.serve(consumer, stop).await {
        tracing::warn!(target: "wireproof::serve", "a consumer is disconnected: {error}");
    }
}

/// Answers one request; returns the next step for its connection if it is to be upgraded.
async fn shake_hands(shared: &Arc<Shared>, stream: TcpStream, place: &Place) -> Option<Accepted> {
    let accepted = Mutex::new(None);
    let respond = async |request| {
        let (response, upgrade) =
            handshake::respond(shared.clone(), request, place.address()).await;
        *accepted.lock().unwrap_or_else(PoisonError::into_inner) = upgrade;
        response
    };
    let mut limits = ConnectionLimits::default();
    limits.header_timeout = shared.options.handshake_timeout;
    let takeover = shared.consumers.as_ref().map(|of| of.clients.takeover_timeout());
    limits.max_time = shared.options.handshake_timeout + takeover.unwrap_or_default();
    limits.max_header_bytes = MAX_HEADER_BYTES;
    place.serve(stream, &limits, respond).await;
    accepted.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Maximum number of connections that are not upgraded yet.
const MAX_HANDSHAKES: usize = 128;

/// Maximum size of a request's headers in bytes: a URL can name 10,000 accounts.
const MAX_HEADER_BYTES: usize = 512 << 10;

const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);

/// Time after which sealing is tried again.
const SEAL_INTERVAL: Duration = Duration::from_secs(30);

const RETRY_INTERVAL: Duration = Duration::from_secs(5);
