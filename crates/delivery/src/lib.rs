//! Delivery of events to consumers: at least once, in order per account, with ids that never change.
//!
//! ```text
//! source ── append ──> Outbox ──> Consumer ──> Delivery ──> Sink ──> receiver
//!    ▲                 │  ▲  │                    │
//!    └──── stored ─────┘  │  └──> Consumer ──> …  │
//!                         └─────── acknowledged ──┘
//! ```
//!
//! [`Outbox`] keeps events on disk until every registered consumer has acknowledged them. It answers the source when an
//! event is stored, and makes it wait at a bound. A [`Consumer`] receives events from its own cursor on and acknowledges
//! them in any order. A [`Delivery`] sends the events of a consumer to a [`Sink`] in batches: accounts in parallel, the
//! events of one in order, repeated until they are accepted. [`FileSink`], [`WebhookSink`] and [`SqliteSink`] are sinks, and
//! `PostgresSink`, `KafkaSink` and `NatsSink` with the features `postgres`, `kafka` and `nats`; [`DeadLetters`] keeps the
//! events that a receiver refuses. [`Sinks`] opens them by URI.
//!
//! ```no_run
//! # async fn run(folder: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
//! use wireproof::delivery::{Delivery, DeliveryOptions, EventId, FileOptions, FileSink, NewEvent};
//! use wireproof::delivery::{Options, Outbox, StartAt};
//! use wireproof::StopSignal;
//!
//! let outbox = Outbox::open(&folder.join("outbox.sqlite"), Options::default())?;
//! outbox.register("files", StartAt::Oldest)?;
//! let sink = FileSink::open(&folder.join("events"), FileOptions::default())?;
//! let delivery = Delivery::new(outbox.consumer("files")?, sink, None, DeliveryOptions::default());
//! let stop = StopSignal::new();
//! let delivered = tokio::spawn(delivery.run(stop.clone()));
//!
//! // On a thread of the source, for every verified commit:
//! let id = EventId::of_commit("did:web:alice.example", "3l3qp7yd2ks2y");
//! let line = format!(r#"{{"id":"{id}","kind":"commit"}}"#);
//! let event = NewEvent::new(id, "did:web:alice.example", line)?;
//! outbox.append(event, |stored| println!("the source may acknowledge: {}", stored.is_ok()));
//!
//! stop.request();
//! println!("{:?}", delivered.await??);
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! - An event that was answered as stored is delivered, whatever process ends when.
//! - Positions rise strictly and are never used again while the file exists; [`Outbox::identity`] differs for another file.
//! - A crash repeats only events whose acknowledgement was not stored, with the same ids and positions. An event that the
//!   source sends again is not stored again while it is one of the last 65,536.
//! - Nothing is dropped at a bound: of events, bytes or age. The source waits, and [`Outbox::status`] says at which bound
//!   and for which consumer.
//! - Every table has a limit: events and bytes in the file, 64 consumers, 65,536 positions between the cursor of a consumer
//!   and the last event that it has received, batches in flight.
//!
//! # A sink of your own
//!
//! A sink is two implementations: of [`Sink`], which sends events, and of [`SinkAddress`], which says which URIs name it.
//! Here one type is both:
//!
//! ```no_run
//! use std::fs::File;
//! use std::io::Write;
//! use std::path::PathBuf;
//!
//! use wireproof::delivery::{Delivery, DeliveryOptions, Event, OpenFailure, Outbox, SendFailure};
//! use wireproof::delivery::{Sink, SinkAddress, SinkLimits, SinkOptions, Sinks, StartAt, consumer_name};
//!
//! /// A file to which payloads are appended.
//! #[derive(Clone, Debug)]
//! struct Log(PathBuf);
//!
//! impl Sink for Log {
//!     fn limits(&self) -> SinkLimits {
//!         SinkLimits::new(1_000, 1 << 20)
//!     }
//!
//!     async fn send(&self, events: &[Event]) -> Result<(), SendFailure> {
//!         let lines = events.iter().flat_map(|event| [event.payload(), b"\n"].concat());
//!         let lines: Vec<u8> = lines.collect();
//!         let file = File::options().append(true).create(true).open(&self.0);
//!         let written = file.and_then(|mut file| {
//!             file.write_all(&lines)?;
//!             file.sync_data()
//!         });
//!         written.map_err(SendFailure::temporary)
//!     }
//! }
//!
//! impl SinkAddress for Log {
//!     const SCHEMES: &'static [&'static str] = &["log"];
//!     const FORM: &'static str = "log:///FILE";
//!     type Sink = Self;
//!
//!     fn from_uri(uri: &str) -> Result<Self, String> {
//!         let path = uri.strip_prefix("log://").ok_or("expected log:///FILE")?;
//!         Ok(Self(path.into()))
//!     }
//!
//!     fn consumer(&self) -> String {
//!         consumer_name("log", "file", self.0.as_os_str().as_encoded_bytes())
//!     }
//!
//!     async fn open(&self, _: &SinkOptions) -> Result<Self, OpenFailure> {
//!         Ok(self.clone())
//!     }
//! }
//!
//! # async fn run(outbox: Outbox) -> Result<(), Box<dyn std::error::Error>> {
//! let address = Sinks::built_in().with::<Log>().address("log:///var/log/events")?;
//! outbox.register(&address.consumer, StartAt::Oldest)?;
//! let sink = address.open(&SinkOptions::new(outbox.identity())).await?;
//! let consumer = outbox.consumer(&address.consumer)?;
//! let delivery = Delivery::new(consumer, sink, None, DeliveryOptions::default());
//! # drop(delivery);
//! # Ok(())
//! # }
//! ```
//!
//! # A sink that is exactly once
//!
//! A database stores the position in the transaction that stores the events. Its limits have a concurrency of 1, so that
//! events come in the order of their positions:
//!
//! ```text
//! stored(outbox):  SELECT position FROM cursor WHERE outbox = …
//! send(events):    BEGIN; COPY …; UPDATE cursor SET position = <last event> WHERE outbox = …; COMMIT
//! ```
//!
//! At its start a delivery asks [`Sink::stored`] and continues after that position, whatever was acknowledged here.
//! Where the result of a commit is unknown, as the connection was lost, `send` reads the stored position before it
//! repeats the batch, and skips the events up to it. The row has the outbox's identity, so that the cursor of another
//! outbox, whose positions start over, is never mistaken for this one. A stored position beyond the outbox, or before
//! an acknowledged event, is an error ([`OutboxFault::SinkAhead`], [`OutboxFault::SinkBehind`]): an older copy of one
//! of them was restored. [`SqliteSink`] and `PostgresSink` are such sinks.
//!
//! # A consumer that pulls
//!
//! A server, such as [`WebSocketServer`], needs no [`Sink`] and no [`Delivery`]: every connection takes the
//! [`Consumer`] of its name, waits on [`Consumer::next_events`] while it has fewer than its own limit in flight, and calls
//! [`Consumer::acknowledge`] for the client's acknowledgements. A second connection by the same name is refused while the
//! first is open. When a connection ends, the `Consumer` is dropped, and the next one starts at the first event that is
//! not acknowledged. A protocol whose client expects the events of an account one after the other sends the next one when
//! the last is acknowledged, and other accounts meanwhile: the window of 65,536 positions bounds the events that it holds.

#![forbid(unsafe_code)]

#[cfg(any(feature = "kafka", feature = "nats"))]
mod account_chains;
mod any_sink;
#[cfg(any(feature = "kafka", feature = "nats"))]
mod config_fault;
mod consumer;
mod database;
mod dead_letters;
mod delivered_records;
mod delivery;
mod error;
mod event;
mod file_identity;
mod files;
#[cfg(feature = "kafka")]
mod kafka;
mod known_records;
mod label_rows;
mod letter_files;
mod line_form;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "tls")]
mod opening;
mod outbox;
mod outbox_options;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "kafka", feature = "nats"))]
mod queue_message;
mod record_effects;
#[cfg(any(feature = "kafka", feature = "nats"))]
mod server_address;
mod sink;
mod sink_address;
mod sink_options;
mod sinks;
mod sqlite;
mod state;
mod tables;
#[cfg(feature = "tls")]
mod tls;
mod undelivered;
mod webhook;
mod websocket;
mod window;
mod writer;

pub use any_sink::AnySink;
pub use consumer::Consumer;
pub use database::OutboxIdentity;
pub use dead_letters::{DeadLetterError, DeadLetters, dead_letter_bytes, read_dead_letters};
pub use delivered_records::{
    AwaitedHistory, DeliveredRecord, DeliveredRecords, Histories, HistoryCounts, Selected,
};
pub use delivery::{Delivery, DeliveryError, DeliveryMetrics, DeliveryOptions, DeliverySummary};
pub use error::{OutboxError, OutboxFault};
pub use event::{Event, EventId, InvalidPayload, MAX_PAYLOAD_BYTES, NewEvent};
pub use files::options::FileOptions;
pub use files::{FileAddress, FileSink};
#[cfg(feature = "kafka")]
pub use kafka::{KafkaAddress, KafkaOptions, KafkaSink};
pub use line_form::LineForm;
#[cfg(feature = "nats")]
pub use nats::{NatsAddress, NatsOptions, NatsSink};
pub use outbox::{ConsumerStatus, Outbox, StartAt, Status};
pub use outbox_options::{Bound, Options};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresAddress, PostgresOptions, PostgresSink};
pub use record_effects::RecordEffects;
pub use sink::{FailureKind, SendFailure, Sink, SinkLimits};
pub use sink_address::{OpenFailure, SinkAddress, consumer_name};
pub use sink_options::SinkOptions;
pub use sinks::{AnyAddress, Sinks, UriError};
pub use sqlite::{SqliteAddress, SqliteOptions, SqliteSink};
pub use tables::TableContent;
pub use undelivered::Undelivered;
pub use webhook::options::{InvalidSecret, WebhookBody, WebhookOptions, WebhookSecret};
pub use webhook::{WebhookAddress, WebhookSink};
pub use websocket::{
    AcceptedConsumer, WebSocketConsumers, WebSocketMetrics, WebSocketOptions, WebSocketServer,
};
