//! The form in which a client gets events.

use std::collections::VecDeque;

use tokio_tungstenite::tungstenite::Message;

use atproto::event::{ErrorFrame, Event, Info};

use crate::content::Content;
use crate::event::{ServedEvent, Wire};
use crate::jetstream::filter::Filter;
use crate::jetstream::request::options_update;
use crate::jetstream::text;
use crate::seq::{MAX_NUMBERS, seq_of};

/// The form of a client's events, and which of them it gets.
#[derive(Debug)]
pub(crate) enum Form {
    /// Frames of `com.atproto.sync.subscribeRepos`.
    Frames,
    /// The JSON of a Jetstream.
    Jetstream(JetstreamForm),
}

/// The JSON of a Jetstream.
#[derive(Debug)]
pub(crate) struct JetstreamForm {
    pub(crate) wire: Wire,
    pub(crate) filter: Filter,
    pub(crate) is_compressed: bool,
    /// Whether nothing is sent until the client has sent its options.
    pub(crate) awaits_options: bool,
}

impl Form {
    /// The name in metrics.
    pub(crate) fn index(&self) -> FormIndex {
        match self {
            Self::Frames => FormIndex::Frames,
            Self::Jetstream(form) if form.wire == Wire::V1 => FormIndex::JetstreamV1,
            Self::Jetstream(_) => FormIndex::JetstreamV2,
        }
    }

    /// The arrival after which events are read whose numbers can be `from` or later.
    pub(crate) fn read_after(&self, from: i64) -> i64 {
        match self {
            Self::Frames => from - 1,
            // The number may be of an operation within a commit.
            Self::Jetstream(_) => from.saturating_sub(i64::from(MAX_NUMBERS)),
        }
    }

    /// Whether events may be sent.
    pub(crate) fn is_ready(&self) -> bool {
        match self {
            Self::Frames => true,
            Self::Jetstream(form) => !form.awaits_options,
        }
    }

    /// Adds the messages of an event whose numbers are `from` or later.
    pub(crate) fn push(&self, event: &ServedEvent, from: i64, out: &mut VecDeque<Message>) {
        match self {
            Self::Frames if event.arrival >= from => {
                out.extend(event.frame().cloned().map(Message::binary));
            }
            Self::Frames => {}
            Self::Jetstream(form) => form.push(event, from, out),
        }
    }

    /// Takes a message of the client.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub(crate) fn receive(&mut self, message: &str) -> Result<(), &'static str> {
        match self {
            // The protocol has no messages of clients, and ignores them.
            Self::Frames => Ok(()),
            Self::Jetstream(form) if form.wire == Wire::V1 => {
                if let Some(filter) = options_update(message)? {
                    form.filter = filter;
                    form.awaits_options = false;
                }
                Ok(())
            }
            Self::Jetstream(_) => Err("this stream takes no messages"),
        }
    }

    /// The notice that the cursor is before the first event, if the protocol has one.
    pub(crate) fn outdated(&self, floor: i64, by_time: bool) -> Option<Message> {
        match self {
            Self::Frames => {
                let message = Some("Requested cursor exceeded limit. Possibly missing events");
                let info = Event::Info(Info { name: "OutdatedCursor", message });
                Some(Message::binary(info.to_frame()))
            }
            Self::Jetstream(form) if form.wire == Wire::V2 && by_time => {
                Some(form.sent(text::outdated(seq_of(floor).max(0))))
            }
            Self::Jetstream(_) => None,
        }
    }

    /// The last message of a stream that ends with an error, if the protocol has one.
    pub(crate) fn error(&self, name: &'static str, why: &str) -> Option<Message> {
        match self {
            Self::Frames => {
                let error = Event::Error(ErrorFrame { error: name, message: Some(why) });
                Some(Message::binary(error.to_frame()))
            }
            Self::Jetstream(form) if form.wire == Wire::V2 => {
                Some(form.sent(text::error(name, why)))
            }
            Self::Jetstream(_) => None,
        }
    }
}

impl JetstreamForm {
    fn push(&self, event: &ServedEvent, from: i64, out: &mut VecDeque<Message>) {
        if !self.filter.has_event(event) {
            return;
        }
        let ops = match event.content() {
            Content::Commit(commit) if !self.filter.has_all_collections() => Some(&commit.ops),
            _ => None,
        };
        for (at, number) in (event.arrival..).take(event.texts(self.wire).len()).enumerate() {
            let is_wanted = number >= from
                && ops.is_none_or(|ops| self.filter.has_collection(&ops[at].collection));
            if is_wanted {
                out.extend(self.text(event, at));
            }
        }
    }

    /// The message of one text of an event.
    fn text(&self, event: &ServedEvent, at: usize) -> Option<Message> {
        let text = event.texts(self.wire).get(at)?;
        // An operation without a JSON form.
        if text.is_empty() || !self.filter.has_size(text.len()) {
            return None;
        }
        if self.is_compressed {
            return event.compressed(self.wire).get(at).cloned().map(Message::binary);
        }
        Some(Message::Text(text.clone()))
    }

    /// A message that is not of an event.
    fn sent(&self, text: tokio_tungstenite::tungstenite::Utf8Bytes) -> Message {
        if self.is_compressed {
            return Message::binary(crate::jetstream::dictionary::compress(text.as_bytes()));
        }
        Message::Text(text)
    }
}

/// A form without its filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormIndex {
    Frames,
    JetstreamV1,
    JetstreamV2,
}

impl FormIndex {
    pub(crate) const ALL: [Self; 3] = [Self::Frames, Self::JetstreamV1, Self::JetstreamV2];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Frames => "frames",
            Self::JetstreamV1 => "jetstream-v1",
            Self::JetstreamV2 => "jetstream-v2",
        }
    }
}
