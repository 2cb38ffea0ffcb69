//! A client of Nostr relays: the events of one relay that match a filter, stored ones first, over any number of connections.
//!
//! | type | contents |
//! |---|---|
//! | [`Client`] | receives the events of a relay |
//! | [`RelayItem`] | an event, or a notice about the relay |
//! | [`RelayNotice`] | a statement of the relay, or a change of the connection |
//! | [`Gap`] | why stored events may be missing |
//! | [`Authenticator`] | the key that answers requests for authentication |
//! | [`Options`] | limits, and how many received events are requested again |
//!
//! ```text
//! connect ──┬── REQ since … limit …, a page ── REQ until the oldest of it ── … ── new events
//!           └── NEG-OPEN, NEG-MSG … ── REQ ids, in groups ──┘
//! ```
//!
//! A relay sends no more stored events at once than its own limit, in any order: the client asks for other ones until a page
//! proves that there are none, and reports missing proofs ([`Gap`]). New events come by the first subscription; where a relay
//! allows one at a time, by one that begins after the last page. After a lost connection it asks for events since the last one, and some time before it. With
//! [`Options::known`] it compares ids first ([`nostr::negentropy`]), and requests the unknown ones.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use wireproof::nostr_relay::{Client, Options, RelayItem};
//! use wireproof::net::{dns::SystemDns, egress::EgressPolicy, hosts::Jitter, http, websocket::Dialer};
//! use wireproof::nostr::{Arena, Filter, Limits, formats::Format};
//!
//! let http = http::Client::new(EgressPolicy::Public, Arc::new(SystemDns::new()?))?;
//! let (dialer, url) = (Dialer::new(http), "wss://relay.example.com".parse()?);
//! let filter = Filter { kinds: vec![1], ..Filter::default() };
//! let mut client = Client::new(dialer, url, filter.clone(), Options::default(), Jitter::new());
//! let mut arena = Arena::new();
//! loop {
//!     match client.next().await? {
//!         RelayItem::Event(received) => {
//!             arena.reset();
//!             let json = received.text.as_str().as_bytes();
//!             let event = Format::Json.decode(json, &arena, &Limits::default())?;
//!             if filter.matches(&event) && event.verify().is_ok() {
//!                 println!("{}", event.content);
//!             }
//!         }
//!         RelayItem::Notice(notice) => eprintln!("{}", notice.name()),
//!         _ => {}
//!     }
//! }
//! # }
//! ```
//!
//! Events are not verified here, and may not match the filter: a relay can send anything. Repetitions are not left out.
//! Requests for authentication (NIP-42) are reported, and answered with [`Options::authenticator`].

#![forbid(unsafe_code)]

mod authenticator;
mod client;
mod comparison;
mod item;
mod message;
mod options;
#[cfg(test)]
mod tests;
mod walk;

pub use authenticator::Authenticator;
pub use client::Client;
pub use item::{EventText, RelayError, RelayEvent, RelayItem, RelayNotice, Traffic};
pub use message::Reason;
pub use options::Options;
pub use walk::Gap;
