//! What do relays and PDSs tell, in order and without a loss?
//!
//! | type | question it answers |
//! |---|---|
//! | [`Firehose`] | who takes what comes from one of several hosts, judged, and loses nothing? |
//! | [`Handler`], [`DeliveredEvent`], [`Verdict`] | what is the caller told of an event? |
//! | [`Ack`] | has the caller done with it? |
//! | [`Journal`] | who remembers how far we came? |
//! | [`KeyProvider`] | which key has an account? |
//! | [`RunMetrics`] | what has happened so far? |
//! | [`Feed`] | what do one of several hosts' connections bring, one thing after the other? |
//! | [`ReceivedFrame`] | which frame came, from whom, about what? |
//! | [`Notice`] | what happened to the connection? |
//! | [`SequenceTracker`] | does a number follow the one before? |
//! | [`Watermark`] | behind which event may the stream be left? |
//!
//! # The way of an event
//!
//! ```text
//! hosts ── feed ── intake ──┬─ inbox ─ worker ─ judge ─ handler ┐
//!                  │   ▲    ├─ inbox ─ worker ─ judge ─ handler │ Ack::done
//!           ticket │   │    └─ …          │ ▲                   │
//!                  ▼   │ room             ▼ │ messages           │
//!                acks ◄──────────    jobs: keys,           │
//!                  ▲ │                 repositories             │
//!                  │ └─ cursors ─> checkpointer ─> Journal            │
//!                  └────────────────────────────────────────────┘
//! ```
//!
//! The feed's task reads frames and gives each a ticket. An account belongs to one worker, a thread that
//! takes what waits, up to a batch, judges it and hands it over: a lone event at once, many at the cost
//! of many. An account whose key is not known, or whose chain is broken, waits with all that comes of
//! it, while jobs are run for it; the others go on.
//!
//! An event is under way until it is acknowledged. So many events and bytes may be; where the bound is
//! reached, nothing more is read, and the server feels it. Nothing is ever dropped. The cursor that is
//! journaled is the last one before the oldest event under way, and an account is journaled as it is
//! known when every event that made it so is acknowledged; so after a crash some events come again, and
//! none is missed or taken for an old one.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use wireproof::verify::sync::MemoryState;
//! use wireproof::net::cursors::FileCursors;
//! use wireproof::net::firehose::{
//!     Ack, CursorsOnly, DeliveredEvent, Firehose, Handler, Options, ResolverKeys, StopSignal,
//! };
//! use wireproof::net::{http, identity, dns::SystemDns, egress::EgressPolicy};
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
//! let names = Arc::new(SystemDns::new()?);
//! let http = http::Client::new(EgressPolicy::Public, names.clone())?;
//! let resolver = identity::Resolver::new(http.clone(), names, identity::Options::default());
//! let hosts = vec!["https://bsky.network".parse()?];
//! let options = Options::new(hosts, Arc::new(ResolverKeys::new(resolver)));
//! let journal = CursorsOnly(FileCursors::open("cursors.json")?);
//! let states = |_worker| MemoryState::new([7; 16]);
//! let summary = Firehose::new(&http, options).run(Print, journal, states, StopSignal::new()).await?;
//! println!("{} events", summary.delivered);
//! # Ok(())
//! # }
//! ```

mod ack;
mod acks;
mod arrival;
mod checkpoint;
mod counter;
mod counters;
mod error;
mod feed;
mod handler;
mod histogram;
mod inbox;
mod intake;
mod item;
mod jobs;
mod journal;
mod keys;
mod notice;
mod options;
mod partition;
mod pending_states;
mod processor;
mod recording;
mod resync;
mod room;
mod run;
mod runtime;
mod sequence;
mod shift;
mod source;
mod stop;
#[cfg(test)]
mod tests;
mod waiting;
mod watermark;
mod worker;

pub use ack::Ack;
pub use arrival::{FrameKind, ReceivedFrame};
pub use counters::{MetricsSnapshot, RunMetrics};
pub use feed::{Feed, FeedError, Item as FeedItem, Options as FeedOptions, StartFrom, Upstream};
pub use handler::{DeliveredEvent, Handler, Verdict};
pub use histogram::DurationHistogram;
pub use journal::{CursorsOnly, Journal, JournalError};
pub use keys::{FixedKeys, KeyError, KeyLookup, KeyProvider, ResolverKeys, ServerKeys};
pub use notice::Notice;
pub use options::{FlowLimits, Options, Verification};
pub use resync::{ResyncError, ResyncOptions, ResyncedRepo};
pub use run::{Firehose, RunError, RunSummary};
pub use sequence::{SeqStep, SequenceTracker};
pub use stop::StopSignal;
pub use watermark::{Ticket, Watermark};
