//! Network clients: identity, XRPC, firehose, Jetstream and Nostr relays, for untrusted hosts.
//!
//! | module | contents |
//! |---|---|
//! | [`egress`] | the policy on hosts and addresses that may be connected to |
//! | [`dns`] | DNS lookups (by the system's configuration: feature `system-dns`) |
//! | [`http`] | an HTTP client with limits |
//! | `http_server` | the common part of small HTTP servers (feature `server`) |
//! | [`rate_limit`] | delays that hosts request |
//! | [`concurrency`] | limits on concurrent requests per host and in total |
//! | [`identity`] | DIDs and handles |
//! | [`plc_export`] | the export of a did:plc directory |
//! | [`plc_stream`] | its stream of new operations |
//! | [`host_pacer`] | a rate of requests per host that adapts to it |
//! | [`xrpc`] | repositories, records and lists of servers |
//! | [`websocket`] | a WebSocket client with limits |
//! | `websocket_server` | the common part of WebSocket servers (feature `server`) |
//! | [`hosts`] | host selection and backoff |
//! | [`cursors`] | stored cursors of streams |
//! | [`firehose`] | verified events of relays and PDSs, at least once |
//! | [`jetstream`] | events of Jetstreams |
//!
//! From a handle to a verified repository:
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use wireproof::atproto::syntax::Handle;
//! use wireproof::verify::repository;
//! use wireproof::net::http::{Client, Limits};
//! use wireproof::net::{identity, dns::SystemDns, egress::EgressPolicy, xrpc};
//!
//! let dns = Arc::new(SystemDns::new()?);
//! let http = Client::new(EgressPolicy::Public, dns.clone())?;
//! let resolver = identity::Resolver::new(http.clone(), dns, identity::Options::default());
//! let account = resolver.identity_of_handle(Handle::parse("atproto.com")?).await?.account;
//!
//! let host = account.host.as_ref().ok_or("hosted nowhere")?;
//! let key = account.key.as_ref().ok_or("an account without a key")?;
//! let (did, mut export) = (account.did(), Vec::new());
//! xrpc::Client::new(http).fetch_repo(host, did, &mut export, &Limits::REPOSITORY).await?;
//! let options = repository::Options::default();
//! let whole = repository::verify(&export, Some(did.as_str()), key, &options)?;
//! println!("{} records", whole.tree().records);
//! # Ok(())
//! # }
//! ```
//!
//! Hosts are untrusted: every address is checked when it is connected to, every response has limits of size
//! and time, and every error names the host.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "firehose"),
    allow(dead_code, reason = "only streams upgrade to WebSocket")
)]

pub mod archive_space;
#[doc(hidden)]
pub mod bounded_map;
#[cfg(feature = "server")]
pub mod client_places;
#[cfg(feature = "firehose")]
mod clock;
pub mod concurrency;
#[cfg(any(feature = "firehose", feature = "server"))]
#[doc(hidden)]
pub mod counted_io;
#[cfg(feature = "firehose")]
pub mod cursors;
pub mod dns;
mod duration_text;
pub mod egress;
#[cfg(feature = "firehose")]
pub mod firehose;
pub mod host_pacer;
pub mod hosts;
pub mod http;
#[cfg(feature = "server")]
pub mod http_server;
pub mod identity;
#[cfg(feature = "jetstream")]
pub mod jetstream;
#[cfg(all(test, feature = "firehose"))]
mod loopback_server;
mod part_turn;
pub mod plc_export;
#[cfg(feature = "firehose")]
pub mod plc_stream;
pub mod rate_limit;
#[cfg(feature = "firehose")]
#[doc(hidden)]
pub mod reconnecting_socket;
#[doc(hidden)]
pub mod remote_text;
mod request_budget;
#[cfg(feature = "server")]
pub mod server_places;
#[cfg(feature = "system-dns")]
mod system_dns;
#[cfg(feature = "firehose")]
pub mod websocket;
#[cfg(feature = "server")]
pub mod websocket_server;
pub mod xrpc;

pub use duration_text::DurationText;
