//! Where does a resolver ask, how often, and how long does it remember?

use std::time::Duration;

use reqwest::Url;

/// Where a resolver asks, and how long it remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The directory of `did:plc`. `https://plc.directory`.
    pub directory: Url,
    /// With [`Reach::Loopback`](crate::reach::Reach::Loopback): the port at which handles and hosts of `did:web` under `.test` are
    /// asked, without TLS. None.
    pub development_port: Option<u16>,
    /// How long an answer is good. 24 hours.
    pub fresh: Duration,
    /// How long it is good that a handle leads nowhere. 5 minutes.
    pub fresh_invalid_handle: Duration,
    /// How long another error is good, and an old answer when there is no new one. 2 minutes.
    pub fresh_error: Duration,
    /// How far apart two forced lookups of one DID are at least. 5 minutes.
    pub refresh_window: Duration,
    /// How often a DID may be purged within [`Options::purge_window`], so that it is asked for each
    /// time; what is said more often counts when the window is over. 10 times.
    pub purges: u32,
    /// One minute.
    pub purge_window: Duration,
    /// How many hosts of handles and of `did:web` under one domain are asked at once. 16.
    pub asked_at_once_of_a_domain: usize,
    /// How many of them all are. 256.
    pub asked_at_once: usize,
    /// How many DIDs are remembered, and how many handles. 250,000.
    pub capacity: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            directory: "https://plc.directory".parse().expect("a URL"),
            development_port: None,
            fresh: Duration::from_secs(24 * 3600),
            fresh_invalid_handle: Duration::from_secs(5 * 60),
            fresh_error: Duration::from_secs(2 * 60),
            refresh_window: Duration::from_secs(5 * 60),
            purges: 10,
            purge_window: Duration::from_secs(60),
            asked_at_once_of_a_domain: 16,
            asked_at_once: 256,
            capacity: 250_000,
        }
    }
}
