//! Delivery of events to consumers.

#![forbid(unsafe_code)]

mod consumer;
mod database;
mod dead_letters;
mod delivery;
mod error;
mod event;
mod files;
mod outbox;
mod sink;
mod state;
mod webhook;
mod window;
mod writer;

pub use consumer::Consumer;
pub use database::OutboxIdentity;
pub use dead_letters::{DeadLetterError, DeadLetters};
pub use delivery::{
    Delivery, DeliveryError, DeliveryMetrics, DeliveryOptions, DeliverySummary,
};
pub use error::{OutboxError, OutboxFault};
pub use event::{Event, EventId, InvalidPayload, MAX_PAYLOAD_BYTES, NewEvent};
pub use files::{FileOptions, FileSink};
pub use outbox::{Bound, ConsumerStatus, Options, Outbox, StartAt, Status};
pub use sink::{FailureKind, SendFailure, Sink, SinkLimits};
pub use webhook::{InvalidSecret, WebhookOptions, WebhookSecret, WebhookSink};
