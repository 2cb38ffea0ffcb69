//! The firehose of a relay or PDS: every event verified, in order, at least once.
//!
//! | type | contents |
//! |---|---|
//! | [`Firehose`] | a run: reads one of several hosts, verifies, delivers, checkpoints |
//! | [`Handler`], [`DeliveredEvent`], [`Verdict`] | callbacks for verified events |
//! | [`VerdictStream`] | the same as an asynchronous stream |
//! | [`Ack`] | the acknowledgement of an event |
//! | [`Journal`] | durable cursors and account states |
//! | [`KeyProvider`] | the keys of accounts |
//! | [`StatusProvider`] | whether accounts are active, as their own servers say |
//! | [`RunMetrics`] | live metrics |
//! | [`MoreHosts`] | hosts that are followed at the same time |
//! | [`Feed`], [`FeedItem`] | received frames and notices, without verification |
//! | [`SequenceTracker`] | gaps and repetitions of sequence numbers |
//!
//! # The path of an event
//!
//! ```text
//! hosts ── feed ── intake ──┬─ inbox ─ worker ─ verifier ─ handler ┐
//!                  │   ▲    ├─ inbox ─ worker ─ verifier ─ handler │ Ack::done
//!           ticket │   │    └─ …          │ ▲                      │
//!                  ▼   │ permit           ▼ │ message              │
//!            AckTracker, InFlightLimit    jobs: key lookups,        │
//!                  ▲ │                    resyncs                   │
//!                  │ └─ cursors ─> Checkpointer ─> Journal          │
//!                  └────────────────────────────────────────────────┘
//! ```
//!
//! The reading task gives every frame a ticket. An account belongs to one worker, a thread that takes the events of its inbox,
//! up to a batch, verifies and delivers them: a single event without delay, many at the cost per event of a batch. An
//! account whose key is unknown, or that is desynchronized, is parked with its later events while a job looks up the key
//! or resyncs the repository; other accounts continue.
//!
//! An event is in flight until it is acknowledged. In-flight events and bytes are bounded, and so are the bytes in
//! inboxes; at a bound reading stops (backpressure). No event is dropped. The journaled cursor is the last one before the oldest
//! event in flight, and an account state is journaled when every event up to it is acknowledged. So after a
//! crash some events are received again, and none is lost or ignored as old.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use wireproof::verify::sync::MemoryState;
//! use wireproof::net::cursors::FileCursors;
//! use wireproof::net::firehose::{
//!     Ack, CursorsOnly, DeliveredEvent, Firehose, Handler, Options, ResolverKeys, StopSignal,
//! };
//! use wireproof::net::{dns::SystemDns, egress::EgressPolicy, http, identity};
//!
//! struct Print;
//!
//! impl Handler for Print {
//!     fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
//!         println!("{:?} {:?} {}", event.seq, event.did, event.verdict.code());
//!         ack.done();
//!     }
//! }
//!
//! let dns = Arc::new(SystemDns::new()?);
//! let http = http::Client::new(EgressPolicy::Public, dns.clone())?;
//! let resolver = identity::Resolver::new(http.clone(), dns, identity::Options::default());
//! let hosts = vec!["https://bsky.network".parse()?];
//! let options = Options::new(hosts, Arc::new(ResolverKeys::new(resolver)));
//! let journal = CursorsOnly(FileCursors::open("cursors.json")?);
//! let states = |_worker| MemoryState::new([7; 16]);
//! let firehose = Firehose::new(&http, options);
//! let summary = firehose.run(Print, journal, states, StopSignal::new()).await?;
//! println!("{} events", summary.delivered);
//! # Ok(())
//! # }
//! ```

mod account_pacer;
mod account_set;
mod ack;
mod checkpoint;
mod error;
mod feed;
mod feed_item;
mod feeds;
mod fetch_limit;
mod flow_limits;
mod gaps;
mod gather;
mod handler;
mod jobs;
mod journal;
mod keys;
mod local_clock;
mod metrics;
mod more_hosts;
mod options;
mod queue;
mod resync;
mod resync_options;
mod resync_requests;
mod resynced_repo;
mod revisions;
mod run;
mod status;
mod stream;
#[cfg(test)]
mod tests;
mod verifier;
mod worker;

pub use account_set::AccountSet;
pub use ack::Ack;
pub use base::StopSignal;
pub use error::{PauseSignal, RunError};
pub use feed::{Feed, FeedError, FeedOptions, SeqStep, SequenceTracker, StartFrom, Upstream};
pub use feed_item::{FeedItem, FrameKind, Notice, ReceivedFrame};
pub use flow_limits::FlowLimits;
pub use handler::{DeliveredEvent, Handler, Verdict, Warning};
pub use journal::{CursorsOnly, Journal, JournalError};
pub use keys::{FixedKeys, HostedKey, KeyError, KeyLookup, KeyProvider, ResolverKeys, ServerKeys};
pub use metrics::{DurationHistogram, MetricsSnapshot, RunMetrics};
pub use more_hosts::{AddedHost, HostRole, MoreHosts};
pub use options::{Options, Verification};
pub use resync_options::{ResyncCollections, ResyncOptions};
pub use resync_requests::ResyncRequests;
pub use resynced_repo::{PartRefusal, ResyncError, ResyncedRecords, ResyncedRepo};
pub use run::{Firehose, RunSummary};
pub use status::{ServerStatus, ServerStatuses, StatusError, StatusLookup, StatusProvider};
pub use stream::{StreamItem, StreamedEvent, VerdictStream};
