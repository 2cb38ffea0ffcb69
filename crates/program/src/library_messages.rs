//! Messages of the libraries for an operator, which are events of `tracing`.

use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber, span};

use crate::log::Level;

/// Passes the messages of the levels that are `wanted` to `write`. In a process with a subscriber of its own they go there.
pub fn pass(
    wanted: impl Fn(Level) -> bool + Send + Sync + 'static,
    write: impl Fn(Level, &str) + Send + Sync + 'static,
) {
    let _ = tracing::subscriber::set_global_default(Messages { wanted, write });
}

struct Messages<F, W> {
    wanted: F,
    write: W,
}

impl<F, W> Subscriber for Messages<F, W>
where
    F: Fn(Level) -> bool + Send + Sync + 'static,
    W: Fn(Level, &str) + Send + Sync + 'static,
{
    /// The wanted levels can change after the first event.
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if !metadata.is_span() && is_for_operators(metadata) {
            Interest::sometimes()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        !metadata.is_span() && is_for_operators(metadata) && (self.wanted)(level_of(metadata))
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = EventText(String::new());
        event.record(&mut text);
        (self.write)(level_of(event.metadata()), &text.0);
    }

    /// Spans have no message.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Whether an event is a message for an operator. The libraries below trace for programs that embed them.
fn is_for_operators(metadata: &Metadata<'_>) -> bool {
    TARGETS.contains(&metadata.target()) && *metadata.level() <= tracing::Level::DEBUG
}

/// The targets of messages for an operator.
const TARGETS: [&str; 4] =
    ["wireproof::backfill", "wireproof::follower", "wireproof::network", "wireproof::serve"];

fn level_of(metadata: &Metadata<'_>) -> Level {
    match *metadata.level() {
        tracing::Level::ERROR => Level::Error,
        tracing::Level::WARN => Level::Warning,
        tracing::Level::INFO => Level::Info,
        _ => Level::Debug,
    }
}

/// The message of an event.
struct EventText(String);

impl Visit for EventText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // Writing to a text cannot fail.
            let _ = write!(self.0, "{value:?}");
        }
    }
}
