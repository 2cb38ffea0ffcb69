//! Delivery of events to consumers.

#![forbid(unsafe_code)]

mod consumer;
mod database;
mod error;
mod event;
mod outbox;
mod state;
mod window;
mod writer;

pub use consumer::Consumer;
pub use database::OutboxIdentity;
pub use error::{OutboxError, OutboxFault};
pub use event::{Event, EventId, InvalidPayload, MAX_PAYLOAD_BYTES, NewEvent};
pub use outbox::{Bound, ConsumerStatus, Options, Outbox, StartAt, Status};
