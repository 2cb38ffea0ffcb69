//! A sink whose type is erased: deliveries hold it, and the registry of sinks opens it.

use std::fmt;

use futures_util::future::BoxFuture;

use crate::database::OutboxIdentity;
use crate::event::Event;
use crate::sink::{SendFailure, Sink, SinkLimits};

/// A [`Sink`] of any type.
#[derive(Debug)]
pub struct AnySink(pub(crate) Box<dyn ErasedSink>);

impl AnySink {
    /// The position that the sink has stored with its data: see [`Sink::stored`].
    ///
    /// # Errors
    /// If the sink cannot tell.
    pub async fn stored(&self, outbox: OutboxIdentity) -> Result<Option<u64>, SendFailure> {
        self.0.stored(outbox).await
    }
}

impl<S: Sink> From<S> for AnySink {
    fn from(sink: S) -> Self {
        Self(Box::new(sink))
    }
}

/// [`Sink`] with boxed futures, which a trait object needs.
pub(crate) trait ErasedSink: Send + Sync {
    fn limits(&self) -> SinkLimits;
    fn send<'a>(&'a self, events: &'a [Event]) -> Sending<'a>;
    fn stored(&self, outbox: OutboxIdentity) -> BoxFuture<'_, Result<Option<u64>, SendFailure>>;
    fn skip<'a>(&'a self, event: &'a Event) -> Sending<'a>;
    fn rows(&self) -> Option<u64>;
    fn maintain(&self) -> Sending<'_>;
    fn close(&self) -> Sending<'_>;
}

/// The future of a call to a sink.
type Sending<'a> = BoxFuture<'a, Result<(), SendFailure>>;

impl<S: Sink> ErasedSink for S {
    fn limits(&self) -> SinkLimits {
        Sink::limits(self)
    }

    fn send<'a>(&'a self, events: &'a [Event]) -> Sending<'a> {
        Box::pin(Sink::send(self, events))
    }

    fn stored(&self, outbox: OutboxIdentity) -> BoxFuture<'_, Result<Option<u64>, SendFailure>> {
        Box::pin(Sink::stored(self, outbox))
    }

    fn skip<'a>(&'a self, event: &'a Event) -> Sending<'a> {
        Box::pin(Sink::skip(self, event))
    }

    fn rows(&self) -> Option<u64> {
        Sink::rows(self)
    }

    fn maintain(&self) -> Sending<'_> {
        Box::pin(Sink::maintain(self))
    }

    fn close(&self) -> Sending<'_> {
        Box::pin(Sink::close(self))
    }
}

impl fmt::Debug for dyn ErasedSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").field("limits", &self.limits()).finish_non_exhaustive()
    }
}
