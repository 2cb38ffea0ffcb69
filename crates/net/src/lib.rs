//! The network: who is that account, what does its server hold, what happens now?
//!
//! | module | question it answers |
//! |---|---|
//! | [`reach`] | which hosts and addresses may be connected to at all? |
//! | [`names`] | which addresses and texts has a host name in the DNS? |
//! | [`http`] | what does this URL answer, within bounds? |
//! | [`gate`] | may this host be asked now, or did it ask us to wait? |
//! | [`turns`] | how many may ask one host at once? |
//! | [`identity`] | who is the account behind a DID or a handle? |
//! | [`xrpc`] | which repository, record or list does a server give? |
//! | [`websocket`] | how is a WebSocket opened to a host, and kept within bounds? |
//! | [`hosts`] | which of several hosts is asked next, and when? |
//! | [`cursors`] | where was each stream left? |
//! | [`firehose`] | what do relays and PDSs tell, in order and without a loss? |
//! | [`jetstream`] | what do Jetstreams tell, in either version, once? |
//!
//! From a name to a proof:
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use wireproof::atproto::syntax::Handle;
//! use wireproof::verify::repository;
//! use wireproof::net::http::{Client, Limits};
//! use wireproof::net::{identity, dns::SystemDns, egress::EgressPolicy, xrpc};
//!
//! let names = Arc::new(SystemDns::new()?);
//! let http = Client::new(EgressPolicy::Public, names.clone())?;
//! let resolver = identity::Resolver::new(http.clone(), names, identity::Options::default());
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
//! Hosts are named by strangers: every address is checked when it is connected to, every answer has a
//! longest length and a longest time, and whatever goes wrong says with which host it did.

#![forbid(unsafe_code)]

mod bounded_map;
pub mod concurrency;
#[cfg(any(feature = "firehose", feature = "jetstream"))]
pub mod cursors;
pub mod dns;
pub mod egress;
#[cfg(feature = "firehose")]
pub mod firehose;
pub mod hosts;
pub mod http;
pub mod identity;
#[cfg(feature = "jetstream")]
pub mod jetstream;
pub mod rate_limit;
#[cfg(any(feature = "firehose", feature = "jetstream"))]
mod reconnecting_socket;
#[cfg(any(feature = "firehose", feature = "jetstream"))]
pub mod websocket;
pub mod xrpc;
