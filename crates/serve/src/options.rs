//! Options of a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::consumers::Consumers;
use crate::crawl::Crawl;
use crate::history::ServedArchive;
use crate::log::Window;
use crate::page::Page;

/// Options of a [`Server`](crate::Server).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The folder of the window and of the directory.
    pub folder: PathBuf,
    /// The events that clients can ask for.
    pub window: Window,
    /// Maximum number of clients of streams. Default: 1,024.
    pub max_clients: usize,
    /// Maximum number of clients of streams of one address: of IPv6, a network of 64 bits. Default: 64.
    pub max_clients_per_address: usize,
    /// Origins of web pages that may connect, such as `https://app.example`, or `*`. Default: none.
    pub origins: Vec<String>,
    /// The hosts that are followed next to the source's. Default: none.
    pub crawl: Option<Arc<Crawl>>,
    /// The archive of the events that leave the window. Default: none.
    pub archive: Option<ServedArchive>,
    /// Clients that acknowledge every event. Default: none.
    pub consumers: Option<Consumers>,
    /// The page at `/`, which verifies in a browser. Default: none.
    pub page: Option<Page>,
    /// Time without an event taken after which a client gives way to another one that finds all places in use. Default: 60
    /// seconds.
    pub min_idle: Duration,
    /// Maximum time until a request has arrived. Default: 10 seconds.
    pub handshake_timeout: Duration,
    /// Maximum time without a byte from the client while nothing is sent, and without one taken by it while something is. Pings
    /// are sent three times as often. Default: 60 seconds.
    pub idle_timeout: Duration,
}

impl Options {
    /// The defaults, for this address and folder.
    pub fn new(listen: SocketAddr, folder: PathBuf) -> Self {
        Self {
            listen,
            folder,
            window: Window::default(),
            max_clients: 1_024,
            max_clients_per_address: 64,
            origins: Vec::new(),
            crawl: None,
            archive: None,
            consumers: None,
            page: None,
            min_idle: Duration::from_secs(60),
            handshake_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
        }
    }
}
