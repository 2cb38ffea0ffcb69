//! What do relays and PDSs tell, in order and without a loss?
//!
//! | type | question it answers |
//! |---|---|
//! | [`Firehose`] | who takes what comes from one of several hosts, judged, and loses nothing? |
//! | [`Handler`], [`Delivered`], [`Verdict`] | what is the caller told of an event? |
//! | [`Ack`] | has the caller done with it? |
//! | [`Journal`] | who remembers how far we came? |
//! | [`Keys`] | which key has an account? |
//! | [`Counters`] | what has happened so far? |
//! | [`Feed`] | what do one of several hosts' connections bring, one thing after the other? |
//! | [`Arrival`] | which frame came, from whom, about what? |
//! | [`Notice`] | what happened to the connection? |
//! | [`Sequence`] | does a number follow the one before? |
//! | [`Watermark`] | behind which event may the stream be left? |
//!
//! # The way of an event
//!
//! ```text
//! hosts ── feed ── intake ──┬─ inbox ─ worker ─ judge ─ handler ┐
//!                  │   ▲    ├─ inbox ─ worker ─ judge ─ handler │ Ack::done
//!           ticket │   │    └─ …          │ ▲                   │
//!                  ▼   │ room             ▼ │ letters           │
//!                ledger ◄──────────    errands: keys,           │
//!                  ▲ │                 repositories             │
//!                  │ └─ cursors ─> scribe ─> Journal            │
//!                  └────────────────────────────────────────────┘
//! ```
//!
//! The feed's task reads frames and gives each a ticket. An account belongs to one worker, a thread that
//! takes what waits, up to a batch, judges it and hands it over: a lone event at once, many at the cost
//! of many. An account whose key is not known, or whose chain is broken, waits with all that comes of
//! it, while errands are run for it; the others go on.
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
//! use verify::sync::MemoryState;
//! use wireproof_net::cursors::FileCursors;
//! use wireproof_net::firehose::{
//!     Ack, CursorsOnly, Delivered, Firehose, Handler, Options, ResolverKeys, Stop,
//! };
//! use wireproof_net::{http, identity, names::SystemNames, reach::Reach};
//!
//! struct Print;
//!
//! impl Handler for Print {
//!     fn event(&self, event: &Delivered<'_>, ack: Ack) {
//!         println!("{:?} {:?} {}", event.seq, event.did, event.verdict.code());
//!         ack.done();
//!     }
//! }
//!
//! let names = Arc::new(SystemNames::new()?);
//! let http = http::Client::new(Reach::Public, names.clone())?;
//! let resolver = identity::Resolver::new(http.clone(), names, identity::Options::default());
//! let hosts = vec!["https://bsky.network".parse()?];
//! let options = Options::new(hosts, Arc::new(ResolverKeys::new(resolver)));
//! let journal = CursorsOnly(FileCursors::open("cursors.json")?);
//! let states = |_worker| MemoryState::new([7; 16]);
//! let summary = Firehose::new(&http, options).run(Print, journal, states, Stop::new()).await?;
//! println!("{} events", summary.handed_over);
//! # Ok(())
//! # }
//! ```

mod ack;
mod arrival;
mod checkpoint;
mod counter;
mod counters;
mod crew;
mod desk;
mod errands;
mod fate;
mod feed;
mod handler;
mod histogram;
mod inbox;
mod intake;
mod item;
mod journal;
mod keys;
mod ledger;
mod notice;
mod options;
mod recording;
mod resync;
mod room;
mod run;
mod sequence;
mod share;
mod shift;
mod source;
mod standings;
mod stop;
#[cfg(test)]
mod tests;
mod waiting;
mod watermark;
mod worker;

pub use ack::Ack;
pub use arrival::{Arrival, Kind};
pub use counters::{Counters, Counts};
pub use feed::{Begin, Feed, FeedError, Item as FeedItem, Options as FeedOptions, Origin};
pub use handler::{Delivered, Handler, Verdict};
pub use histogram::Durations;
pub use journal::{CursorsOnly, Journal, JournalError};
pub use keys::{Finding, FixedKeys, KeyProblem, Keys, ResolverKeys, ServerKeys};
pub use notice::Notice;
pub use options::{Bounds, Options, Verify};
pub use resync::{Resync, ResyncError, Resynced};
pub use run::{Firehose, RunError, Summary};
pub use sequence::{Sequence, Step};
pub use stop::Stop;
pub use watermark::{Ticket, Watermark};
