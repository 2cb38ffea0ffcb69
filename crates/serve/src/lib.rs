//! A relay, a Jetstream and a directory of repositories, which serve the proved events of a follower.
//!
//! ```text
//! follower ── Intake ── EventLog ──┬── files: the window
//!                                  ├── Tail, in memory ──┬── Client: frames of subscribeRepos
//!                                  │                     ├── Client: Jetstream, version 1
//!                                  │                     └── Client: Jetstream, version 2
//!                                  ├── Feeder ── Outbox ── consumers: lines, clients of tap
//!                                  ├── Directory ── queries of com.atproto.sync
//!                                  └── Repositories, with an archive ── getRepo, getRecord, getBlocks
//! ```
//!
//! An event is acknowledged to its source once it is on disk. Its sequence number is the time of its arrival
//! in microseconds since 2020, which is the cursor of all forms. A message is encoded once for all
//! clients of a form. A client that falls behind the events in memory reads files, and is disconnected when the window
//! passes it.

#![forbid(unsafe_code)]

mod beat;
mod client;
mod consumers;
mod content;
mod crawl;
mod directory;
mod event;
mod form;
mod handshake;
mod history;
mod hosts;
mod intake;
mod jetstream;
mod lines;
mod log;
mod metrics;
mod options;
mod pace;
mod page;
mod reader;
mod record_json;
mod repeats;
mod repositories;
mod seq;
mod server;
mod shared;
mod tail;
#[cfg(test)]
mod tests;
mod unsigned;
mod xrpc;

pub use consumers::{Consumers, ConsumersError};
pub use crawl::{AcceptedDomain, Crawl};
pub use history::ServedArchive;
pub use intake::{Intake, IntakeFailure};
pub use lines::ArchivedLines;
pub use log::{LogError, Window};
pub use options::Options;
pub use page::Page;
pub use server::{Server, ServerError};
