//! Where does a resolver ask, how often, and how long does it remember?

use std::time::Duration;

use reqwest::Url;

/// Where a resolver asks, and how long it remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The directory of `did:plc`. `https://plc.directory`.
    pub directory: Url,
    /// With [`EgressPolicy::Loopback`](crate::egress::EgressPolicy::Loopback): the port at which handles and hosts of `did:web` under `.test` are
    /// asked, without TLS. None.
    pub development_port: Option<u16>,
    /// How long an answer is good. 24 hours.
    pub ttl: Duration,
    /// How long it is good that a handle leads nowhere. 5 minutes.
    pub invalid_handle_ttl: Duration,
    /// How long another error is good, and an old answer when there is no new one. 2 minutes.
    pub error_ttl: Duration,
    /// How far apart two forced lookups of one DID are at least. 5 minutes.
    pub min_refresh_interval: Duration,
    /// How often a DID may be purged within [`Options::purge_window`], so that it is asked for each
    /// time; what is said more often counts when the window is over. 10 times.
    pub max_purges: u32,
    /// One minute.
    pub purge_window: Duration,
    /// How many hosts of handles and of `did:web` under one domain are asked at once. 16.
    pub max_concurrent_per_domain: usize,
    /// How many of them all are. 256.
    pub max_concurrent: usize,
    /// How many DIDs are remembered, and how many handles. 250,000.
    pub capacity: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            directory: "https://plc.directory".parse().expect("a URL"),
            development_port: None,
            ttl: Duration::from_secs(24 * 3600),
            invalid_handle_ttl: Duration::from_secs(5 * 60),
            error_ttl: Duration::from_secs(2 * 60),
            min_refresh_interval: Duration::from_secs(5 * 60),
            max_purges: 10,
            purge_window: Duration::from_secs(60),
            max_concurrent_per_domain: 16,
            max_concurrent: 256,
            capacity: 250_000,
        }
    }
}
